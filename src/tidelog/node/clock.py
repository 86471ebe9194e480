"""The node's clocks, set by its host, and its timers. Nothing in the node reads a real clock.

`now` is for deadlines. It never goes back and never jumps, even if the machine's clock is set.
`wall` is for timestamps. It shows the machine's clock, which can be set in either direction at any
time.

Retention deletes records by age, and a deletion cannot be undone. If the machine's clock is set
forward, retention therefore uses the new time only after one hour. If the clock is corrected within
that hour, nothing is deleted.
"""

from tidelog.model.ids import Millis
from tidelog.node.timers import Timers

STEP_MS: Millis = 1_000
"""A change up to this size counts as a correction by time synchronisation, not as a step."""
TRUST_MS: Millis = 3_600_000


class Clock:
    __slots__ = ("_settled_ms", "_trusted_at", "ahead_ms", "now", "timers")

    def __init__(self, now: Millis) -> None:
        self.now = now
        self.timers = Timers()
        self.ahead_ms: Millis = 0
        """How far the machine's clock is ahead of `now`; negative if it is behind."""
        self._settled_ms: Millis = 0
        self._trusted_at: Millis = now

    @property
    def wall(self) -> Millis:
        return self.now + self.ahead_ms

    @property
    def settled_ms(self) -> Millis:
        """Like `ahead_ms`, but a step forward takes effect only after one hour."""
        if self.now >= self._trusted_at:
            self._settled_ms = self.ahead_ms
        return self._settled_ms

    def wall_moved(self, ahead_ms: Millis) -> None:
        settled_ms = self.settled_ms
        if ahead_ms - self.ahead_ms > STEP_MS:
            self._trusted_at = self.now + TRUST_MS
        self.ahead_ms = ahead_ms
        self._settled_ms = min(settled_ms, ahead_ms)
