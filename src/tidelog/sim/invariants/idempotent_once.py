"""Every log holds an idempotent producer's batches once, in order and without a gap (F44)."""

from collections.abc import Sequence

from tidelog.sim.checks.scene import Copy
from tidelog.sim.checks.shadow import Batch
from tidelog.sim.invariants.invariant import Invariant


class IdempotentOnce(Invariant):
    name = "idempotent batches once and in order"

    def appended(self, copy: Copy, batches: Sequence[Batch]) -> None:
        newest: dict[int, Batch | None] = {}
        for batch in batches:
            producer = batch.producer_id
            if producer < 0 or batch.sequence < 0:
                continue
            if producer not in newest:
                newest[producer] = copy.log.last_of(producer, batches[0].base)
            self._check(copy, batch, newest[producer])
            newest[producer] = batch

    def _check(self, copy: Copy, batch: Batch, before: Batch | None) -> None:
        if before is None or before.producer_epoch != batch.producer_epoch:
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
