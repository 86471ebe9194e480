"""An idempotent producer's batches stand in every log once and in order, without a gap (F44)."""

from collections.abc import Sequence

from tidelog.sim.invariants.invariant import Invariant
from tidelog.sim.scene import Copy
from tidelog.sim.shadow import Batch


class IdempotentOnce(Invariant):
    name = "idempotent once and in order"

    def appended(self, copy: Copy, batches: Sequence[Batch]) -> None:
        for batch in batches:
            if batch.producer_id >= 0 and batch.sequence >= 0:
                self._check(copy, batch)

    def _check(self, copy: Copy, batch: Batch) -> None:
        before = _last_of(copy, batch)
        if before is None:
            expected = 0 if copy.start == 0 else batch.sequence
        else:
            expected = before.next_sequence
        if batch.sequence != expected and not copy.ledger.lost:
            what = "twice or out of order" if batch.sequence < expected else "after a gap"
            raise self.violated(
                f"producer {batch.producer_id} has sequence {batch.sequence} at offset "
                f"{batch.base} on node {copy.node} {what}: {expected} was next",
                copy.ledger,
            )


def _last_of(copy: Copy, batch: Batch) -> Batch | None:
    """The producer's batch before this one, of the same epoch of its."""
    batches = copy.log.batches
    place = len(batches) - 1
    while place >= 0 and batches[place].base >= batch.base:
        place -= 1
    while place >= 0:
        found = batches[place]
        if found.producer_id == batch.producer_id and found.sequence >= 0:
            return found if found.producer_epoch == batch.producer_epoch else None
        place -= 1
    return None
