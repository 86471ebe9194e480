"""Finds the partitions on whose account whole fetches fail, so that they do not hold up the others.

An answer that cannot be read, or at which the connection ends or the time runs out, names no
partition (F62). After two such answers in a row half of the partitions is left out, then half of
that half, until an answer comes or one partition is left: this one is to blame and is left out
until all have been tested. Those that have passed are fetched all the while. If none passes, it is
the leader that fails, and no partition is blamed.
"""

from collections.abc import Iterable

from tidelog.node.followers.followed import Followed

BAD_ANSWERS = 2
"""So many in a row are no accident: a leader that goes away ends a connection once."""


class FetchSuspects:
    def __init__(self) -> None:
        self._in_a_row = 0
        self._tested: list[Followed] = []
        """The fetch under way shows whether one of these is to blame."""
        self._later: list[list[Followed]] = []
        """Groups that are tested later, and left out until then."""
        self._blamed: list[Followed] = []
        """Found by this search, and left out until it ends."""
        self._tried_again: list[Followed] = []
        """Blamed by an earlier search, and not cleared since."""
        self._has_passed = False

    def unreachable(self) -> None:
        """There is no connection: nothing was learned of any partition."""
        self._in_a_row = 0

    def failed(self, asked: Iterable[Followed]) -> list[Followed]:
        """A fetch of these had no answer that can be used. -> the partitions to blame, if known."""
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

    def passed(self) -> list[Followed]:
        """An answer came: what was tested is cleared. -> the partitions to blame, if known."""
        self._in_a_row = 0
        self._has_passed = True
        for one in self._tried_again:
            if one.is_in_session:
                one.blames = 0
        self._tried_again = [one for one in self._tried_again if one.blames]
        return self._test_next()

    def forget(self, followed: Followed) -> None:
        """It is not followed any more."""
        for group in (self._tested, *self._later, self._blamed, self._tried_again):
            if followed in group:
                group.remove(followed)

    def _begin(self, asked: list[Followed]) -> None:
        """Those that were blamed before and are tried again are tested before all others."""
        tried_again = [one for one in asked if one.blames]
        if tried_again and len(tried_again) < len(asked):
            self._tested, self._has_passed = tried_again, True
        elif self._in_a_row >= BAD_ANSWERS and len(asked) > 1:
            self._tested, self._has_passed = asked, False

    def _test_next(self) -> list[Followed]:
        """Go on with the next group. -> at the end of the search, who is to blame."""
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


def _hold_back(group: Iterable[Followed], is_held_back: bool) -> None:
    for one in group:
        one.is_held_back = is_held_back
