"""OffsetCommit, OffsetFetch and OffsetDelete: names, ids, and partitions that do not exist."""

from datetime import timedelta
from uuid import UUID

from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.offset_commit.v10.response import OffsetCommitResponsePartition
from kio.schema.offset_delete.v0 import request as delete
from kio.schema.offset_delete.v0 import response as deleted
from kio.schema.offset_fetch.v10.response import OffsetFetchResponsePartitions
from tests.unit.api.support import (
    TOPIC_ID,
    Effects,
    ask,
    drive,
    image,
    partition,
    request,
    topic,
)

from tidelog.api.groups import group_offsets
from tidelog.model.effects import Coordinate
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.canonical import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)

UNKNOWN_ID = UUID(int=99)

# -- OffsetCommit ----------------------------------------------------------------------------------


def commit(*topics: tuple[str | UUID, tuple[int, ...]]):
    return ask(
        8,
        group_id="g",
        member_id="m",
        generation_id_or_member_epoch=3,
        group_instance_id="i",
        topics=tuple(
            OffsetCommitRequestTopic(
                **({"name": ref, "topic_id": None} if isinstance(ref, str) else {"topic_id": ref}),
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=7, committed_metadata="m"
                    )
                    for index in indexes
                ),
            )
            for ref, indexes in topics
        ),
    )


def accept(effect: Coordinate) -> OffsetCommitResponse:
    """A coordinator that accepts every commit except for partition 2."""
    assert type(effect.request) is OffsetCommitRequest
    return OffsetCommitResponse(
        throttle_time=timedelta(0),
        topics=tuple(
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitResponsePartition(
                        partition_index=p.partition_index,
                        error_code=(
                            ErrorCode.offset_metadata_too_large
                            if p.partition_index == 2
                            else ErrorCode.none
                        ),
                    )
                    for p in topic.partitions
                ),
            )
            for topic in effect.request.topics
        ),
    )


def commit_errors(response) -> list[tuple]:
    return [
        (topic.name, topic.topic_id, p.partition_index, p.error_code)
        for topic in response.topics
        for p in topic.partitions
    ]


def test_only_partitions_that_exist_reach_the_coordinator():
    effects = Effects(accept)
    message = commit(("orders", (0, 2, 9)), ("nope", (0,)))

    response = effects.drive(group_offsets.offset_commit(request(message, 9)))

    [effect] = effects.asked
    assert effect.key == "g"
    assert effect.request.member_id == "m"
    assert effect.request.generation_id_or_member_epoch == 3
    assert effect.request.group_instance_id == "i"
    [topic] = effect.request.topics
    assert [p.partition_index for p in topic.partitions] == [0, 2]
    assert commit_errors(response) == [
        ("orders", None, 0, ErrorCode.none),
        ("orders", None, 2, ErrorCode.offset_metadata_too_large),
        ("orders", None, 9, ErrorCode.unknown_topic_or_partition),
        ("nope", None, 0, ErrorCode.unknown_topic_or_partition),
    ]


def test_commits_by_id_become_commits_by_name():
    effects = Effects(accept)
    message = commit((TOPIC_ID, (0,)), (UNKNOWN_ID, (0,)))

    response = effects.drive(group_offsets.offset_commit(request(message, 10)))

    assert [topic.name for topic in effects.asked[0].request.topics] == ["orders"]
    assert commit_errors(response) == [
        ("orders", TOPIC_ID, 0, ErrorCode.none),
        ("", UNKNOWN_ID, 0, ErrorCode.unknown_topic_id),
    ]


def test_a_commit_of_nothing_that_exists_needs_no_coordinator():
    response = drive(group_offsets.offset_commit(request(commit(("nope", (0,))), 9)))

    assert commit_errors(response) == [("nope", None, 0, ErrorCode.unknown_topic_or_partition)]
    assert drive(group_offsets.offset_commit(request(commit(), 9))).topics == ()


# -- OffsetFetch -----------------------------------------------------------------------------------


def fetch(*groups: tuple[str, tuple[tuple[str | UUID, tuple[int, ...]], ...] | None]):
    return ask(
        9,
        groups=tuple(
            OffsetFetchRequestGroup(
                group_id=group_id,
                topics=None
                if topics is None
                else tuple(
                    OffsetFetchRequestTopics(
                        **(
                            {"name": ref, "topic_id": None}
                            if isinstance(ref, str)
                            else {"topic_id": ref}
                        ),
                        partition_indexes=indexes,
                    )
                    for ref, indexes in topics
                ),
            )
            for group_id, topics in groups
        ),
        require_stable=True,
    )


def offsets_of(*names: str, error: ErrorCode = ErrorCode.none):
    """A coordinator's answer: offset 5 in partition 0 of these topics."""

    def answer(effect: Coordinate) -> OffsetFetchResponse:
        assert type(effect.request) is OffsetFetchRequest
        return OffsetFetchResponse(
            throttle_time=timedelta(0),
            groups=(
                OffsetFetchResponseGroup(
                    group_id=effect.key,
                    error_code=error,
                    topics=tuple(
                        OffsetFetchResponseTopics(
                            name=name,
                            topic_id=None,
                            partitions=(
                                OffsetFetchResponsePartitions(
                                    partition_index=0,
                                    committed_offset=5,
                                    committed_leader_epoch=2,
                                    metadata="m",
                                    error_code=ErrorCode.none,
                                ),
                            ),
                        )
                        for name in names
                    ),
                ),
            ),
        )

    return answer


