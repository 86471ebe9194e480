"""OffsetCommit (key 8), OffsetFetch (key 9) and OffsetDelete (key 47).

A commit is answered when it is committed to the log, and so is a fetch that returns its offsets.
With require_stable, a fetch returns UNSTABLE_OFFSET_COMMIT for a partition that has offsets in an
open transaction (KIP-447). Consumers that assign partitions manually commit with generation -1. A
commit with generation -1 is accepted only if the group has no members.
"""

from collections.abc import Callable
from datetime import timedelta

from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.offset_delete.v0.request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kio.schema.offset_delete.v0.response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic.draft import GroupChanged
from tidelog.coordination.groups.classic.group import CLASSIC, simple_group
from tidelog.coordination.groups.kind import (
    CoordinatedGroup,
    GroupDecision,
    GroupRecord,
    OfKind,
)
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.offsets.offset_messages import (
    NO_THROTTLE,
    commit_response,
    fetch_response,
    fetched_partition,
    fetched_topics,
    refused_commit,
    refused_group,
)
from tidelog.coordination.offsets.offset_metadata import is_too_long
from tidelog.coordination.records import OffsetCommitKey, OffsetCommitValue
from tidelog.coordination.runtime.decision import CoordinatorRequest, Instant
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_TIMESTAMP, ZERO_TOPIC_ID, Millis, TopicId
from tidelog.protocol.messages.canonical import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)

_GROUP_ID_NOT_FOUND_SINCE = 9
_BROKER_RETENTION = -1
_MILLISECOND = timedelta(milliseconds=1)

# -- OffsetCommit ----------------------------------------------------------------------------------


def commit(shard: GroupShardState, request: CoordinatorRequest, at: Instant) -> GroupDecision:
    message: OffsetCommitRequest = request.message
    group = shard.groups.get(message.group_id)
    error = _check_commit(group, message, request.version)
    if error is ErrorCode.none:
        error = _check_partitions(shard, group, message, at)
    if error is not ErrorCode.none:
        return GroupDecision(response=refused_commit(message, error), at_once=True)
    expires = _expire_timestamp(message, at.wall)
    records: list[GroupRecord] = []

    def take(topic: OffsetCommitRequestTopic, partition: OffsetCommitRequestPartition) -> ErrorCode:
        metadata = partition.committed_metadata or ""
        if is_too_long(metadata, shard):
            return ErrorCode.offset_metadata_too_large
        key = OffsetCommitKey(message.group_id, topic.name, partition.partition_index)
        value = OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=at.wall,
            expire_timestamp=expires,
            topic_id=topic.topic_id or ZERO_TOPIC_ID,
        )
        records.append((key, value))
        return ErrorCode.none

    response = commit_response(message, take)
    return GroupDecision(
        records=tuple(records),
        response=response,
        changes=_group_changes(group, message, at),
        at_once=not records,
    )


def _group_changes(
    group: CoordinatedGroup | None, message: OffsetCommitRequest, at: Instant
) -> tuple[OfKind, ...]:
    if group is None:
        # As in Kafka, the group exists even if every partition is refused and nothing is stored.
        return (OfKind(CLASSIC, GroupChanged(simple_group(message.group_id))),)
    changes = group.commit_changes(message.member_id, at)
    return tuple(OfKind(group.type_name, change) for change in changes)


def _expire_timestamp(request: OffsetCommitRequest, now: Millis) -> Millis:
    """When the offsets expire; NO_TIMESTAMP if the request sets no retention time.

    Only requests of versions 2 to 4 can set a retention time. For all others, the broker's
    retention time applies.
    """
    retention_ms = request.retention_time // _MILLISECOND
    return NO_TIMESTAMP if retention_ms == _BROKER_RETENTION else now + retention_ms


def _check_commit(
    group: CoordinatedGroup | None, request: OffsetCommitRequest, version: int
) -> ErrorCode:
    epoch = request.generation_id_or_member_epoch
    if group is not None:
        return group.check_commit(request.member_id, request.group_instance_id, epoch, version)
    if epoch < 0:
        return ErrorCode.none
    if version >= _GROUP_ID_NOT_FOUND_SINCE:
        return ErrorCode.group_id_not_found
    return ErrorCode.illegal_generation


def _check_partitions(
    shard: GroupShardState,
    group: CoordinatedGroup | None,
    request: OffsetCommitRequest,
    at: Instant,
) -> ErrorCode:
    """The error of the first partition that the member may not commit.

    As in Kafka, such a partition refuses the whole request.
    """
    if group is None:
        return ErrorCode.none
    member_id, epoch = request.member_id, request.generation_id_or_member_epoch
    for topic in request.topics:
        topic_id = _topic_id(topic, at)
        for one in topic.partitions:
            if is_too_long(one.committed_metadata or "", shard):
                continue
            index = one.partition_index
            error = group.check_committed_partition(member_id, epoch, topic_id, index)
            if error is not ErrorCode.none:
                return error
    return ErrorCode.none


