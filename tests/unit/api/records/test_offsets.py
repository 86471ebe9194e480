"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords."""

from datetime import timedelta

import pytest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsTopic
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.unit.api.support import Effects, ask, drive, request

from tidelog.api.records import offsets
from tidelog.model.effects import (
    DeleteRecordsBefore,
    EpochFound,
    EpochQuery,
    FindEpochEnds,
    FindOffsets,
    OffsetFound,
    OffsetQuery,
    RecordDeletion,
    RecordsDeleted,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

# -- ListOffsets -----------------------------------------------------------------------------------


def listing(*asked: tuple[str, int, int], **fields):
    """A ListOffsets request with one topic entry for each (topic, partition, timestamp)."""
    return ask(
        2,
        topics=tuple(
            ListOffsetsTopic(
                name=name,
                partitions=(
                    ListOffsetsPartition(
                        partition_index=index, current_leader_epoch=3, timestamp=timestamp
                    ),
                ),
            )
            for name, index, timestamp in asked
        ),
        **{"replica_id": -1, **fields},
    )


def listed(response) -> list[tuple]:
    return [
        (topic.name, p.partition_index, p.error_code, p.offset, p.timestamp, p.leader_epoch)
        for topic in response.topics
        for p in topic.partitions
    ]


def test_offsets_are_found_and_answered_in_order():
    effects = Effects(
        [OffsetFound(ErrorCode.none, 5, -1, 2), OffsetFound(ErrorCode.not_leader_or_follower)]
    )

    response = effects.drive(
        offsets.list_offsets(request(listing(("a", 0, -1), ("b", 7, 1000)), 10))
    )

    [effect] = effects.asked
    assert effect == FindOffsets(
        [
            OffsetQuery(TopicPartition("a", 0), -1, 3),
            OffsetQuery(TopicPartition("b", 7), 1000, 3),
        ],
        read_committed=False,
        replica=-1,
    )
    assert listed(response) == [
        ("a", 0, ErrorCode.none, 5, -1, 2),
        ("b", 7, ErrorCode.not_leader_or_follower, -1, -1, -1),
    ]


def test_committed_readers_and_replicas_say_so():
    effects = Effects([OffsetFound(ErrorCode.none, 5)])

    effects.drive(
        offsets.list_offsets(request(listing(("a", 0, -1), isolation_level=1, replica_id=2), 10))
    )

    assert effects.asked[0].read_committed
    assert effects.asked[0].replica == 2


@pytest.mark.parametrize(
    ("timestamp", "first"), [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (0, 1)]
)
def test_each_timestamp_works_from_its_first_version_on(timestamp: int, first: int):
    message = listing(("a", 0, timestamp))
    found = [OffsetFound(ErrorCode.none, 1)]

    [served] = listed(drive(offsets.list_offsets(request(message, first)), found))
    assert served[2] is ErrorCode.none
    if first > 1:
        [refused] = listed(drive(offsets.list_offsets(request(message, first - 1))))
        assert refused[2] is ErrorCode.unsupported_version


def test_a_timestamp_that_kafka_does_not_know():
    [refused] = listed(drive(offsets.list_offsets(request(listing(("a", 0, -7)), 11))))

    assert refused[2] is ErrorCode.unsupported_version


def test_nothing_waits_for_an_upload():
    effects = Effects([OffsetFound(ErrorCode.none)])

    effects.drive(offsets.list_offsets(request(listing(("a", 0, -6)), 11)))

    assert effects.asked[0].queries[0].timestamp == -5


def test_a_partition_that_is_there_twice_is_refused_and_the_others_are_answered():
    message = listing(("a", 0, -1), ("b", 0, -1), ("a", 0, -2))

    response = drive(offsets.list_offsets(request(message, 10)), [OffsetFound(ErrorCode.none, 9)])

    assert [(row[0], row[2], row[3]) for row in listed(response)] == [
        ("a", ErrorCode.invalid_request, -1),
        ("b", ErrorCode.none, 9),
    ]


def test_an_isolation_level_that_does_not_exist():
    [refused] = listed(
        drive(offsets.list_offsets(request(listing(("a", 0, -1), isolation_level=9), 10)))
    )

    assert refused[2] is ErrorCode.invalid_request


def test_asking_for_nothing():
    assert drive(offsets.list_offsets(request(listing(), 10))).topics == ()


# -- OffsetForLeaderEpoch --------------------------------------------------------------------------


def test_ends_of_epochs():
    message = ask(
        23,
        topics=(
            OffsetForLeaderTopic(
                topic="a",
                partitions=(
                    OffsetForLeaderPartition(partition=0, current_leader_epoch=4, leader_epoch=3),
                    OffsetForLeaderPartition(partition=1, current_leader_epoch=4, leader_epoch=9),
                ),
            ),
        ),
    )
    effects = Effects(
        [EpochFound(ErrorCode.none, 3, 70), EpochFound(ErrorCode.fenced_leader_epoch)]
    )

    response = effects.drive(offsets.offset_for_leader_epoch(request(message, 4)))

    assert effects.asked == [
        FindEpochEnds(
            [EpochQuery(TopicPartition("a", 0), 4, 3), EpochQuery(TopicPartition("a", 1), 4, 9)]
        )
    ]
    [topic] = response.topics
    assert [
        (p.partition, p.error_code, p.leader_epoch, p.end_offset) for p in topic.partitions
    ] == [
        (0, ErrorCode.none, 3, 70),
        (1, ErrorCode.fenced_leader_epoch, -1, -1),
    ]


def test_asking_for_no_epochs():
    assert drive(offsets.offset_for_leader_epoch(request(ask(23), 4))).topics == ()


# -- DeleteRecords ---------------------------------------------------------------------------------


def test_records_are_deleted_but_not_those_of_internal_topics():
    message = ask(
        21,
        topics=tuple(
            DeleteRecordsTopic(
                name=name, partitions=(DeleteRecordsPartition(partition_index=0, offset=8),)
            )
            for name in ("a", "__consumer_offsets", "b")
        ),
        timeout=timedelta(seconds=3),
    )
    effects = Effects(
        [RecordsDeleted(ErrorCode.none, 8), RecordsDeleted(ErrorCode.offset_out_of_range)]
    )

    response = effects.drive(offsets.delete_records(request(message, 2)))

    assert effects.asked == [
        DeleteRecordsBefore(
            [RecordDeletion(TopicPartition("a", 0), 8), RecordDeletion(TopicPartition("b", 0), 8)],
            timeout_ms=3000,
        )
    ]
    assert [
        (topic.name, p.error_code, p.low_watermark)
        for topic in response.topics
        for p in topic.partitions
    ] == [
        ("a", ErrorCode.none, 8),
        ("__consumer_offsets", ErrorCode.invalid_topic_exception, -1),
        ("b", ErrorCode.offset_out_of_range, -1),
    ]


def test_deleting_nothing():
    assert drive(offsets.delete_records(request(ask(21), 2))).topics == ()
