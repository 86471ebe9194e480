"""DescribeQuorum: the leader, the voters and the observers, with the log end offset of each.

Only the leader knows the log end offsets. Any other controller answers NOT_LEADER_OR_FOLLOWER. A
broker that receives the request forwards it to the leader.
"""

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.describe_quorum.v2.response import (
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, Millis
from tidelog.node.clock import Clock
from tidelog.replication.quorum.machine import QuorumMachine
from tidelog.replication.quorum.roles import Leader, ReplicaProgress
from tidelog.replication.quorum.state import ReplicaKey, VoterSet

OBSERVER_SILENCE_MS: Millis = 300_000
"""An observer that has not fetched for this long is no longer listed."""

_NO_MESSAGE = ""
"""Kafka sends an empty message here, not null."""


def describe(
    machine: QuorumMachine, message: DescribeQuorumRequest, clock: Clock
) -> DescribeQuorumResponse:
    """The response, with wall-clock times; an error response if this node does not lead."""
    if not _asks_for_metadata(message):
        return _refused(message, ErrorCode.unknown_topic_or_partition)
    role, voters, now, ahead_ms = machine.role, machine.voters, clock.now, clock.ahead_ms
    if not isinstance(role, Leader):
        return _refused(message, ErrorCode.not_leader_or_follower)
    described = PartitionData(
        partition_index=0,
        error_code=ErrorCode.none,
        error_message=_NO_MESSAGE,
        leader_id=machine.me.id,
        leader_epoch=role.epoch,
        high_watermark=role.high_watermark,
        current_voters=tuple(
            _state(machine, role, voters.voters[voter].key, now, ahead_ms) for voter in voters
        ),
        observers=tuple(
            _state(machine, role, key, now, ahead_ms)
            for key in _observers(role, voters, machine.me, now)
        ),
    )
    return DescribeQuorumResponse(
        error_code=ErrorCode.none,
        error_message=_NO_MESSAGE,
        topics=(TopicData(topic_name=METADATA_TOPIC, partitions=(described,)),),
        nodes=_nodes(voters),
    )


def _asks_for_metadata(message: DescribeQuorumRequest) -> bool:
    asked = [
        (topic.topic_name, one.partition_index)
        for topic in message.topics
        for one in topic.partitions
    ]
    return asked == [(METADATA_TOPIC, 0)]


def _observers(role: Leader, voters: VoterSet, me: ReplicaKey, now: Millis) -> list[ReplicaKey]:
    return sorted(
        (
            key
            for key, progress in role.progress.items()
            if key not in voters
            and key.id != me.id
            and now - progress.last_fetch < OBSERVER_SILENCE_MS
        ),
        key=lambda key: key.id,
    )


def _state(
    machine: QuorumMachine, role: Leader, key: ReplicaKey, now: Millis, ahead_ms: Millis
) -> ReplicaState:
    if key.id == machine.me.id:
        progress = ReplicaProgress(end=machine.log_end.offset, last_fetch=now, last_caught_up=now)
    else:
        progress = role.progress[key]
    return ReplicaState(
        replica_id=key.id,
        replica_directory_id=key.directory,
        log_end_offset=progress.end,
        last_fetch_timestamp=_shown(progress.last_fetch, ahead_ms),
        last_caught_up_timestamp=_shown(progress.last_caught_up, ahead_ms),
    )


def _shown(time: Millis, ahead_ms: Millis) -> Millis:
    """Convert a time of the node's clock to wall-clock time; a negative time means never."""
    return time if time < 0 else time + ahead_ms


def _nodes(voters: VoterSet) -> tuple[Node, ...]:
    return tuple(
        Node(
            node_id=voter,
            listeners=tuple(
                Listener(name=name, host=host, port=port)
                for name, host, port in voters.voters[voter].endpoints
            ),
        )
        for voter in voters
    )


def _refused(message: DescribeQuorumRequest, error: ErrorCode) -> DescribeQuorumResponse:
    return DescribeQuorumResponse(
        error_code=ErrorCode.none,
        error_message=_NO_MESSAGE,
        topics=tuple(
            TopicData(
                topic_name=topic.topic_name,
                partitions=tuple(
                    PartitionData(
                        partition_index=partition.partition_index,
                        error_code=error,
                        error_message=_NO_MESSAGE,
                        leader_id=0,  # Kafka sends zero for an unknown leader
                        leader_epoch=0,
                        high_watermark=0,
                        current_voters=(),
                        observers=(),
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in message.topics
        ),
        nodes=(),
    )