def _topic_id(topic: OffsetCommitRequestTopic, at: Instant) -> TopicId:
    """The topic's id. A request before version 10 contains the name only."""
    if topic.topic_id is not None:
        return topic.topic_id
    known = at.image.topics.get(topic.name)
    return ZERO_TOPIC_ID if known is None else known.topic_id


# -- OffsetFetch -----------------------------------------------------------------------------------


def fetch(shard: GroupShardState, request: CoordinatorRequest) -> GroupDecision:
    """Fetch offsets. As any read, the response leaves when the offsets in it are committed."""
    message: OffsetFetchRequest = request.message
    response = fetch_response(
        _fetch_group(shard, group, message.require_stable, request.version)
        for group in message.groups
    )
    return GroupDecision(response=response)


def _fetch_group(
    shard: GroupShardState, asked: OffsetFetchRequestGroup, is_stable: bool, version: int
) -> OffsetFetchResponseGroup:
    group = shard.groups.get(asked.group_id)
    if group is not None:
        error = group.check_fetch(asked.member_id, asked.member_epoch)
        if error is not ErrorCode.none:
            return refused_group(asked, error, version)
    return _fetched(shard, asked, is_stable)


def _fetched(
    shard: GroupShardState, group: OffsetFetchRequestGroup, is_stable: bool
) -> OffsetFetchResponseGroup:
    offsets = shard.offsets

    def lookup(topic: OffsetFetchRequestTopics, partition: int) -> OffsetCommitValue | None:
        value = offsets.get(group.group_id, topic.name, partition)
        if value is None or ZERO_TOPIC_ID in (value.topic_id, topic.topic_id or ZERO_TOPIC_ID):
            return value
        # An offset of a deleted topic does not apply to a new topic of the same name.
        return value if value.topic_id == topic.topic_id else None

    def check(topic: str, partition: int) -> ErrorCode:
        if is_stable and OffsetCommitKey(group.group_id, topic, partition) in offsets.pending:
            return ErrorCode.unstable_offset_commit
        return ErrorCode.none

    if group.topics is None:
        topics = _all_offsets(shard, group.group_id, check)
    else:
        topics = fetched_topics(group.topics, lookup, check)
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _all_offsets(
    shard: GroupShardState, group_id: str, check: Callable[[str, int], ErrorCode]
) -> tuple[OffsetFetchResponseTopics, ...]:
    """Every offset of the group; the API layer adds the current topic ids."""
    by_topic: dict[str, list[tuple[int, OffsetCommitValue]]] = {}
    for key, value in shard.offsets.of_group(group_id):
        by_topic.setdefault(key.topic, []).append((key.partition, value))
    return tuple(
        OffsetFetchResponseTopics(
            name=topic,
            topic_id=None,
            partitions=tuple(
                fetched_partition(partition, value, check(topic, partition))
                for partition, value in found
            ),
        )
        for topic, found in by_topic.items()
    )


# -- OffsetDelete ----------------------------------------------------------------------------------


def delete_offsets(shard: GroupShardState, request: OffsetDeleteRequest) -> GroupDecision:
    """Delete offsets of topics that the group does not subscribe to."""
    group = shard.groups.get(request.group_id)
    error = _check_delete(group, request)
    if error is not ErrorCode.none:
        return GroupDecision(response=replies.refusal(request, error, 0))
    assert group is not None
    pending = shard.offsets.pending.of_group(request.group_id)
    records = tuple(
        (key, None)
        for key in _keys_to_delete(group, request)
        if key in pending or shard.offsets.get(key.group, key.topic, key.partition) is not None
    )
    response = OffsetDeleteResponse(
        error_code=ErrorCode.none,
        throttle_time=NO_THROTTLE,
        topics=tuple(_deleted(group, topic) for topic in request.topics),
    )
    return GroupDecision(records=records, response=response, is_atomic=False)


def _check_delete(group: CoordinatedGroup | None, request: OffsetDeleteRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.invalid_group_id
    return ErrorCode.group_id_not_found if group is None else group.check_offset_delete()


def _keys_to_delete(group: CoordinatedGroup, request: OffsetDeleteRequest) -> list[OffsetCommitKey]:
    return [
        OffsetCommitKey(group.group_id, topic.name, partition.partition_index)
        for topic in request.topics
        if not group.is_subscribed_to(topic.name)
        for partition in topic.partitions
    ]


def _deleted(group: CoordinatedGroup, topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
    subscribed = group.is_subscribed_to(topic.name)
    error = ErrorCode.group_subscribed_to_topic if subscribed else ErrorCode.none
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=tuple(
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index, error_code=error
            )
            for partition in topic.partitions
        ),
    )
