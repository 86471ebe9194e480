"""Leader completeness: a leader holds all records that were committed in earlier epochs.

A node that was elected and then paused may learn of its election late. By then, other leaders may
have committed records that the node lacks. This late leader does not violate the invariant. The
node cannot commit any record, because its followers follow another leader.

The checker learns the committed offsets from the high watermarks of leaders. For the metadata log,
the checker uses the high watermarks of all nodes. By log matching, it is enough to compare the last
committed batch. Beyond the fault budget, a leader may lack records if its election is marked as
unclean.
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
            self.scene.accept_loss(ledger, kept)
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
            return  # these records are lost, because a later unclean leader truncates them
        settled = min(copy.high_watermark, ledger.committed_end)
        if not self._holds(copy, settled):
            raise self.violated(
                f"node {copy.node} commits up to {copy.high_watermark} in epoch {copy.epoch}, "
                f"but other leaders have committed different records below {settled}",
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
            return end <= copy.end  # committed before the checker first saw a log
        return found is not None and found.key == settled.key
