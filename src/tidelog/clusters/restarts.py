"""How long to wait before a node that died is started again: at once, then longer and longer.

A node that dies soon after each start would otherwise take a core to do so, and fill its log.
"""

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
LONG_LIFE_SECONDS = 10.0
"""A node that has lived so long is no longer one that dies of its start."""


class RestartDelay:
    """The delays of one node."""

    __slots__ = ("_short_lives",)

    def __init__(self) -> None:
        self._short_lives = 0

    def after(self, lived_seconds: float) -> float:
        """It has died after so long: when, from now, to start it again."""
        if lived_seconds >= LONG_LIFE_SECONDS:
            self._short_lives = 0
        doublings = self._short_lives - 1
        self._short_lives += 1
        if doublings < 0:
            return 0.0
        return min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(doublings, 10))
