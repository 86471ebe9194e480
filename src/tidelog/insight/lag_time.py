"""Computes bounds for how long a replica has been behind its leader, without I/O.

A replica is level if its log reaches the leader's log end. An observation has a time and the
leader's log end offset at that time. If the replica's log now reaches that offset, the replica
counts as level at the time of the observation. If the replica is behind now, it fell behind after
the observation. If its log does not reach that offset, the replica has been behind at least since
the observation.

The leader also reports its own log end offset, and the time when it last saw the replica level. If
the replica has now reached the reported offset, it counts as level at the time of the report. A
change of leader invalidates all observations, because the new leader's log may end at another
offset.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from tidelog.insight import wording
from tidelog.insight.replica_history import FollowerHistory
from tidelog.model.ids import NO_NODE, Millis, NodeId, Offset

MOST = 256
"""If a partition has more observations than this, every second observation is dropped."""


class LookTime(NamedTuple):
    """The start and end of an observation, which queries the brokers one after another."""

    began: Millis
    ended: Millis


class Proof(NamedTuple):
    """Bounds for the moment at which a replica fell behind."""

    level_at: Millis | None = None
    """A moment at which the replica was not behind yet."""
    behind_at: Millis | None = None
    """A moment at which the replica was already behind."""

    def joined(self, other: "Proof") -> "Proof":
        """Combine the bounds of two proofs into the tightest bounds.

        The result has the latest time when the replica was level, and the earliest later time when
        the replica was behind.
        """
        level_at = max(_known(self.level_at, other.level_at), default=None)
        behind = _known(self.behind_at, other.behind_at)
        return Proof(
            level_at, min((at for at in behind if level_at is None or at >= level_at), default=None)
        )

    def words(self, now: LookTime) -> str:
        """Format how long the replica has been behind: `3.0 s` if both bounds are known, `> 3.0 s`
        for at least 3 s, and `< 3.0 s` for at most 3 s.
        """
        if self.behind_at is not None and self.behind_at < now.began:
            at_least = wording.duration(now.began - self.behind_at)
            return at_least if self.level_at is not None else f"> {at_least}"
        if self.level_at is not None:
            return f"< {wording.duration(max(1, now.ended - self.level_at))}"
        return "-"


def _known(*moments: Millis | None) -> list[Millis]:
    return [at for at in moments if at is not None]


class _Mark(NamedTuple):
    look: LookTime
    leader_end: Offset


class LeaderEnds:
    """The leader's log end offset in past observations.

    Once all followers have reached the offset of an observation, older observations are dropped.
    """

    def __init__(self) -> None:
        self._leader: NodeId = NO_NODE
        self._marks: list[_Mark] = []

    def note(
        self, leader: NodeId, end: Offset | None, followers: Iterable[Offset], look: LookTime
    ) -> None:
        """Add an observation. `end` is None if the leader did not answer."""
        if leader != self._leader:
            self._leader, self._marks = leader, []
        if end is None:
            return
        if self._marks and end < self._marks[-1].leader_end:
            self._marks = []  # the leader's log was truncated
        self._marks.append(_Mark(look, end))
        reached = self._reached(min((*followers, end)))
        del self._marks[: max(0, reached - 1)]
        if len(self._marks) > MOST:
            del self._marks[1:-1:2]

    def prove(self, replica_end: Offset) -> Proof:
        """The bounds that follow from the observations, for a replica with this end offset."""
        reached = self._reached(replica_end)
        return Proof(
            self._marks[reached - 1].look.began if reached else None,
            self._marks[reached].look.ended if reached < len(self._marks) else None,
        )

    def _reached(self, replica_end: Offset) -> int:
        """The number of observations whose leader end offset the replica has reached."""
        return bisect_right(self._marks, replica_end, key=lambda mark: mark.leader_end)


def proven_by_leader(told: FollowerHistory, replica_end: Offset | None) -> Proof:
    """The bounds that follow from the leader's report. `replica_end` is None if it is unknown."""
    level_at = None if told.lag_ms is None else told.told_at - told.lag_ms
    leader_end = told.leader_end
    if replica_end is None or leader_end is None:
        return Proof(level_at, None)
    if replica_end >= leader_end:
        return Proof(told.told_at, None)
    return Proof(level_at, told.told_at if level_at is None else level_at)
