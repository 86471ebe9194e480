"""A follower holds all records that its leader assumes it to hold (F04, F14, F15).

If a follower fetches at offset N, its leader assumes that the follower holds all records below N.
The check skips leaders of earlier epochs, because a follower may truncate its log in a later epoch.
The check also skips followers that have restarted since their last fetch, because they may have
lost records.
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
