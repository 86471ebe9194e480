"""Replication events, as recorded in the topic `__tidelog_replication_events`.

Invariant: an event describes a committed change, never a planned one. It is created when the commit
is known. A record is one JSON object. docs/replication-events.md is the contract with consumers.
Existing events and fields keep their meaning, and new ones may be added.
"""

import json
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple, TypeAlias

from tidelog.model.ids import BrokerEpoch, LeaderEpoch, Millis, NodeId, Offset, TopicPartition

REPLICATION_EVENTS = "__tidelog_replication_events"
SCHEMA_VERSION = 1


class LeaveReason(StrEnum):
    """Why a replica left the in-sync set."""

    STUCK = "stuck"
    """The replica has not fetched at all for replica.lag.time.max.ms."""
    SLOW = "slow"
    """The replica fetches, but has not caught up for replica.lag.time.max.ms."""
    DEAD = "dead"
    """The replica's broker was fenced, or has restarted as another process."""
    SHUTTING_DOWN = "shutting-down"
    LOG_DIR_FAILED = "log-dir-failed"


class ElectionReason(StrEnum):
    """Why a partition has a new leader. Most reasons say why the former leader lost its role."""

    CREATED = "created"
    DEAD = "dead"
    SHUTTING_DOWN = "shutting-down"
    LOG_DIR_FAILED = "log-dir-failed"
    PREFERRED = "preferred"
    REASSIGNED = "reassigned"
    RETURNED = "returned"
    """There was no leader, and an eligible replica has returned."""
    UNCLEAN = "unclean"
    """The new leader may lack committed records."""


class FenceReason(StrEnum):
    SESSION_EXPIRED = "session-expired"
    CONNECTION_REFUSED = "connection-refused"
    SHUTTING_DOWN = "shutting-down"
    REGISTERED = "registered"
    """A new process of the broker has registered, so the former process is gone."""
    RETURNED = "returned"
    """The broker was unfenced, because its process sent heartbeats again without a restart."""
    REQUESTED = "requested"
    """The broker or an administrator has requested the change."""


class Left(NamedTuple):
    broker: NodeId
    reason: LeaveReason
    end_offset: Offset | None = None
    """The replica's log end offset, as far as the reporting node knows."""
    lag_ms: Millis | None = None


class FollowerState(NamedTuple):
    broker: NodeId
    end_offset: Offset | None
    """None before the follower's first fetch in this leader epoch."""
    lag: int | None
    lag_ms: Millis | None
    """Time since the follower was last caught up; 0 while it is caught up, None if unknown."""
    in_sync: bool
    last_fetch_ms: Millis | None
    """Time since the follower's last fetch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrShrunk:
    kind: ClassVar[str] = "isr_shrink"

    partition: TopicPartition
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr_before: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    left: tuple[Left, ...]
    leader_end_offset: Offset | None = None
    high_watermark: Offset | None = None
    replicas: tuple[NodeId, ...]
    min_isr: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrExpanded:
    kind: ClassVar[str] = "isr_expand"

    partition: TopicPartition
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr_before: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    joined: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    min_isr: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderElected:
    kind: ClassVar[str] = "leader_elected"

    partition: TopicPartition
    leader: NodeId
    """The new leader; -1 if the partition has no leader."""
    leader_before: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    isr: tuple[NodeId, ...]
    elr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    min_isr: int
    clean: bool
    reason: ElectionReason


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFenced:
    kind: ClassVar[str] = "broker_fenced"

    broker: NodeId
    broker_epoch: BrokerEpoch
    reason: FenceReason
    silent_ms: Millis | None = None
    """Time since the broker's last heartbeat, or since its heartbeat connection ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUnfenced:
    kind: ClassVar[str] = "broker_unfenced"

    broker: NodeId
    broker_epoch: BrokerEpoch
    reason: FenceReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    kind: ClassVar[str] = "truncated"

    partition: TopicPartition
    leader: NodeId
    leader_epoch: LeaderEpoch
    from_offset: Offset
    """The log end offset before the truncation."""
    to_offset: Offset
    high_watermark: Offset
    """The high watermark that the follower knew before the truncation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanLoss:
    """This node knows that committed records from `to_offset` up to `from_offset` are lost."""

    kind: ClassVar[str] = "unclean_loss"

    partition: TopicPartition
    from_offset: Offset
    """The known high watermark before the loss."""
    to_offset: Offset
    """The log end offset after the loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    kind: ClassVar[str] = "replica_state"

    partition: TopicPartition
    leader: NodeId
    leader_epoch: LeaderEpoch
    high_watermark: Offset
    log_start_offset: Offset
    end_offset: Offset
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    min_isr: int
    followers: tuple[FollowerState, ...]


ReplicationEvent: TypeAlias = (
    IsrShrunk
    | IsrExpanded
    | LeaderElected
    | BrokerFenced
    | BrokerUnfenced
    | Truncated
    | UncleanLoss
    | ReplicaState
)

_NAMES: dict[type[ReplicationEvent], tuple[str, ...]] = {
    one: tuple(item.name for item in fields(one) if item.name != "partition")
    for one in ReplicationEvent.__args__
}


def key_of(event: ReplicationEvent) -> bytes:
    """`topic-partition`, or `broker-N` for an event that concerns a whole broker."""
    if isinstance(event, BrokerFenced | BrokerUnfenced):
        return b"broker-%d" % event.broker
    return str(event.partition).encode()


def encode_event(event: ReplicationEvent, ts: Millis, node: NodeId) -> bytes:
    """The record's value: JSON in UTF-8."""
    content: dict[str, Any] = {"v": SCHEMA_VERSION, "event": event.kind, "ts": ts, "node": node}
    if not isinstance(event, BrokerFenced | BrokerUnfenced):
        content["topic"], content["partition"] = event.partition
    for name in _NAMES[type(event)]:
        content[name] = getattr(event, name)
    for name in ("left", "followers"):
        if name in content:
            content[name] = [one._asdict() for one in content[name]]
    return json.dumps(content, separators=(",", ":")).encode()
