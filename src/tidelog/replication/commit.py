"""The two commit rules: what is committed is never lost as long as its rule's premise holds.

ISR (partitions): everything that all of the maximal in-sync set holds, if that set is large enough.
Quorum (the metadata log): everything that a majority of voters holds, once it covers this epoch.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tidelog.model.ids import NodeId, Offset


class InSync(NamedTuple):
    agreed: frozenset[NodeId]
    """The ISR that the controller has committed."""
    maximal: frozenset[NodeId]
    """The same, plus replicas that this leader has asked to add."""
    minimum: int
    """min.insync.replicas"""


def isr_committed(ends: Mapping[NodeId, Offset], isr: InSync, floor: Offset) -> Offset:
    """Primary-backup rule: what *every* in-sync replica holds, if enough of them are in sync."""
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
    """Raft rule: what a *majority* of voters holds, once that covers a record of this epoch."""
    descending = sorted((ends[voter] for voter in voters), reverse=True)
    majority_end = descending[len(descending) // 2]
    return max(floor, majority_end) if majority_end > epoch_start else floor
