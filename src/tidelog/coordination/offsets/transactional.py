"""TxnOffsetCommit (key 28): offsets that become visible when their transaction is committed.

The offsets are appended as records of the transaction. Until its marker is appended, they are
pending (F76). A consumer that names its member id and generation is fenced like in OffsetCommit, so
a zombie cannot commit for partitions that another member owns now (KIP-447). Older producers name
neither.
"""

from collections.abc import Callable

from kio.schema.txn_offset_commit.v5.request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kio.schema.txn_offset_commit.v5.response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

from tidelog.coordination.groups.kind import CoordinatedGroup, GroupDecision, GroupRecord, OfKind
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.offsets.offset_messages import NO_THROTTLE
from tidelog.coordination.offsets.offset_metadata import is_too_long
from tidelog.coordination.records import OffsetCommitKey, OffsetCommitValue
from tidelog.coordination.runtime.decision import (
    CoordinatorRequest,
    Instant,
    ProducerIdAndEpoch,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_TOPIC_ID


def commit_in_transaction(
    shard: GroupShardState, request: CoordinatorRequest, at: Instant
) -> GroupDecision:
    """Append offsets to the producer's open transaction."""
    message: TxnOffsetCommitRequest = request.message
    group = shard.groups.get(message.group_id)
    error = _check(group, message)
    if error is ErrorCode.none and group is not None and _names_member(message):
        error = _check_partitions(shard, group, message, at)
    if error is not ErrorCode.none:
        return GroupDecision(response=refused_txn_commit(message, error), at_once=True)
    records: list[GroupRecord] = []

    def take(
        topic: TxnOffsetCommitRequestTopic, partition: TxnOffsetCommitRequestPartition
    ) -> ErrorCode:
        metadata = partition.committed_metadata or ""
        if is_too_long(metadata, shard):
            return ErrorCode.offset_metadata_too_large
        value = OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=at.wall,
        )
        key = OffsetCommitKey(message.group_id, topic.name, partition.partition_index)
        records.append((key, value))
        return ErrorCode.none

    response = _response(message, take)
    return GroupDecision(
        records=tuple(records),
        response=response,
        changes=_changes(group, message, at),
        at_once=not records,
        producer=ProducerIdAndEpoch(message.producer_id, message.producer_epoch),
    )


def refused_txn_commit(
    request: TxnOffsetCommitRequest, error: ErrorCode
) -> TxnOffsetCommitResponse:
    return _response(request, lambda topic, partition: error)


def _response(
    request: TxnOffsetCommitRequest,
    check: Callable[[TxnOffsetCommitRequestTopic, TxnOffsetCommitRequestPartition], ErrorCode],
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=check(topic, partition),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _check(group: CoordinatedGroup | None, request: TxnOffsetCommitRequest) -> ErrorCode:
    if not _names_member(request):
        return ErrorCode.none
    if group is None:
        return ErrorCode.illegal_generation
    error = group.check_commit(
        request.member_id, request.group_instance_id, request.generation_id, None
    )
    if error is ErrorCode.rebalance_in_progress:
        return ErrorCode.none  # the transaction ends what the member did before the rebalance
    return _known_to_producers(error)


def _check_partitions(
    shard: GroupShardState, group: CoordinatedGroup, request: TxnOffsetCommitRequest, at: Instant
) -> ErrorCode:
    """The error of the first partition that the member may not commit; it refuses them all."""
    for topic in request.topics:
        known = at.image.topics.get(topic.name)
        topic_id = ZERO_TOPIC_ID if known is None else known.topic_id
        for one in topic.partitions:
            if is_too_long(one.committed_metadata or "", shard):
                continue
            error = group.check_committed_partition(
                request.member_id, request.generation_id, topic_id, one.partition_index
            )
            if error is not ErrorCode.none:
                return _known_to_producers(error)
    return ErrorCode.none


def _known_to_producers(error: ErrorCode) -> ErrorCode:
    """Producers know generations only."""
    return ErrorCode.illegal_generation if error is ErrorCode.stale_member_epoch else error


def _names_member(request: TxnOffsetCommitRequest) -> bool:
    return (
        request.generation_id >= 0
        or request.member_id != ""
        or request.group_instance_id is not None
    )


def _changes(
    group: CoordinatedGroup | None, request: TxnOffsetCommitRequest, at: Instant
) -> tuple[OfKind, ...]:
    if group is None or not _names_member(request):
        return ()
    changes = group.commit_changes(request.member_id, at)
    return tuple(OfKind(group.type_name, change) for change in changes)
