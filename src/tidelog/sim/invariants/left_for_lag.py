"""A leader drops only followers that have lagged for longer than the lag time (F23, F25).

The lag time is replica.lag.time.max.ms. The number of missing records does not matter, because a
burst makes every follower lag. A follower stays if one of its fetches reached the log end within
the lag time, or if the leader was elected within the lag time. A violation of this rule loses no
record, but the ISR would shrink and grow with the load.
"""

from collections.abc import Set

from tidelog.model.ids import Millis, NodeId
from tidelog.sim.checks.scene import Copy
from tidelog.sim.invariants.invariant import Invariant


class LeftForLag(Invariant):
    name = "only a lagging replica leaves the in-sync set"

    def shrinking(self, copy: Copy, left: Set[NodeId], since: Millis) -> None:
        for node in sorted(left):
            level_at = copy.level_at.get(node, 0)
            if level_at >= since:
                raise self.violated(
                    f"node {copy.node}, which leads in epoch {copy.epoch}, drops node {node}, "
                    f"which was caught up {level_at - since} ms after the lag time began",
                    copy.ledger,
                )
