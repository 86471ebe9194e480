"""A consumer receives only committed records, so every record that was read stays readable."""

from collections.abc import Sequence

from tidelog.model.ids import TopicPartition
from tidelog.sim.checks.shadow import Batch
from tidelog.sim.invariants.invariant import Invariant


class ReadsStay(Invariant):
    name = "a consumer reads only committed records"

    def read(self, partition: TopicPartition, batches: Sequence[Batch]) -> None:
        ledger = self.scene.by_name[partition]
        for batch in batches:
            if ledger.committed.at(batch.base) != batch and not ledger.lost:
                raise self.violated(
                    f"offset {batch.base} of epoch {batch.epoch} was read and is not committed",
                    ledger,
                )
