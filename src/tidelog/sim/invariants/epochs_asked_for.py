"""A voter opens a new epoch of the metadata quorum only when a majority would follow (F36).

A new epoch deposes whoever leads, so it is asked for first (pre-vote, KIP-996): who leads, or is in
touch with who does, says no. So somebody who opens one has asked for a while, and within that time
a majority, itself included, was without a leader. Elections lose nothing, but stop all changes.
"""

from typing import NamedTuple

from tidelog.model.ids import LeaderEpoch, Millis, NodeId
from tidelog.replication.quorum.roles import Candidate, Prospective
from tidelog.sim.checks.scene import Scene, Stance
from tidelog.sim.invariants.invariant import Invariant


class _Asking(NamedTuple):
    run: int
    epoch: LeaderEpoch
    since: Millis


class EpochsAskedFor(Invariant):
    name = "a new quorum epoch is asked for first"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._stances: dict[NodeId, Stance] = {}
        self._turned: dict[NodeId, Millis] = {}
        """When each was last content and then not, or the other way round."""
        self._asking: dict[NodeId, _Asking] = {}

    def stance_changed(self, stance: Stance, now: Millis) -> None:
        node = stance.node
        before = self._stances.get(node)
        self._stances[node] = stance
        if before is None or before.is_content is not stance.is_content:
            self._turned[node] = now
        if stance.role is Prospective:
            # Answers of an earlier round in the same epoch count, however late they come.
            since = self._asked_since(stance, stance.epoch, now)
            self._asking[node] = _Asking(stance.run, stance.epoch, since)
        if before is None or before.run != stance.run:
            return
        if stance.role is Candidate and stance.epoch > before.epoch:
            self._check(stance, before.epoch, now)

    def _asked_since(self, stance: Stance, epoch: LeaderEpoch, now: Millis) -> Millis:
        """Since when it has asked in this epoch; now, if it has not."""
        asking = self._asking.get(stance.node)
        if asking is None or (asking.run, asking.epoch) != (stance.run, epoch):
            return now
        return asking.since

    def _check(self, stance: Stance, epoch: LeaderEpoch, now: Millis) -> None:
        since = self._asked_since(stance, epoch, now)
        against = [
            voter
            for voter in stance.voters
            if voter != stance.node and self._was_content(voter, since)
        ]
        if len(stance.voters) - len(against) <= len(stance.voters) // 2:
            raise self.violated(
                f"node {stance.node} opens epoch {stance.epoch} although {against} are in touch "
                f"with the leader of epoch {epoch}"
            )

    def _was_content(self, voter: NodeId, since: Millis) -> bool:
        """All the time since then; a voter that nobody has seen may have said anything."""
        stance = self._stances.get(voter)
        return stance is not None and stance.is_content and self._turned[voter] < since
