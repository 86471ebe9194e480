"""The high watermark of a replica never moves back while its node runs, in any role.

There are two exceptions. A node starts with the checkpointed high watermark, which may be older. A
replica that has left the ISR to fetch damaged records again may move its high watermark back.
"""

from tidelog.model.ids import Offset
from tidelog.sim.checks.scene import Copy
from tidelog.sim.invariants.invariant import Invariant


class WatermarkMonotonic(Invariant):
    name = "the watermark never moves back"

    def watermark_moved(self, copy: Copy, before: Offset) -> None:
        if copy.high_watermark < before and not (
            (self.scene.is_beyond and copy.ledger.lost) or self._is_fetched_again(copy)
        ):
            raise self.violated(
                f"on node {copy.node} it moved from {before} to {copy.high_watermark}", copy.ledger
            )

    def _is_fetched_again(self, copy: Copy) -> bool:
        placed = self.scene.placed(copy.ledger)
        return (
            copy.node in self.scene.damaged and placed is not None and copy.node not in placed.isr
        )
