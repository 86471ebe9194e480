"""The node's idea of time: what its host last said. Nothing in the node reads a real clock.

`now` is for deadlines: it never goes back and never jumps, whatever is done to the machine's clock.
`wall` is for timestamps: what the machine's clock shows, which can be set at any time, either way.

What is deleted by its age is gone for good, so retention does not follow a clock that was set
forward before it has stood for an hour: a clock that jumps ahead and is put right deletes nothing.
"""

from tidelog.model.ids import Millis

STEP_MS: Millis = 1_000
"""Less is a clock that is kept right by small corrections."""
TRUST_MS: Millis = 3_600_000


class Clock:
    __slots__ = ("_settled_ms", "_trusted_at", "ahead_ms", "now")

    def __init__(self, now: Millis) -> None:
        self.now = now
        self.ahead_ms: Millis = 0
        """How far the machine's clock is ahead of `now`; behind it where this is negative."""
        self._settled_ms: Millis = 0
        self._trusted_at: Millis = now

    @property
    def wall(self) -> Millis:
        return self.now + self.ahead_ms

    @property
    def settled_ms(self) -> Millis:
        """How far the machine's clock is ahead of `now`, as far as that can be trusted."""
        if self.now >= self._trusted_at:
            self._settled_ms = self.ahead_ms
        return self._settled_ms

    def wall_moved(self, ahead_ms: Millis) -> None:
        settled_ms = self.settled_ms
        if ahead_ms - self.ahead_ms > STEP_MS:
            self._trusted_at = self.now + TRUST_MS
        self.ahead_ms = ahead_ms
        self._settled_ms = min(settled_ms, ahead_ms)
