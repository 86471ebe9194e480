"""Finds the partitions that make whole fetches fail, so that they do not delay other partitions.

A whole fetch fails if its response cannot be decoded, the connection is lost or the request times
out (F62). The failure does not show which partition has caused it. After two failures in a row,
half of the partitions are left out. If the fetch fails again, half of the rest is left out. This
continues until a fetch succeeds or only one partition is left. If the fetch of that one partition
fails too, the partition is blamed, and is left out until all partitions have been tested.
Partitions that have passed their test are fetched during the search. If no partition passes, the
leader itself has failed, so no partition is blamed.
"""

from collections.abc import Iterable
from typing import Generic, TypeVar

from tidelog.replication.isr.follower import PartitionFollower

BAD_ANSWERS = 2
"""The number of failures in a row that start a search. A leader that shuts down causes only one
failure.
"""


F = TypeVar("F", bound=PartitionFollower)


class FetchSuspects(Generic[F]):
    def __init__(self) -> None:
        self._in_a_row = 0
        self._tested: list[F] = []
        """The partitions that the current fetch tests."""
        self._later: list[list[F]] = []
        """Groups of partitions that are tested later and left out until then."""
        self._blamed: list[F] = []
        """Partitions that this search has blamed. They are left out until the search ends."""
        self._tried_again: list[F] = []
        """Partitions that an earlier search blamed and that have not passed a test since then."""
        self._has_passed = False

    def unreachable(self) -> None:
        """Reset the count of failures, because a fetch that was never sent tests no partition."""
        self._in_a_row = 0

    def failed(self, asked: Iterable[F]) -> list[F]:
        """Handle the failure of a fetch that asked for these partitions.

        Returns the partitions to blame, if they are known now.
        """
        self._in_a_row += 1
        if not self._tested:
            self._begin(list(asked))
        if len(self._tested) > 1:
            half = len(self._tested) // 2
            self._tested, later = self._tested[:half], self._tested[half:]
            _hold_back(later, True)
            self._later.append(later)
            return []
        for one in self._tested:
            one.blames += 1
            one.is_held_back = True
            self._blamed.append(one)
        return self._test_next()

    def passed(self) -> list[F]:
        """Handle the success of a fetch that asked for the tested partitions.

        Returns the partitions to blame, if they are known now.
        """
        self._in_a_row = 0
        if not (self._tested or self._later or self._blamed or self._tried_again):
            return []  # the common case: no search is under way
        self._has_passed = True
        for one in self._tried_again:
            if one.is_in_session:
                one.blames = 0
        self._tried_again = [one for one in self._tried_again if one.blames]
        return self._test_next()

    def forget(self, followed: F) -> None:
        """Forget a partition that is no longer followed."""
        for group in (self._tested, *self._later, self._blamed, self._tried_again):
            if followed in group:
                group.remove(followed)

    def _begin(self, asked: list[F]) -> None:
        """Start a search; partitions that an earlier search blamed are tested first."""
        tried_again = [one for one in asked if one.blames]
        if tried_again and len(tried_again) < len(asked):
            self._tested, self._has_passed = tried_again, True
        elif self._in_a_row >= BAD_ANSWERS and len(asked) > 1:
            self._tested, self._has_passed = asked, False

    def _test_next(self) -> list[F]:
        """Test the next group; at the end of the search, returns the partitions to blame."""
        self._tested = self._later.pop() if self._later else []
        _hold_back(self._tested, False)
        if self._tested:
            return []
        blamed, self._blamed = self._blamed, []
        _hold_back(blamed, False)
        if self._has_passed:
            self._tried_again += [one for one in blamed if one not in self._tried_again]
            return blamed
        for one in blamed:
            one.blames = 0
        return []


def _hold_back(group: Iterable[PartitionFollower], is_held_back: bool) -> None:
    for one in group:
        one.is_held_back = is_held_back
