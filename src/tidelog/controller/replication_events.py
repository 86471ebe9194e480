"""Derives the replication events of one committed controller decision by comparing two images.

The images are the states directly before and directly after the decision's records, so the reason
for each change can be derived from them. A leader reports the in-sync changes that it requested,
because it knows how far each replica had fetched. This module reports the replicas that the
controller itself removed.
"""

from collections.abc import Callable, Iterator

from tidelog.config.settings import BrokerSettings
from tidelog.controller.configs.effective import topic_value
from tidelog.controller.image.difference import (
    PartitionDifference,
    changed_brokers,
    changed_partitions,
)
from tidelog.controller.image.image import (
    MIGRATING_DIRECTORY,
    RECOVERING,
    UNASSIGNED_DIRECTORY,
    BrokerImage,
    ClusterImage,
    PartitionImage,
)
from tidelog.model.ids import NO_NODE, Millis, NodeId
from tidelog.model.replication_events import (
    BrokerFenced,
    BrokerUnfenced,
    ElectionReason,
    FenceReason,
    IsrShrunk,
    LeaderElected,
    LeaveReason,
    Left,
    ReplicationEvent,
)

_AS_ELECTION = {
    LeaveReason.DEAD: ElectionReason.DEAD,
    LeaveReason.SHUTTING_DOWN: ElectionReason.SHUTTING_DOWN,
    LeaveReason.LOG_DIR_FAILED: ElectionReason.LOG_DIR_FAILED,
}

_Gone = Callable[[NodeId, PartitionImage], LeaveReason | None]
"""A function that returns why the controller removes a broker from an in-sync set, or None."""


def events_of_decision(
    before: ClusterImage,
    after: ClusterImage,
    settings: BrokerSettings,
    why: FenceReason = FenceReason.REQUESTED,
    silent_ms: Millis | None = None,
) -> Iterator[ReplicationEvent]:
    """Yield first the events of brokers, then the events of partitions.

    If the decision fences a broker, `why` is the reason, and `silent_ms` is how long the broker had
    been silent.

    This is a generator, so that the events of ten thousand partitions do not delay the failover of
    a broker.
    """
    for id_ in changed_brokers(before, after):
        yield from _broker(before.brokers.get(id_), after.brokers.get(id_), why, silent_ms)

    def gone(broker: NodeId, partition: PartitionImage) -> LeaveReason | None:
        return _gone(before.brokers.get(broker), after.brokers.get(broker), partition)

    minimums: dict[str, int] = {}
    for change in changed_partitions(before, after):
        name = change.topic.name
        if name not in minimums:
            minimum = topic_value(after, settings, name, "min.insync.replicas")
            assert isinstance(minimum, int)
            minimums[name] = minimum
        min_isr = min(minimums[name], len(change.new.replicas))
        yield from _shrink(change, min_isr, gone)
        yield from _election(change, min_isr, gone)


# -- Events of brokers -----------------------------------------------------------------------------


def _broker(
    before: BrokerImage | None,
    after: BrokerImage | None,
    why: FenceReason,
    silent_ms: Millis | None,
) -> Iterator[ReplicationEvent]:
    was_unfenced = before is not None and not before.fenced
    if after is not None and not after.fenced and not was_unfenced:
        is_same_run = why is FenceReason.RETURNED
        yield BrokerUnfenced(
            broker=after.id,
            broker_epoch=after.epoch,
            reason=FenceReason.RETURNED if is_same_run else FenceReason.REGISTERED,
        )
    elif before is not None and was_unfenced and (after is None or after.fenced):
        yield BrokerFenced(
            broker=before.id,
            broker_epoch=before.epoch,
            reason=_why_fenced(before, after, why),
            silent_ms=silent_ms,
        )


def _why_fenced(before: BrokerImage, after: BrokerImage | None, why: FenceReason) -> FenceReason:
    if after is not None and after.epoch != before.epoch:
        return FenceReason.REGISTERED
    if before.in_controlled_shutdown:
        return FenceReason.SHUTTING_DOWN
    return why


def _gone(
    before: BrokerImage | None, after: BrokerImage | None, partition: PartitionImage
) -> LeaveReason | None:
    if before is None or after is None or before.epoch != after.epoch:
        return LeaveReason.DEAD
    if after.in_controlled_shutdown:
        return LeaveReason.SHUTTING_DOWN
    if after.fenced:
        return LeaveReason.DEAD
    directory = partition.directory_of(after.id)
    if directory in (*after.directories, UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return None
    return LeaveReason.LOG_DIR_FAILED


# -- Events of partitions --------------------------------------------------------------------------


def _shrink(change: PartitionDifference, min_isr: int, gone: _Gone) -> Iterator[ReplicationEvent]:
    old, new = change.old, change.new
    if old is None or old.isr == new.isr:
        return
    left = tuple(
        Left(broker, reason)
        for broker in old.isr
        if broker not in new.isr and (reason := gone(broker, new)) is not None
    )
    if left:
        yield IsrShrunk(
            partition=change.partition,
            leader=new.leader,
            leader_epoch=new.leader_epoch,
            partition_epoch=new.partition_epoch,
            isr_before=old.isr,
            isr=new.isr,
            left=left,
            replicas=new.replicas,
            min_isr=min_isr,
        )


def _election(change: PartitionDifference, min_isr: int, gone: _Gone) -> Iterator[ReplicationEvent]:
    old, new = change.old, change.new
    leader_before = NO_NODE if old is None else old.leader
    is_clean = old is None or not _is_unclean(old, new)
    if leader_before == new.leader and is_clean and old is not None:
        return
    yield LeaderElected(
        partition=change.partition,
        leader=new.leader,
        leader_before=leader_before,
        leader_epoch=new.leader_epoch,
        partition_epoch=new.partition_epoch,
        isr=new.isr,
        elr=new.elr,
        replicas=new.replicas,
        min_isr=min_isr,
        clean=is_clean,
        reason=_why_elected(old, new, gone),
    )


def _is_unclean(old: PartitionImage, new: PartitionImage) -> bool:
    """Whether the new leader may lack committed records, so that it starts as RECOVERING.

    The state RECOVERING stays until the leader clears it, so it can outlast that leader. If a later
    leader was in sync or eligible, it lacks nothing, and its election is clean (F35).
    """
    return (
        new.leader_recovery_state == RECOVERING
        and new.leader_epoch != old.leader_epoch
        and new.leader not in (NO_NODE, *old.isr, *old.elr)
    )


def _why_elected(old: PartitionImage | None, new: PartitionImage, gone: _Gone) -> ElectionReason:
    if old is None:
        return ElectionReason.CREATED
    if _is_unclean(old, new):
        return ElectionReason.UNCLEAN
    if not old.has_leader:
        return ElectionReason.RETURNED
    if old.leader not in new.replicas:
        return ElectionReason.REASSIGNED
    reason = gone(old.leader, new)
    if reason is not None:
        return _AS_ELECTION[reason]
    is_preferred = new.leader == new.preferred_leader
    return ElectionReason.PREFERRED if is_preferred else ElectionReason.REASSIGNED
