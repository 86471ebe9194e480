"""OffsetCommit (key 8), OffsetFetch (key 9) and OffsetDelete (key 47).

A commit is answered when it is durable. From then on, fetches return its offsets. Consumers that
assign partitions manually commit with generation -1. A commit with generation -1 is accepted only
if the group has no members.
"""

from datetime import timedelta

from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.offset_delete.v0.request import OffsetDeleteRequest, OffsetDeleteRequestTopic
from kio.schema.offset_delete.v0.response import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

from tidelog.coordination.core import Change, ShardCore
from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic import rebalancing
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.java_strings import utf16_length
from tidelog.coordination.offsets.offset_messages import (
    NO_THROTTLE,
    commit_response,
    fetch_response,
    fetched_partition,
    fetched_topics,
    refused_commit,
    refused_fetch,
)
from tidelog.coordination.records import OffsetCommitKey, OffsetCommitValue
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_TIMESTAMP, ZERO_TOPIC_ID, Millis
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


def commit(core: ShardCore, request: OffsetCommitRequest, version: int, ticket: int) -> None:
    group = core.groups.get(request.group_id)
    error = _check_commit(group, request, version)
    if error is not ErrorCode.none:
        core.answer(ticket, refused_commit(request, error))
        return
    core.ensure_group(request.group_id)
    if group is not None and group.is_in(GroupState.STABLE, GroupState.PREPARING_REBALANCE):
        rebalancing.renew_session(core, group, group.members[request.member_id])
    expires = _expire_timestamp(request, core.wall)
    changes: list[Change] = []

    def take(topic: OffsetCommitRequestTopic, partition: OffsetCommitRequestPartition) -> ErrorCode:
        metadata = partition.committed_metadata or ""
        if utf16_length(metadata) > core.settings.offset_metadata_max_bytes:
            return ErrorCode.offset_metadata_too_large
        key = OffsetCommitKey(request.group_id, topic.name, partition.partition_index)
        value = OffsetCommitValue(
            offset=partition.committed_offset,
            leader_epoch=partition.committed_leader_epoch,
            metadata=metadata,
            commit_timestamp=core.wall,
            expire_timestamp=expires,
            topic_id=topic.topic_id or ZERO_TOPIC_ID,
        )
        changes.append((key, value))
        return ErrorCode.none

    response = commit_response(request, take)
    if not changes:
        core.answer(ticket, response)
        return

    def settled(error: ErrorCode) -> None:
        good = error is ErrorCode.none
        core.answer(ticket, response if good else refused_commit(request, error))

    core.write(changes, settled, undo=lambda error: core.forget_simple_group(request.group_id))


def _expire_timestamp(request: OffsetCommitRequest, now: Millis) -> Millis:
    """When the offsets expire; NO_TIMESTAMP if the request sets no retention time.

    Only requests of versions 2 to 4 can set a retention time. For all others, the broker's
    retention time applies.
    """
    retention_ms = request.retention_time // _MILLISECOND
    return NO_TIMESTAMP if retention_ms == _BROKER_RETENTION else now + retention_ms


def _check_commit(
    group: ClassicGroup | None, request: OffsetCommitRequest, version: int
) -> ErrorCode:
    generation = request.generation_id_or_member_epoch
    if group is None:
        if generation < 0:
            return ErrorCode.none
        if version >= _GROUP_ID_NOT_FOUND_SINCE:
            return ErrorCode.group_id_not_found
        return ErrorCode.illegal_generation
    if generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.none
    error = group.validate_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.none:
        return error
    if generation != group.generation:
        return ErrorCode.illegal_generation
    if group.state is GroupState.COMPLETING_REBALANCE:
        # The member knows the new generation but not its assignment, so it must not commit yet.
        return ErrorCode.rebalance_in_progress
    return ErrorCode.none


# -- OffsetFetch -----------------------------------------------------------------------------------


def fetch(core: ShardCore, request: OffsetFetchRequest, version: int, ticket: int) -> None:
    """Fetch offsets; with require_stable, wait until the commits in flight have completed."""
    up_to = core.newest_in_flight(core.last_write) if request.require_stable else None
    if up_to is None:
        _answer_fetch(core, request, ticket)
    else:
        _fetch_after(core, request, version, ticket, up_to)


