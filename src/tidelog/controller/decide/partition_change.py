"""The next state of one partition: its leader, in-sync set and eligible leader replicas.

The rules are Kafka's, and the safety of committed records depends on them. The leader is elected
from the in-sync set. If that set is empty, the leader is elected from the eligible leader replicas
(KIP-966), which hold every committed record. If both sets are empty, the controller elects the last
known leader. If that replica cannot lead and the topic allows unclean elections, the controller
elects any live replica. An election with both sets empty is marked as unclean, because records may
be lost. A replica that leaves the in-sync set cleanly stays eligible while the set is smaller than
min.insync.replicas. No record can be committed during that time, so the replica misses none.

Under the quorum rule, a leadership is never moved directly (ADR 27). The leader is set to none
first, and a replica is elected after a majority has reported its log ends.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from tidelog.controller.image.image import RECOVERING, PartitionImage
from tidelog.model.ids import NO_NODE, NodeId, TopicId
from tidelog.protocol.metadata.metadata_records import NO_CHANGE, PartitionChangeRecord
from tidelog.replication.quorum.state import LogEnd
from tidelog.replication.rules import (
    ISR,
    QUORUM,
    CommitRule,
    ReplicasKnown,
    goes_as_far,
    majority_of,
)


class Election(Enum):
    ONLINE = "keep the leader while it can lead"
    PREFERRED = "give the lead to the first replica if it can lead"
    UNCLEAN = "elect any live replica rather than none"


@dataclass(frozen=True, slots=True)
class ElectionRules:
    """The cluster state and topic configuration that an election depends on."""

    may_lead: Callable[[NodeId], bool]
    min_isr: int
    elr_enabled: bool
    directory_of: Callable[[NodeId], UUID]
    """The log directory in which a broker places a new replica."""
    commit: CommitRule = ISR
    log_ends: Mapping[NodeId, LogEnd] = field(default_factory=dict)
    """Quorum rule: the log ends reported since the partition lost its leader."""


@dataclass(frozen=True, slots=True)
class Target:
    """The requested state of a partition, before the election; None keeps the current value."""

    isr: tuple[NodeId, ...] | None = None
    replicas: tuple[NodeId, ...] | None = None
    adding: tuple[NodeId, ...] | None = None
    removing: tuple[NodeId, ...] | None = None
    recovery_state: int | None = None
    directories: tuple[UUID, ...] | None = None
    """The log directories, in the order of the current replicas."""
    election: Election = Election.ONLINE
    unclean_shutdown: frozenset[NodeId] = frozenset()
    """Replicas that were not shut down cleanly, so their logs may have lost their last records."""
    without_log: frozenset[NodeId] = frozenset()
    """Replicas that restarted on an empty disk; only an unclean election may choose them."""
    forgets_fetches: bool = False
    """Whether the leader must ignore all earlier fetches, because a replica has lost records."""


class _Elected(NamedTuple):
    leader: NodeId
    unclean: bool = False


@dataclass(slots=True)
class _Wanted:
    """The next state of the partition while it is computed."""

    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]
    recovery_state: int
    directories: tuple[UUID, ...]
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()


def change_partition(
    topic_id: TopicId, index: int, partition: PartitionImage, target: Target, rules: ElectionRules
) -> PartitionChangeRecord | None:
    """The record that sets the target state and elects a leader; None if nothing changes."""
    wanted = _merged(partition, target)
    _complete_reassignment(wanted)
    wanted.elr = _eligible(partition, wanted, target.unclean_shutdown | target.without_log, rules)
    wanted.last_known_elr = _without(partition.last_known_elr, target.without_log)
    elected = _elect(partition, wanted, target.election, rules)
    leader = NO_CHANGE if elected.leader == partition.leader else elected.leader
    if elected.unclean:
        leader = elected.leader
        wanted.isr, wanted.elr, wanted.recovery_state = (leader,), (), RECOVERING
    elif elected.leader in wanted.elr:
        # Under the quorum rule, the other members of the in-sync set are no less complete than
        # before.
        others = wanted.isr if rules.commit is QUORUM else ()
        wanted.isr = (*others, elected.leader)
        wanted.elr = _without(wanted.elr, wanted.isr)
    has_left = not set(partition.replicas).issubset(wanted.replicas)
    if leader == NO_CHANGE and (has_left or target.forgets_fetches):
        # Start a new leader epoch, so that the leader no longer counts earlier fetches of a replica
        # that left or lost records. The leader refuses fetches of the old epoch, even if they are
        # already in transit.
        leader = partition.leader
    if not wanted.isr and not rules.elr_enabled:
        # If the ELR feature is off, keep the last in-sync set for later elections.
        wanted.isr = partition.isr
    return _record(topic_id, index, partition, wanted, leader, rules)


def _merged(partition: PartitionImage, target: Target) -> _Wanted:
    def either(new: tuple[NodeId, ...] | None, old: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
        return old if new is None else new

    state = target.recovery_state
    return _Wanted(
        replicas=either(target.replicas, partition.replicas),
        isr=either(target.isr, partition.isr),
        adding=either(target.adding, partition.adding),
        removing=either(target.removing, partition.removing),
        recovery_state=partition.leader_recovery_state if state is None else state,
        directories=partition.directories if target.directories is None else target.directories,
    )


def _complete_reassignment(wanted: _Wanted) -> None:
    """If every target replica is in sync, drop the replicas that the reassignment removes."""
    if not wanted.adding and not wanted.removing:
        return
    isr = _without(wanted.isr, wanted.removing)
    replicas = _without(wanted.replicas, wanted.removing)
    if isr and replicas and set(replicas).issubset(isr):
        wanted.isr, wanted.replicas, wanted.adding, wanted.removing = isr, replicas, (), ()


def _without(members: tuple[NodeId, ...], gone: Collection[NodeId]) -> tuple[NodeId, ...]:
    return tuple(member for member in members if member not in gone)


# -- Eligible leader replicas ----------------------------------------------------------------------


def _eligible(
    partition: PartitionImage,
    wanted: _Wanted,
    unclean_shutdown: frozenset[NodeId],
    rules: ElectionRules,
) -> tuple[NodeId, ...]:
    """The eligible leader replicas; none if the in-sync set has min.insync.replicas members.

    Under the quorum rule, every replica that has lost no record since it was in sync is eligible to
    take part in an election, whatever the size of the in-sync set (F84).

    Unlike Kafka, Tidelog keeps only current replicas. A replica that was reassigned away deletes
    its log, so it must not count as complete if the partition is assigned to it again.
    """
    if rules.commit is ISR and (not rules.elr_enabled or len(wanted.isr) >= rules.min_isr):
        return ()
    held = {*partition.elr, *partition.isr} & set(wanted.replicas)
    return tuple(sorted(held - set(wanted.isr) - unclean_shutdown))


def _last_known(
    partition: PartitionImage, wanted: _Wanted, leader: NodeId, rules: ElectionRules
) -> tuple[NodeId, ...]:
    """The last leader of a leaderless partition. It may be elected if no replica is eligible."""
    if rules.commit is QUORUM:
        return ()
    if not rules.elr_enabled:
        return wanted.last_known_elr
    now_leads = partition.leader if leader == NO_CHANGE else leader
    if now_leads != NO_NODE:
        return ()
    just_emptied = not wanted.isr and bool(partition.isr)
    if just_emptied and partition.leader != NO_NODE:
        return (partition.leader,)
    return wanted.last_known_elr


# -- Electing the leader ---------------------------------------------------------------------------


def _elect(
    partition: PartitionImage, wanted: _Wanted, election: Election, rules: ElectionRules
) -> _Elected:
    known = ReplicasKnown(wanted.replicas, wanted.isr, wanted.elr, rules.log_ends)
    if rules.commit is QUORUM:
        return _elect_by_majority(partition, known, election, rules)
    for candidate in _candidates(partition, wanted, election):
        if rules.commit.may_lead(candidate, known) and rules.may_lead(candidate):
            return _Elected(candidate)
    last_known = _last_known_leader(wanted, rules)
    if last_known is not None:
        return _Elected(last_known, unclean=True)
    if election is Election.UNCLEAN:
        for candidate in wanted.replicas:
            if rules.may_lead(candidate):
                return _Elected(candidate, unclean=True)
    return _Elected(NO_NODE)


def _candidates(
    partition: PartitionImage, wanted: _Wanted, election: Election
) -> tuple[NodeId, ...]:
    """The candidates in order: the current leader first, or the preferred leader if requested."""
    if election is Election.PREFERRED:
        return (*wanted.replicas[:1], partition.leader, *wanted.replicas[1:])
    return (partition.leader, *wanted.replicas)


def _elect_by_majority(
    partition: PartitionImage, known: ReplicasKnown, election: Election, rules: ElectionRules
) -> _Elected:
    """Keep the leader, or set it to none, or elect a replica of a partition without a leader.

    A leader that stays holds every record that it has committed. All others must be compared by
    their log ends, and those are known only after the leader was set to none.
    """
    if partition.has_leader:
        is_kept = rules.may_lead(partition.leader) and not (
            election is Election.PREFERRED and _is_preferred_in_sync(partition, known, rules)
        )
        return _Elected(partition.leader if is_kept else NO_NODE)
    able = [replica for replica in known.replicas if rules.may_lead(replica)]
    complete = [replica for replica in able if rules.commit.may_lead(replica, known)]
    if complete:
        return _Elected(_longest(complete, rules.log_ends))
    if election is not Election.UNCLEAN and not _is_hopeless(known):
        return _Elected(NO_NODE)
    reported = [replica for replica in able if replica in rules.log_ends]
    if election is not Election.UNCLEAN:
        # If the longest log is on a replica that cannot lead yet, wait for that replica.
        reported = [one for one in reported if _goes_farthest(one, rules.log_ends)]
    if not reported:
        return _Elected(NO_NODE)
    return _Elected(_longest(reported, rules.log_ends), unclean=True)


def _is_preferred_in_sync(
    partition: PartitionImage, known: ReplicasKnown, rules: ElectionRules
) -> bool:
    preferred = partition.preferred_leader
    return preferred != partition.leader and preferred in known.isr and rules.may_lead(preferred)


def _goes_farthest(candidate: NodeId, log_ends: Mapping[NodeId, LogEnd]) -> bool:
    return all(goes_as_far(log_ends[candidate], other) for other in log_ends.values())


def _longest(candidates: list[NodeId], log_ends: Mapping[NodeId, LogEnd]) -> NodeId:
    """The replica with the longest log; of equal ones, the first in the order of the replicas."""
    best = candidates[0]
    for candidate in candidates[1:]:
        if not goes_as_far(log_ends[best], log_ends[candidate]):
            best = candidate
    return best


def _is_hopeless(known: ReplicasKnown) -> bool:
    """Whether too few replicas are known to be complete, and every replica has reported.

    Then no clean election is possible, and nothing more can be learnt (ADR 27).
    """
    complete = {*known.isr, *known.elr} & set(known.replicas)
    return len(complete) < majority_of(known.replicas) and all(
        replica in known.log_ends for replica in known.replicas
    )


def _last_known_leader(wanted: _Wanted, rules: ElectionRules) -> NodeId | None:
    if not rules.elr_enabled or wanted.isr or wanted.elr or len(wanted.last_known_elr) != 1:
        return None
    candidate = wanted.last_known_elr[0]
    is_replica = candidate in wanted.replicas
    return candidate if is_replica and rules.may_lead(candidate) else None


# -- The record of the change ----------------------------------------------------------------------


def _directories(
    partition: PartitionImage, wanted: _Wanted, rules: ElectionRules
) -> tuple[UUID, ...]:
    known = dict(zip(partition.replicas, wanted.directories, strict=True))
    return tuple(
        known[replica] if replica in known else rules.directory_of(replica)
        for replica in wanted.replicas
    )


def _record(
    topic_id: TopicId,
    index: int,
    partition: PartitionImage,
    wanted: _Wanted,
    leader: NodeId,
    rules: ElectionRules,
) -> PartitionChangeRecord | None:
    changes: dict[str, Any] = {}
    if wanted.isr != partition.isr:
        changes["isr"] = wanted.isr
    if leader != NO_CHANGE:
        changes["leader"] = leader
    if wanted.replicas != partition.replicas:
        changes["replicas"] = wanted.replicas
    directories = _directories(partition, wanted, rules)
    if directories != partition.directories:
        changes["directories"] = directories
    if wanted.removing != partition.removing:
        changes["removing_replicas"] = wanted.removing
    if wanted.adding != partition.adding:
        changes["adding_replicas"] = wanted.adding
    if wanted.recovery_state != partition.leader_recovery_state:
        changes["leader_recovery_state"] = wanted.recovery_state
    if wanted.elr != partition.elr:
        changes["eligible_leader_replicas"] = wanted.elr
    last_known = _last_known(partition, wanted, leader, rules)
    if last_known != partition.last_known_elr:
        changes["last_known_elr"] = last_known
    if not changes:
        return None
    return PartitionChangeRecord(partition_id=index, topic_id=topic_id, **changes)
