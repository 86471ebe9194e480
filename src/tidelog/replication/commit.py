"""The two rules that decide when a record is committed, which means that it must never be lost.

ISR (partitions): every replica of the maximal in-sync set holds the record, and the committed
in-sync set has at least min.insync.replicas members.

Quorum (the metadata log): a majority of voters holds the record, and also holds a record of the
leader's epoch.

`rules.py` gives both rules the shape in which partitions use them.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tidelog.model.ids import NodeId, Offset


class InSync(NamedTuple):
    agreed: frozenset[NodeId]
    """The in-sync set that the controller has committed."""
    maximal: frozenset[NodeId]
    """The committed set plus the replicas that this leader has asked to add."""
    minimum: int
    """min.insync.replicas"""
    epoch_start: Offset = 0
    """The log end offset at which the leader's epoch began. Only the quorum rule needs it."""


def isr_committed(ends: Mapping[NodeId, Offset], isr: InSync, floor: Offset) -> Offset:
    """Primary-backup rule: the offset up to which *every* in-sync replica holds the log.

    The result is never below `floor`. If too few replicas are in sync, the result is `floor`.
    """
    assert isr.agreed <= isr.maximal
    if len(isr.agreed) < isr.minimum:
        return floor
    return max(floor, min(map(ends.__getitem__, isr.maximal)))


def quorum_committed(
    ends: Mapping[NodeId, Offset],
    voters: Collection[NodeId],
    epoch_start: Offset,
    floor: Offset,
) -> Offset:
    """Raft rule: the offset up to which a *majority* of voters holds the log.

    The result is never below `floor`. If the majority's offset is not past `epoch_start`, the
    result is `floor`.
    """
    descending = sorted((ends[voter] for voter in voters), reverse=True)
    majority_end = descending[len(descending) // 2]
    return max(floor, majority_end) if majority_end > epoch_start else floor
