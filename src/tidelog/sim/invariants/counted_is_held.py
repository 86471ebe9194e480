"""A follower holds all records that its leader assumes it to hold (F04, F14, F15).

If a follower fetches at offset N, its leader assumes that the follower holds all records below N.
The check skips leaders of earlier epochs, because a follower may truncate its log in a later epoch.
The check also skips followers that have restarted since their last fetch, because they may have
lost records. It skips a follower that has reported damaged records, as long as the controller
assigns it to no directory: until then the follower cannot rejoin the in-sync set.
"""

from tidelog.controller.image.image import UNASSIGNED_DIRECTORY, PartitionImage
from tidelog.model.ids import NodeId
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
            if self._has_reported_damage(placed, node):
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

    def _has_reported_damage(self, placed: PartitionImage, node: NodeId) -> bool:
        broker, directory = self.scene.image.brokers.get(node), placed.directory_of(node)
        return (
            node not in placed.isr
            and broker is not None
            and directory != UNASSIGNED_DIRECTORY
            and directory not in broker.directories
        )
