"""The two commit rules by name, for the leader and the controller of a partition alike.

Each rule answers two questions. `committed`: up to which offset are records committed, given the
log end offsets that the leader knows? `may_lead`: does this replica hold every committed record,
given what the controller knows?

Invariant of both rules: if `may_lead` accepts a replica, its log holds every record that any
earlier leader has committed by `committed`.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.model.ids import NO_EPOCH, NodeId, Offset
from tidelog.replication.commit import InSync, isr_committed, quorum_committed
from tidelog.replication.quorum.state import LogEnd


class ReplicasKnown(NamedTuple):
    """What the controller knows about the replicas of a partition that needs a leader."""

    replicas: Collection[NodeId]
    isr: Collection[NodeId]
    elr: Collection[NodeId]
    """ISR rule: the eligible leader replicas (KIP-966). Quorum rule: the replicas out of sync that
    have lost no record since they were last in sync.
    """
    log_ends: Mapping[NodeId, LogEnd]
    """The log ends that replicas have reported since the partition lost its leader."""


@dataclass(frozen=True, slots=True)
class CommitRule:
    name: str
    committed: Callable[[Mapping[NodeId, Offset], InSync, Offset], Offset]
    """The offset up to which records are committed; never below the third argument."""
    may_lead: Callable[[NodeId, ReplicasKnown], bool]
    """Whether this replica certainly holds every committed record."""


def majority_of(replicas: Collection[NodeId]) -> int:
    """The least number of these replicas that is more than half of them."""
    return len(replicas) // 2 + 1


def _may_lead_in_sync(candidate: NodeId, known: ReplicasKnown) -> bool:
    """Whether the replica is in sync or, if no replica is, in the ELR."""
    return candidate in known.isr or (not known.isr and candidate in known.elr)


def _committed_by_majority(ends: Mapping[NodeId, Offset], members: InSync, floor: Offset) -> Offset:
    return quorum_committed(ends, ends, members.epoch_start, floor)


def _may_lead_as_longest(candidate: NodeId, known: ReplicasKnown) -> bool:
    """Whether the log goes at least as far as the logs of a majority of the replicas.

    A committed record is in the logs of some majority, and two majorities share a replica (F82).
    Only a replica that has lost no record counts, because a lost record may be a committed one
    (F84).
    """
    mine = known.log_ends.get(candidate)
    if mine is None or not _is_complete(candidate, known):
        return False
    shorter = [
        replica
        for replica in known.replicas
        if _is_complete(replica, known)
        and replica in known.log_ends
        and goes_as_far(mine, known.log_ends[replica])
    ]
    return len(shorter) >= majority_of(known.replicas)


def goes_as_far(log: LogEnd, other: LogEnd) -> bool:
    """Whether the first log goes at least as far as the other one.

    If the records of a log are all deleted, the epoch of its last record may be unknown. Only
    committed records are deleted, so the offsets alone decide.
    """
    if NO_EPOCH in (log.epoch, other.epoch):
        return log.offset >= other.offset
    return log >= other


def _is_complete(replica: NodeId, known: ReplicasKnown) -> bool:
    """Whether the replica has lost no record since it was last in sync."""
    return replica in known.isr or replica in known.elr


ISR = CommitRule("isr", isr_committed, _may_lead_in_sync)
"""Primary-backup: every in-sync replica holds a committed record, so each of them may lead."""

QUORUM = CommitRule("quorum", _committed_by_majority, _may_lead_as_longest)
"""Majority: more than half of the replicas hold a committed record, so the longest log leads."""

RULES: Mapping[str, CommitRule] = {rule.name: rule for rule in (ISR, QUORUM)}