def _fetch_after(
    core: ShardCore, request: OffsetFetchRequest, version: int, ticket: int, write_id: int
) -> None:
    def settled(error: ErrorCode) -> None:
        earlier = core.newest_in_flight(write_id)
        if error is ErrorCode.none:
            _answer_fetch(core, request, ticket)
        elif earlier == write_id or error is ErrorCode.not_coordinator:
            # The write timed out. Consumers do not expect a timeout error here, but they retry
            # after NOT_COORDINATOR.
            core.answer(ticket, refused_fetch(request, ErrorCode.not_coordinator, version))
        elif earlier is None:
            _answer_fetch(core, request, ticket)
        else:
            _fetch_after(core, request, version, ticket, earlier)

    core.when_settled(write_id, settled)


def _answer_fetch(core: ShardCore, request: OffsetFetchRequest, ticket: int) -> None:
    core.answer(ticket, fetch_response(_fetched(core, group) for group in request.groups))


def _fetched(core: ShardCore, group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    def lookup(topic: OffsetFetchRequestTopics, partition: int) -> OffsetCommitValue | None:
        value = core.offsets.get(group.group_id, topic.name, partition)
        if value is None or ZERO_TOPIC_ID in (value.topic_id, topic.topic_id or ZERO_TOPIC_ID):
            return value
        # An offset of a deleted topic does not apply to a new topic of the same name.
        return value if value.topic_id == topic.topic_id else None

    if group.topics is None:
        topics = _all_offsets(core, group.group_id)
    else:
        topics = fetched_topics(group.topics, lookup)
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _all_offsets(core: ShardCore, group_id: str) -> tuple[OffsetFetchResponseTopics, ...]:
    """Every offset of the group; the API layer adds the current topic ids."""
    by_topic: dict[str, list[tuple[int, OffsetCommitValue]]] = {}
    for key, value in core.offsets.of_group(group_id):
        by_topic.setdefault(key.topic, []).append((key.partition, value))
    return tuple(
        OffsetFetchResponseTopics(
            name=topic,
            topic_id=None,
            partitions=tuple(fetched_partition(partition, value) for partition, value in found),
        )
        for topic, found in by_topic.items()
    )


# -- OffsetDelete ----------------------------------------------------------------------------------


def delete_offsets(core: ShardCore, request: OffsetDeleteRequest, ticket: int) -> None:
    """Delete offsets of topics that the group does not subscribe to."""
    group = core.groups.get(request.group_id)
    error = _check_delete(group, request)
    if error is not ErrorCode.none:
        core.answer(ticket, replies.refusal(request, error, 0))
        return
    assert group is not None
    in_flight = core.offsets_in_flight(request.group_id)
    changes: list[Change] = [
        (key, None)
        for key in _keys_to_delete(group, request)
        if key in in_flight or core.offsets.get(key.group, key.topic, key.partition) is not None
    ]
    response = OffsetDeleteResponse(
        error_code=ErrorCode.none,
        throttle_time=NO_THROTTLE,
        topics=tuple(_deleted(group, topic) for topic in request.topics),
    )

    def settled(error: ErrorCode) -> None:
        good = error is ErrorCode.none
        core.answer(ticket, response if good else replies.refusal(request, error, 0))

    if changes:
        core.write_parts(changes, settled)
    else:
        settled(ErrorCode.none)


def _check_delete(group: ClassicGroup | None, request: OffsetDeleteRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.invalid_group_id
    if group is None:
        return ErrorCode.group_id_not_found
    if group.state is not GroupState.EMPTY and not group.uses_consumer_protocol:
        return ErrorCode.non_empty_group
    return ErrorCode.none


def _keys_to_delete(group: ClassicGroup, request: OffsetDeleteRequest) -> list[OffsetCommitKey]:
    return [
        OffsetCommitKey(group.group_id, topic.name, partition.partition_index)
        for topic in request.topics
        if not group.is_subscribed_to(topic.name)
        for partition in topic.partitions
    ]


def _deleted(group: ClassicGroup, topic: OffsetDeleteRequestTopic) -> OffsetDeleteResponseTopic:
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
