"""Leader completeness: whoever leads holds everything that was committed in epochs before its own.

One that was elected and then paused may learn of it when others have led since, and committed what
it lacks: it commits nothing of its own, since those whom it counts on follow somebody else.

The ledger learns what is committed from the high watermarks of leaders (and, for the metadata
log, of any node). By log matching one batch is enough to compare: the last that is committed.
Beyond the budget a leader may lack some, if it was elected uncleanly and is known for it.
"""

from tidelog.model.ids import NO_EPOCH, Offset
from tidelog.sim.checks.scene import Copy
from tidelog.sim.invariants.invariant import Invariant


class LeaderCompleteness(Invariant):
    name = "leader completeness"

    def led(self, copy: Copy) -> None:
        ledger = copy.ledger
        due = max(
            (end for epoch, end in ledger.committed_by.items() if epoch <= copy.epoch), default=0
        )
        if self._holds(copy, due):
            return
        kept = ledger.committed.agreed_end(copy.log)
        if self.scene.is_beyond and copy.epoch in ledger.unclean_epochs:
            self.scene.own_up(ledger, kept)
            return
        raise self.violated(
            f"node {copy.node} leads in epoch {copy.epoch} without offsets {kept} to "
            f"{due - 1}, which were committed",
            ledger,
        )

    def watermark_moved(self, copy: Copy, before: Offset) -> None:
        ledger = copy.ledger
        if copy.epoch == NO_EPOCH and not ledger.is_metadata:
            return
        if self.scene.is_beyond and any(epoch > copy.epoch for epoch in ledger.unclean_epochs):
            ledger.lost += max(0, copy.high_watermark - before)
            return  # it does not know yet that another was elected, who will take this back
        settled = min(copy.high_watermark, ledger.committed_end)
        if not self._holds(copy, settled):
            raise self.violated(
                f"node {copy.node} commits up to {copy.high_watermark} in epoch {copy.epoch}, "
                f"but before {settled} others have committed something else",
                ledger,
            )
        if copy.high_watermark > ledger.committed_end:
            ledger.committed.extend(copy.log.between(ledger.committed_end, copy.high_watermark))
            ledger.committed_end = copy.high_watermark
            ledger.committed_by[copy.epoch] = copy.high_watermark

    def _holds(self, copy: Copy, end: Offset) -> bool:
        if end <= copy.start:
            return True
        settled = copy.ledger.committed.at(end - 1)
        found = copy.log.at(end - 1)
        if settled is None:
            return end <= copy.end  # what is older than the first log that was seen
        return found is not None and found.key == settled.key
