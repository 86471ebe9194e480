"""A write acknowledged with acks=all is committed, unchanged, at the acknowledged offset.

By leader completeness, every later leader's log contains this write.
"""

from tidelog.sim.clients.history import ClientWrite
from tidelog.sim.invariants.invariant import Invariant


class AcknowledgedKept(Invariant):
    name = "acknowledged writes are kept"

    def acknowledged(self, write: ClientWrite) -> None:
        if write.acks != -1:
            return
        ledger = self.scene.by_name[write.partition]
        batch = ledger.committed.at(write.base_offset)
        if batch is None:
            if not ledger.lost:
                raise self.violated(
                    f"offset {write.base_offset} was acknowledged before it was committed", ledger
                )
        elif (batch.base, batch.crc) != (write.base_offset, write.crc) and not ledger.lost:
            raise self.violated(
                f"offset {write.base_offset} was acknowledged and holds another batch", ledger
            )
