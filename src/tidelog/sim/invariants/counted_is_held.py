"""What a leader counts on, its followers hold: a fetch from N proves all below N (F04, F14, F15).

Looked at while nobody has heard of a later epoch, in which a follower may cut, and for followers in
the run of their broker that the leader has heard from, which has lost nothing since.
"""

from tidelog.sim.checks.scene import Copy
from tidelog.sim.invariants.invariant import Invariant


class CountedIsHeld(Invariant):
    name = "what is counted is held"

    def followers_counted(self, copy: Copy) -> None:
        placed = self.scene.placed(copy.ledger)
        if placed is None or placed.leader_epoch != copy.epoch:
            return
        for node, end in copy.ends.items():
            if node == copy.node or end <= copy.start:
                continue
            follower = self.scene.copy(node, copy.ledger)
            epoch = self.scene.broker_epochs.get(node, -1)
            if follower is None or epoch < 0 or copy.runs.get(node) not in (-1, epoch):
                continue
            mine, theirs = copy.log.at(end - 1), follower.log.at(end - 1)
            if (
                mine is not None
                and end > follower.start
                and (theirs is None or theirs.key != mine.key)
            ):
                raise self.violated(
                    f"node {copy.node}, which leads in epoch {copy.epoch}, counts on node {node} "
                    f"for everything below {end}, and that does not hold it",
                    copy.ledger,
                )
