"""The high watermark of a replica never moves back while its node runs, in whatever role.

A start is the exception: then it is what was checkpointed last, and may be behind.
"""

from tidelog.model.ids import Offset
from tidelog.sim.invariants.invariant import Invariant
from tidelog.sim.scene import Copy


class WatermarkMonotonic(Invariant):
    name = "the watermark never moves back"

    def watermark_moved(self, copy: Copy, before: Offset) -> None:
        if copy.high_watermark < before and not (self.scene.is_beyond and copy.ledger.lost):
            raise self.violated(
                f"on node {copy.node} it went from {before} to {copy.high_watermark}", copy.ledger
            )
