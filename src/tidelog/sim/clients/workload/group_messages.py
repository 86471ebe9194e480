"""The requests of a classic group member, and the encoding of subscriptions and assignments."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from struct import Struct
from typing import Any
from uuid import UUID

from kio.schema.consumer_group_heartbeat.v1.request import TopicPartitions
from kio.schema.join_group.v9.request import JoinGroupRequestProtocol
from kio.schema.offset_commit.v10.request import OffsetCommitRequestPartition
from kio.schema.sync_group.v5.request import SyncGroupRequestAssignment

from tidelog.model.ids import Offset, TopicPartition
from tidelog.protocol.messages.canonical import (
    OffsetCommitRequestTopic,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tidelog.sim.clients.messages import ask

FIND_COORDINATOR, JOIN, SYNC, HEARTBEAT, COMMIT, FETCH_OFFSETS = 10, 11, 14, 12, 8, 9
CONSUMER_GROUP_HEARTBEAT = 68
BY_NAME = 8
"""A version of OffsetCommit and OffsetFetch that identifies topics by name."""
WITH_EPOCH = 9
"""The version of OffsetCommit and OffsetFetch with names of topics and member epochs."""
SESSION_MS, REBALANCE_MS = 6_000, 6_000

_SHORT, _INT, _HEAD = Struct(">h"), Struct(">i"), Struct(">hi")


def find_coordinator(group: str) -> Any:
    return ask(FIND_COORDINATOR, key_type=0, coordinator_keys=(group,))


def join(group: str, member: str, topics: Sequence[str]) -> Any:
    subscribed = _HEAD.pack(0, len(topics)) + b"".join(map(_string, topics)) + _INT.pack(-1)
    return ask(
        JOIN,
        group_id=group,
        session_timeout=timedelta(milliseconds=SESSION_MS),
        rebalance_timeout=timedelta(milliseconds=REBALANCE_MS),
        member_id=member,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=subscribed),),
    )


def sync(
    group: str, generation: int, member: str, shares: Mapping[str, Sequence[TopicPartition]]
) -> Any:
    return ask(
        SYNC,
        group_id=group,
        generation_id=generation,
        member_id=member,
        protocol_type="consumer",
        protocol_name="range",
        assignments=tuple(
            SyncGroupRequestAssignment(member_id=one, assignment=_assignment(share))
            for one, share in shares.items()
        ),
    )


def heartbeat(group: str, generation: int, member: str) -> Any:
    return ask(HEARTBEAT, group_id=group, generation_id=generation, member_id=member)


def consumer_heartbeat(
    group: str,
    member: str,
    epoch: int,
    topics: Sequence[str] | None = None,
    owned: Mapping[UUID, Sequence[int]] | None = None,
) -> Any:
    """ConsumerGroupHeartbeat. With topics, it is a full request; None leaves a field unchanged."""
    return ask(
        CONSUMER_GROUP_HEARTBEAT,
        group_id=group,
        member_id=member,
        member_epoch=epoch,
        instance_id=None,
        rack_id=None,
        rebalance_timeout=timedelta(milliseconds=-1 if topics is None else 2 * REBALANCE_MS),
        subscribed_topic_names=None if topics is None else tuple(topics),
        subscribed_topic_regex=None,
        server_assignor=None,
        topic_partitions=None
        if owned is None
        else tuple(
            TopicPartitions(topic_id=topic_id, partitions=tuple(sorted(indexes)))
            for topic_id, indexes in sorted(owned.items())
        ),
    )


def commit(
    group: str, generation: int, member: str, offsets: Mapping[TopicPartition, Offset]
) -> Any:
    topics = tuple(_committed(partition, offset) for partition, offset in sorted(offsets.items()))
    return ask(
        COMMIT,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=topics,
    )


def _committed(partition: TopicPartition, offset: Offset) -> OffsetCommitRequestTopic:
    one = OffsetCommitRequestPartition(
        partition_index=partition.partition, committed_offset=offset, committed_metadata=""
    )
    return OffsetCommitRequestTopic(topic_id=None, name=partition.topic, partitions=(one,))


def fetch_offsets(
    group: str,
    partitions: Sequence[TopicPartition],
    member: str | None = None,
    epoch: int = -1,
) -> Any:
    topics = tuple(
        OffsetFetchRequestTopics(topic_id=None, name=one.topic, partition_indexes=(one.partition,))
        for one in partitions
    )
    wanted = OffsetFetchRequestGroup(
        group_id=group, member_id=member, member_epoch=epoch, topics=topics
    )
    return ask(FETCH_OFFSETS, groups=(wanted,), require_stable=True)


def partitions_in(assignment: bytes) -> list[TopicPartition]:
    if not assignment:
        return []
    found: list[TopicPartition] = []
    _, topics = _HEAD.unpack_from(assignment)
    at = _HEAD.size
    for _ in range(topics):
        (length,) = _SHORT.unpack_from(assignment, at)
        name = assignment[at + 2 : at + 2 + length].decode()
        at += 2 + length
        (count,) = _INT.unpack_from(assignment, at)
        at += 4
        for _ in range(count):
            found.append(TopicPartition(name, _INT.unpack_from(assignment, at)[0]))
            at += 4
    return found


def _assignment(share: Sequence[TopicPartition]) -> bytes:
    parts = (_string(topic) + _INT.pack(1) + _INT.pack(index) for topic, index in share)
    return _HEAD.pack(0, len(share)) + b"".join(parts) + _INT.pack(-1)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _SHORT.pack(len(encoded)) + encoded