def fetched(group) -> list[tuple]:
    return [
        (topic.name, topic.topic_id, p.partition_index, p.committed_offset, p.error_code)
        for topic in group.topics
        for p in topic.partitions
    ]


def test_each_group_is_asked_of_its_own_coordinator():
    effects = Effects(offsets_of("orders"), offsets_of(error=ErrorCode.not_coordinator))

    response = effects.drive(
        group_offsets.offset_fetch(request(fetch(("a", (("orders", (0,)),)), ("b", None)), 9))
    )

    assert [effect.key for effect in effects.asked] == ["a", "b"]
    assert all(effect.request.require_stable for effect in effects.asked)
    assert effects.asked[0].request.groups[0].topics[0].name == "orders"
    assert effects.asked[1].request.groups[0].topics is None
    first, second = response.groups
    assert fetched(first) == [("orders", None, 0, 5, ErrorCode.none)]
    assert (second.group_id, second.error_code) == ("b", ErrorCode.not_coordinator)


def test_offsets_by_id():
    effects = Effects(offsets_of("orders"))
    message = fetch(("a", ((TOPIC_ID, (0,)), (UNKNOWN_ID, (0, 1)))))

    response = effects.drive(group_offsets.offset_fetch(request(message, 10)))

    assert [topic.name for topic in effects.asked[0].request.groups[0].topics] == ["orders"]
    assert fetched(response.groups[0]) == [
        ("orders", TOPIC_ID, 0, 5, ErrorCode.none),
        ("", UNKNOWN_ID, 0, -1, ErrorCode.unknown_topic_id),
        ("", UNKNOWN_ID, 1, -1, ErrorCode.unknown_topic_id),
    ]


def test_f52_a_topic_that_is_created_again_meanwhile_keeps_the_id_that_was_asked_for():
    asked = request(fetch(("a", ((TOPIC_ID, (0,)),))), 10)

    def coordinate(effect: Coordinate) -> OffsetFetchResponse:
        asked.image = image(topic("orders", UNKNOWN_ID, partition(1)))
        return offsets_of("orders")(effect)

    response = drive(group_offsets.offset_fetch(asked), coordinate)

    assert fetched(response.groups[0]) == [("orders", TOPIC_ID, 0, 5, ErrorCode.none)]


def test_offsets_of_a_deleted_topic_have_no_id_to_be_told_by():
    response = drive(
        group_offsets.offset_fetch(request(fetch(("a", None)), 10)),
        offsets_of("orders", "deleted"),
    )

    assert [topic.name for topic in response.groups[0].topics] == ["orders"]


def test_a_group_in_error_shows_no_topics():
    response = drive(
        group_offsets.offset_fetch(request(fetch(("a", ((UNKNOWN_ID, (0,)),))), 10)),
        offsets_of(error=ErrorCode.coordinator_load_in_progress),
    )

    [group] = response.groups
    assert (group.error_code, group.topics) == (ErrorCode.coordinator_load_in_progress, ())


# -- OffsetDelete ----------------------------------------------------------------------------------


def deletion(*topics: tuple[str, tuple[int, ...]]):
    return ask(
        47,
        group_id="g",
        topics=tuple(
            delete.OffsetDeleteRequestTopic(
                name=name,
                partitions=tuple(
                    delete.OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                ),
            )
            for name, indexes in topics
        ),
    )


def test_deletes_the_offsets_of_partitions_that_exist():
    coordinator_says = deleted.OffsetDeleteResponse(
        error_code=ErrorCode.none,
        throttle_time=timedelta(0),
        topics=(
            deleted.OffsetDeleteResponseTopic(
                name="orders",
                partitions=(
                    deleted.OffsetDeleteResponsePartition(
                        partition_index=0, error_code=ErrorCode.group_subscribed_to_topic
                    ),
                ),
            ),
        ),
    )
    effects = Effects(coordinator_says)

    response = effects.drive(
        group_offsets.offset_delete(request(deletion(("orders", (0, 9)), ("nope", (0,))), 0))
    )

    assert effects.asked == [Coordinate("g", deletion(("orders", (0,))))]
    assert [
        (topic.name, p.partition_index, p.error_code)
        for topic in response.topics
        for p in topic.partitions
    ] == [
        ("orders", 0, ErrorCode.group_subscribed_to_topic),
        ("orders", 9, ErrorCode.unknown_topic_or_partition),
        ("nope", 0, ErrorCode.unknown_topic_or_partition),
    ]


def test_a_groups_error_is_the_whole_answer():
    not_found = deleted.OffsetDeleteResponse(
        error_code=ErrorCode.group_id_not_found, throttle_time=timedelta(0), topics=()
    )

    assert drive(group_offsets.offset_delete(request(deletion(), 0)), not_found) is not_found
