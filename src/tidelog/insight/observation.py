"""Derives replication events from successive observations of a cluster, without I/O.

An observer sees states, but no changes. Several changes between two observations therefore appear
as one change. The observer infers the reason for a change from the two states.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tidelog.model.ids import NO_NODE, LeaderEpoch, Millis, NodeId, Offset, TopicPartition
from tidelog.model.replication_events import (
    BrokerFenced,
    BrokerUnfenced,
    ElectionReason,
    FenceReason,
    FollowerState,
    IsrExpanded,
    IsrShrunk,
    LeaderElected,
    LeaveReason,
    Left,
    ReplicaState,
    ReplicationEvent,
)

NOT_KNOWN = -1
"""The value for broker epochs and partition epochs, because no client request returns them."""


@dataclass(frozen=True, slots=True)
class PartitionLook:
    leader: NodeId
    leader_epoch: LeaderEpoch
    isr: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...]
    min_isr: int
    high_watermark: Offset | None = None
    log_start_offset: Offset | None = None
    ends: Mapping[NodeId, Offset] = field(default_factory=dict)
    """The log end offset of each replica that reports it."""

    def lag(self, replica: NodeId) -> int | None:
        """The number of records of the leader's log that the replica lacks."""
        end, mine = self.ends.get(self.leader), self.ends.get(replica)
        return None if end is None or mine is None else max(0, end - mine)


@dataclass(frozen=True, slots=True)
class Look:
    """The state of a cluster at one moment, as its brokers report it."""

    at: Millis
    brokers: frozenset[NodeId]
    partitions: Mapping[TopicPartition, PartitionLook]


class ClusterObserver:
    """Keeps the last observation and the time when each follower was last caught up."""

    def __init__(self) -> None:
        self._before: Look | None = None
        self._caught_up_at: dict[tuple[TopicPartition, NodeId], Millis] = {}

    def note(self, now: Look) -> list[ReplicationEvent]:
        """Return the events since the last observation, and each partition's state as an event."""
        before, self._before = self._before, now
        events: list[ReplicationEvent] = []
        if before is not None:
            events += _brokers_moved(before, now)
            for where in sorted(now.partitions):
                events += _partition_moved(where, before, now)
        for where in sorted(now.partitions):
            if (state := self._state(where, now)) is not None:
                events.append(state)
        return events

    def _state(self, where: TopicPartition, now: Look) -> ReplicaState | None:
        look = now.partitions[where]
        end = look.ends.get(look.leader)
        if end is None or look.high_watermark is None:
            return None  # there is no leader, or the leader does not answer
        followers = []
        for broker in look.replicas:
            if broker != look.leader:
                lag = look.lag(broker)
                if lag == 0:
                    self._caught_up_at[where, broker] = now.at
                since = self._caught_up_at.get((where, broker))
                lag_ms = None if since is None else now.at - since
                followers.append(
                    FollowerState(
                        broker, look.ends.get(broker), lag, lag_ms, broker in look.isr, None
                    )
                )
        return ReplicaState(
            partition=where,
            leader=look.leader,
            leader_epoch=look.leader_epoch,
            high_watermark=look.high_watermark,
            log_start_offset=look.log_start_offset or 0,
            end_offset=end,
            isr=look.isr,
            replicas=look.replicas,
            min_isr=look.min_isr,
            followers=tuple(followers),
        )


def _brokers_moved(before: Look, now: Look) -> Iterator[ReplicationEvent]:
    for broker in sorted(before.brokers - now.brokers):
        yield BrokerFenced(
            broker=broker,
            broker_epoch=NOT_KNOWN,
            reason=FenceReason.SESSION_EXPIRED,
            silent_ms=now.at - before.at,
        )
    for broker in sorted(now.brokers - before.brokers):
        yield BrokerUnfenced(broker=broker, broker_epoch=NOT_KNOWN, reason=FenceReason.REGISTERED)


def _partition_moved(where: TopicPartition, before: Look, now: Look) -> Iterator[ReplicationEvent]:
    then, look = before.partitions.get(where), now.partitions[where]
    if then is None:
        yield _elected(where, NO_NODE, look, ElectionReason.CREATED, clean=True)
        return
    if (then.leader, then.leader_epoch) != (look.leader, look.leader_epoch):
        reason = _why_elected(then, look, now)
        clean = look.leader == NO_NODE or look.leader in then.isr
        yield _elected(where, then.leader, look, reason, clean=clean)
    if gone := [broker for broker in then.isr if broker not in look.isr]:
        left = (Left(one, _why_left(one, then, look, now), look.ends.get(one)) for one in gone)
        yield IsrShrunk(
            partition=where,
            leader=look.leader,
            leader_epoch=look.leader_epoch,
            partition_epoch=NOT_KNOWN,
            isr_before=then.isr,
            isr=look.isr,
            left=tuple(left),
            leader_end_offset=look.ends.get(look.leader),
            high_watermark=look.high_watermark,
            replicas=look.replicas,
            min_isr=look.min_isr,
        )
    if joined := [broker for broker in look.isr if broker not in then.isr]:
        yield IsrExpanded(
            partition=where,
            leader=look.leader,
            leader_epoch=look.leader_epoch,
            partition_epoch=NOT_KNOWN,
            isr_before=then.isr,
            isr=look.isr,
            joined=tuple(joined),
            replicas=look.replicas,
            min_isr=look.min_isr,
        )


def _elected(
    where: TopicPartition,
    leader_before: NodeId,
    look: PartitionLook,
    reason: ElectionReason,
    *,
    clean: bool,
) -> LeaderElected:
    return LeaderElected(
        partition=where,
        leader=look.leader,
        leader_before=leader_before,
        leader_epoch=look.leader_epoch,
        partition_epoch=NOT_KNOWN,
        isr=look.isr,
        elr=(),
        replicas=look.replicas,
        min_isr=look.min_isr,
        clean=clean,
        reason=reason,
    )


def _why_elected(then: PartitionLook, look: PartitionLook, now: Look) -> ElectionReason:
    if look.leader != NO_NODE and look.leader not in then.isr and then.leader != NO_NODE:
        return ElectionReason.UNCLEAN
    if then.leader == NO_NODE:
        return ElectionReason.RETURNED
    if then.leader not in now.brokers:
        return ElectionReason.DEAD
    if then.leader not in look.replicas:
        return ElectionReason.REASSIGNED
    if look.leader == look.replicas[0]:
        return ElectionReason.PREFERRED
    return ElectionReason.SHUTTING_DOWN


def _why_left(broker: NodeId, then: PartitionLook, look: PartitionLook, now: Look) -> LeaveReason:
    if broker not in now.brokers:
        return LeaveReason.DEAD
    stands_still = then.ends.get(broker) == look.ends.get(broker)
    return LeaveReason.STUCK if stands_still else LeaveReason.SLOW
