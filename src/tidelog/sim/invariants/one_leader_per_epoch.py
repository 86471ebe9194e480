"""In each epoch only one node leads, and only in one run of its process (F17)."""

from tidelog.sim.checks.scene import Copy
from tidelog.sim.invariants.invariant import Invariant


class OneLeaderPerEpoch(Invariant):
    name = "one leader per epoch"

    def led(self, copy: Copy) -> None:
        leader = (copy.node, copy.run)
        first = copy.ledger.leaders.setdefault(copy.epoch, leader)
        if first != leader:
            again = "again" if first[0] == copy.node else f"after node {first[0]}"
            raise self.violated(
                f"node {copy.node} leads in epoch {copy.epoch} {again}", copy.ledger
            )
