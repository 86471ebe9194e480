"""What happens to replicas, as the records of the topic `__tidelog_replication_events` tell it.

Every value here is something that was committed: an event is made where that is known, and is never
a plan. One JSON object per record; docs/replication-events.md is the contract with its readers, so
a name in use keeps its meaning, and new ones are only ever added.
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
    """It has not fetched at all for replica.lag.time.max.ms."""
    SLOW = "slow"
    """It fetches, and has not caught up for that long."""
    DEAD = "dead"
    """Its broker was fenced, or is back as another process."""
    SHUTTING_DOWN = "shutting-down"
    LOG_DIR_FAILED = "log-dir-failed"


class ElectionReason(StrEnum):
    """Why a partition has another leader: mostly what became of the one before."""

    CREATED = "created"
    DEAD = "dead"
    SHUTTING_DOWN = "shutting-down"
    LOG_DIR_FAILED = "log-dir-failed"
    PREFERRED = "preferred"
    REASSIGNED = "reassigned"
    RETURNED = "returned"
    """Nobody led, and one who may is back."""
    UNCLEAN = "unclean"
    """One was elected that may lack what was committed."""


class FenceReason(StrEnum):
    SESSION_EXPIRED = "session-expired"
    CONNECTION_REFUSED = "connection-refused"
    SHUTTING_DOWN = "shutting-down"
    REGISTERED = "registered"
    """A new process of the broker has registered: the one before it is gone."""
    RETURNED = "returned"
    """Unfenced only: the same process was heard from again."""
    REQUESTED = "requested"
    """The broker asked for it itself, or an administrator did."""


class Left(NamedTuple):
    broker: NodeId
    reason: LeaveReason
    end_offset: Offset | None = None
    """How far it had come, as far as the one who tells it knows."""
    lag_ms: Millis | None = None


class FollowerState(NamedTuple):
    broker: NodeId
    end_offset: Offset | None
    """None before its first fetch in this leader epoch."""
    lag: int | None
    lag_ms: Millis | None
    """Since it was last caught up; 0 if it is, None if it never was under this leader."""
    in_sync: bool
    last_fetch_ms: Millis | None
    """Since its last fetch."""


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
    """-1: nobody leads now."""
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
    """Since its last sign of life, as far as the one who tells it knows."""


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
    """Where the log ended before."""
    to_offset: Offset
    high_watermark: Offset
    """As the follower knew it before it cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncleanLoss:
    """Committed records from `to_offset` up to `from_offset` are gone, as far as is known here."""

    kind: ClassVar[str] = "unclean_loss"

    partition: TopicPartition
    from_offset: Offset
    """How far the log was known to be committed."""
    to_offset: Offset
    """How far it goes now."""


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
    """`topic-partition`, or `broker-N` for what concerns a broker as a whole."""
    if isinstance(event, BrokerFenced | BrokerUnfenced):
        return b"broker-%d" % event.broker
    return str(event.partition).encode()


def encode_event(event: ReplicationEvent, ts: Millis, node: NodeId) -> bytes:
    """The record's value: JSON in UTF-8."""
    told: dict[str, Any] = {"v": SCHEMA_VERSION, "event": event.kind, "ts": ts, "node": node}
    if not isinstance(event, BrokerFenced | BrokerUnfenced):
        told["topic"], told["partition"] = event.partition
    for name in _NAMES[type(event)]:
        told[name] = getattr(event, name)
    for name in ("left", "followers"):
        if name in told:
            told[name] = [one._asdict() for one in told[name]]
    return json.dumps(told, separators=(",", ":")).encode()
