"""The leader of one partition: who holds what, and so how far the high watermark may go.

Invariant: the high watermark never moves back, and never passes what the commit rule allows.
"""

from dataclasses import dataclass
from typing import TypeAlias

from tidelog.model.ids import LeaderEpoch, NodeId, Offset
from tidelog.replication.commit import InSync, isr_committed


@dataclass(slots=True)
class Produced:
    """The leader's own log holds everything below `end`, as durably as its flush policy asks."""

    end: Offset


@dataclass(slots=True)
class IsrChanged:
    """The controller has committed another in-sync set, or min.insync.replicas has changed."""

    isr: InSync


LeaderEvent: TypeAlias = Produced | IsrChanged


@dataclass(slots=True)
class AdvanceHighWatermark:
    to: Offset


class PartitionLeader:
    """One leadership, from one leader epoch to the next."""

    __slots__ = ("_ends", "_isr", "_me", "epoch", "high_watermark")

    def __init__(
        self, me: NodeId, epoch: LeaderEpoch, isr: InSync, end: Offset, high_watermark: Offset
    ) -> None:
        assert me in isr.agreed
        self._me = me
        self._isr = isr
        self._ends: dict[NodeId, Offset] = {me: end}
        self.epoch = epoch
        self.high_watermark = high_watermark

    def step(self, event: LeaderEvent) -> AdvanceHighWatermark | None:
        """Apply one event. The only way in; the returned effect is the only way out."""
        match event:
            case Produced():
                assert event.end >= self._ends[self._me]
                self._ends[self._me] = event.end
            case IsrChanged():
                self._isr = event.isr
        return self._advance()

    def is_below_min_isr(self) -> bool:
        """A write with acks=all is refused while too few replicas are in sync."""
        return len(self._isr.agreed) < self._isr.minimum

    def _advance(self) -> AdvanceHighWatermark | None:
        committed = isr_committed(self._ends, self._isr, self.high_watermark)
        if committed == self.high_watermark:
            return None
        self.high_watermark = committed
        return AdvanceHighWatermark(committed)
