"""A leader drops from the in-sync set only who was behind for longer than the lag time (F23, F25).

Behind by how much does not matter: a burst is more than any follower has fetched. A follower that
had everything with a fetch within that time stays, and so does one in the first lag time of a new
leader. Nothing would be lost without this rule, but the set would shrink and grow with the load.
"""

from collections.abc import Set

from tidelog.model.ids import Millis, NodeId
from tidelog.sim.checks.scene import Copy
from tidelog.sim.invariants.invariant import Invariant


class LeftForLag(Invariant):
    name = "who leaves the in-sync set was behind for long"

    def shrinking(self, copy: Copy, left: Set[NodeId], since: Millis) -> None:
        for node in sorted(left):
            level_at = copy.level_at.get(node, 0)
            if level_at >= since:
                raise self.violated(
                    f"node {copy.node}, which leads in epoch {copy.epoch}, drops node {node}, "
                    f"which had everything {level_at - since} ms after the lag time began",
                    copy.ledger,
                )
