"""Log matching: two logs that share a batch are equal up to this batch.

Two logs share a batch if both hold a batch of the same epoch at the same offset. The check compares
the two batches, and the batch before each of them. By induction, the logs are then equal up to this
batch.
"""

from collections.abc import Sequence

from tidelog.sim.checks.scene import Copy
from tidelog.sim.checks.shadow import Batch
from tidelog.sim.invariants.invariant import Invariant


class LogMatching(Invariant):
    name = "log matching"

    def appended(self, copy: Copy, batches: Sequence[Batch]) -> None:
        ledger = copy.ledger
        before = copy.log.before(batches[0].base)
        previous = None if before is None else before.key
        for batch in batches:
            found = ledger.known.get(batch.key)
            if found is None:
                ledger.known[batch.key] = (batch, previous)
            else:
                known, known_previous = found
                if known != batch:
                    raise self.violated(
                        f"offset {batch.base} of epoch {batch.epoch} holds two different batches, "
                        f"one of them on node {copy.node}",
                        ledger,
                    )
                if previous is not None and known_previous is None:
                    ledger.known[batch.key] = (batch, previous)
                elif previous not in (None, known_previous):
                    raise self.violated(
                        f"before offset {batch.base} of epoch {batch.epoch} node {copy.node} holds "
                        f"{previous}, where another log has {known_previous}",
                        ledger,
                    )
            previous = batch.key
