"""For how long a replica has been behind its leader: no more than looks and events prove.

A replica that holds all that its leader held at some moment was not behind then; one that lacks
some of it has been since. Leaders count from when they last saw a replica level, and are believed
until it has come to where its leader was when that was told. Nothing is proven across a change of
leaders, since another log may end elsewhere. Offsets and times in, words out.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from tidelog.insight import wording
from tidelog.insight.replica_history import FollowerHistory
from tidelog.model.ids import NO_NODE, Millis, NodeId, Offset

MOST = 256
"""Looks that are remembered of a partition; of more, every second one is forgotten."""


class LookTime(NamedTuple):
    """The brokers are asked one after another, each at some moment between these two."""

    began: Millis
    ended: Millis


class Proof(NamedTuple):
    """What is known of the moment since which a replica has been behind."""

    level_at: Millis | None = None
    """It was not behind yet."""
    behind_at: Millis | None = None
    """It was behind already."""

    def joined(self, other: "Proof") -> "Proof":
        """The last moment when it was level, and the first one after that when it was not."""
        level_at = max(_known(self.level_at, other.level_at), default=None)
        behind = _known(self.behind_at, other.behind_at)
        return Proof(
            level_at, min((at for at in behind if level_at is None or at >= level_at), default=None)
        )

    def words(self, now: LookTime) -> str:
        """`3.0 s`: for so long at least. `> 3.0 s`: and nobody knows how much longer. `< 3.0 s`:
        level that long ago, and not known to have been behind before now.
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
    """How far a partition's leader was at each look, as far back as one of its followers is."""

    def __init__(self) -> None:
        self._leader: NodeId = NO_NODE
        self._marks: list[_Mark] = []

    def note(
        self, leader: NodeId, end: Offset | None, followers: Iterable[Offset], look: LookTime
    ) -> None:
        """A look at the leader's end, if it told it, and at those that its followers told."""
        if leader != self._leader:
            self._leader, self._marks = leader, []
        if end is None:
            return
        if self._marks and end < self._marks[-1].leader_end:
            self._marks = []  # its log was cut
        self._marks.append(_Mark(look, end))
        reached = self._reached(min((*followers, end)))
        del self._marks[: max(0, reached - 1)]
        if len(self._marks) > MOST:
            del self._marks[1:-1:2]

    def prove(self, replica_end: Offset) -> Proof:
        """What the looks prove of a replica that is so far now."""
        reached = self._reached(replica_end)
        return Proof(
            self._marks[reached - 1].look.began if reached else None,
            self._marks[reached].look.ended if reached < len(self._marks) else None,
        )

    def _reached(self, replica_end: Offset) -> int:
        """How many of the marks; they rise."""
        return bisect_right(self._marks, replica_end, key=lambda mark: mark.leader_end)


def proven_by_leader(told: FollowerHistory, replica_end: Offset | None) -> Proof:
    """What its leader's word proves of a replica that is so far now, or does not say."""
    level_at = None if told.lag_ms is None else told.told_at - told.lag_ms
    leader_end = told.leader_end
    if replica_end is None or leader_end is None:
        return Proof(level_at, None)
    if replica_end >= leader_end:
        return Proof(told.told_at, None)
    return Proof(level_at, told.told_at if level_at is None else level_at)
