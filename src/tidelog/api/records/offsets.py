"""ListOffsets (key 2), versions 1-11; OffsetForLeaderEpoch (23), 2-4; DeleteRecords (21), 0-2.

ListOffsets finds an offset by timestamp, or by one of Kafka's negative timestamps. If a request's
version predates a negative timestamp, the partition gets UNSUPPORTED_VERSION:

    -1 latest    -3 max timestamp  (v7+, KIP-734)  -5 latest tiered           (v9+, KIP-1005)
    -2 earliest  -4 earliest local (v8+, KIP-405)  -6 earliest pending upload (v11+, KIP-1023)

There is no tiered storage, so -4 is the earliest offset, and -5 and -6 find nothing. A partition
that is listed twice gets one INVALID_REQUEST. With isolation level 1 the latest offset is the last
stable offset (KIP-98). If the replica id in the request is a broker's id or the debugging id -2,
the latest offset is the log end offset. A request with the debugging id may be sent to a follower.

OffsetForLeaderEpoch returns the end offset of a leader epoch in this leader's log (KIP-101,
KIP-320).

DeleteRecords raises the log start offset (KIP-107). For internal topics it returns
INVALID_TOPIC_EXCEPTION.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

from kio.schema.delete_records.v2.response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kio.schema.list_offsets.v11.response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kio.schema.offset_for_leader_epoch.v4.response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)

from tidelog.api.groups.internal_topics import INTERNAL_TOPICS
from tidelog.api.handler import Handling, Request
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
from tidelog.model.ids import Millis, TopicPartition

_LATEST_TIERED = -5
_EARLIEST_PENDING_UPLOAD = -6
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1

_FIRST_VERSION_OF = {-1: 0, -2: 0, -3: 7, -4: 8, _LATEST_TIERED: 9, _EARLIEST_PENDING_UPLOAD: 11}


def list_offsets(request: Request) -> Handling:
    """Finds offsets by timestamp, at the ends of the log, or at its largest timestamp."""
    message = request.message
    asked = list(_partitions(message.topics))
    times = Counter(partition for partition, _ in asked)
    answers = {
        partition: OffsetFound(_refusal(request, of.timestamp, times[partition]))
        for partition, of in asked
    }
    queries = [
        OffsetQuery(partition, _timestamp(of.timestamp), of.current_leader_epoch)
        for partition, of in asked
        if answers[partition].error is ErrorCode.none
    ]
    if queries:
        is_committed = message.isolation_level == _READ_COMMITTED
        found = yield FindOffsets(queries, is_committed, message.replica_id)
        answers |= zip((query.partition for query in queries), found, strict=True)
    return ListOffsetsResponse(throttle_time=timedelta(0), topics=tuple(_by_topic(answers)))


def _by_topic(answers: Mapping[TopicPartition, OffsetFound]) -> Iterator[ListOffsetsTopicResponse]:
    by_topic: dict[str, list[ListOffsetsPartitionResponse]] = {}
    for (topic, index), found in answers.items():
        by_topic.setdefault(topic, []).append(_listed(index, found))
    for topic, partitions in by_topic.items():
        yield ListOffsetsTopicResponse(name=topic, partitions=tuple(partitions))


def _partitions(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    for topic in topics:
        for of in topic.partitions:
            yield TopicPartition(topic.name, of.partition_index), of


def _refusal(request: Request, timestamp: Millis, times: int) -> ErrorCode:
    if times > 1 or request.message.isolation_level not in (_READ_UNCOMMITTED, _READ_COMMITTED):
        return ErrorCode.invalid_request
    first = 0 if timestamp >= 0 else _FIRST_VERSION_OF.get(timestamp)
    if first is None or request.version < first:
        return ErrorCode.unsupported_version
    return ErrorCode.none


def _timestamp(asked: Millis) -> Millis:
    return _LATEST_TIERED if asked == _EARLIEST_PENDING_UPLOAD else asked


def _listed(index: int, found: OffsetFound) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=found.error,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def offset_for_leader_epoch(request: Request) -> Handling:
    """Returns the end offsets of leader epochs."""
    topics = request.message.topics
    queries = [
        EpochQuery(
            TopicPartition(topic.topic, of.partition), of.current_leader_epoch, of.leader_epoch
        )
        for topic in topics
        for of in topic.partitions
    ]
    found = iter((yield FindEpochEnds(queries)) if queries else [])
    return OffsetForLeaderEpochResponse(
        throttle_time=timedelta(0),
        topics=tuple(
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=tuple(
                    [_epoch_end(of.partition, next(found)) for of in topic.partitions]
                ),
            )
            for topic in topics
        ),
    )


def _epoch_end(partition: int, found: EpochFound) -> EpochEndOffset:
    return EpochEndOffset(
        error_code=found.error,
        partition=partition,
        leader_epoch=found.leader_epoch,
        end_offset=found.end_offset,
    )


def delete_records(request: Request) -> Handling:
    """Raises the log start offset of partitions, which deletes the records below it."""
    message = request.message
    deletions = [
        RecordDeletion(partition, of.offset)
        for partition, of in _partitions(message.topics)
        if partition.topic not in INTERNAL_TOPICS
    ]
    timeout_ms = message.timeout // timedelta(milliseconds=1)
    deleted = iter((yield DeleteRecordsBefore(deletions, timeout_ms)) if deletions else [])
    refused = RecordsDeleted(ErrorCode.invalid_topic_exception)
    return DeleteRecordsResponse(
        throttle_time=timedelta(0),
        topics=tuple(
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=tuple(
                    [
                        _deleted(of, refused if topic.name in INTERNAL_TOPICS else next(deleted))
                        for of in topic.partitions
                    ]
                ),
            )
            for topic in message.topics
        ),
    )


def _deleted(of: Any, deleted: RecordsDeleted) -> DeleteRecordsPartitionResult:
    return DeleteRecordsPartitionResult(
        partition_index=of.partition_index,
        low_watermark=deleted.low_watermark,
        error_code=deleted.error,
    )
