"""A voter starts a new epoch of the metadata quorum only if a majority would vote for it (F36).

A new epoch deposes the current leader, so a voter must first win a pre-vote (KIP-996). The leader,
and every voter that has contact with the leader, rejects the pre-vote. When a voter starts an
epoch, a majority of voters must therefore have been without a leader at some time since the
pre-vote began. Needless elections lose no records, but they block all metadata changes.
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


class PreVoteBeforeEpoch(Invariant):
    name = "a pre-vote precedes a new quorum epoch"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._stances: dict[NodeId, Stance] = {}
        self._turned: dict[NodeId, Millis] = {}
        """When each voter last gained or lost contact with a leader."""
        self._asking: dict[NodeId, _Asking] = {}

    def stance_changed(self, stance: Stance, now: Millis) -> None:
        node = stance.node
        before = self._stances.get(node)
        self._stances[node] = stance
        if before is None or before.is_content is not stance.is_content:
            self._turned[node] = now
        if stance.role is Prospective:
            # Keep the time of the first pre-vote in an epoch, because late responses to this
            # pre-vote remain valid.
            since = self._asked_since(stance, stance.epoch, now)
            self._asking[node] = _Asking(stance.run, stance.epoch, since)
        if before is None or before.run != stance.run:
            return
        if stance.role is Candidate and stance.epoch > before.epoch:
            self._check(stance, before.epoch, now)

    def _asked_since(self, stance: Stance, epoch: LeaderEpoch, now: Millis) -> Millis:
        """The time of the voter's first pre-vote in this epoch, or now if there was none."""
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
                f"node {stance.node} starts epoch {stance.epoch} although {against} have contact "
                f"with the leader of epoch {epoch}"
            )

    def _was_content(self, voter: NodeId, since: Millis) -> bool:
        """Whether the voter has had contact with a leader without a break since this time."""
        stance = self._stances.get(voter)
        return stance is not None and stance.is_content and self._turned[voter] < since
