"""The delay before a dead node is started again. The delay grows if the node dies repeatedly.

The first restart has no delay. The second restart waits FIRST_SECONDS, and each further restart
waits twice as long. Without a delay, a node that dies soon after each start would use a whole core
and fill its log.
"""

FIRST_SECONDS = 0.5
LONGEST_SECONDS = 30.0
LONG_LIFE_SECONDS = 10.0
"""If a node ran for at least this long, its next restart has no delay."""


class RestartDelay:
    """The delays of one node."""

    __slots__ = ("_long_life_seconds", "_short_lives")

    def __init__(self, long_life_seconds: float = LONG_LIFE_SECONDS) -> None:
        self._long_life_seconds = long_life_seconds
        self._short_lives = 0

    def after(self, lived_seconds: float) -> float:
        """The delay in seconds before the next start of a node that ran for `lived_seconds`."""
        if lived_seconds >= self._long_life_seconds:
            self._short_lives = 0
        doublings = self._short_lives - 1
        self._short_lives += 1
        if doublings < 0:
            return 0.0
        return min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(doublings, 10))
