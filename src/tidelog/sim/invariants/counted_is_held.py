"""A follower holds what its leader counts: a fetch at N proves all records below N (F04, F14, F15).

It is checked while no later epoch exists, in which a follower may truncate, and for followers in
the broker run that last fetched from the leader, which has lost nothing since.
"""

from tidelog.sim.checks.scene import Copy
from tidelog.sim.invariants.invariant import Invariant


class CountedIsHeld(Invariant):
    name = "a follower holds what its leader counts"

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
                    f"node {copy.node}, which leads in epoch {copy.epoch}, counts node {node} "
                    f"as holding all records below {end}, but node {node} does not",
                    copy.ledger,
                )
