"""The host's clock: milliseconds that never go back, and their difference from the wall clock.

The clock starts at the time of the wall clock. From then on it advances with the boot clock, which
also counts the time while the machine is suspended. If someone sets the wall clock, only `ahead_ms`
changes. Deadlines do not move.
"""

from time import CLOCK_BOOTTIME, clock_gettime_ns, time_ns

from tidelog.model.ids import Millis

SLACK_MS: Millis = 20
"""The node is notified when the difference from the wall clock has changed by this much."""


class HostClock:
    def __init__(self) -> None:
        self._offset_ns = time_ns() - clock_gettime_ns(CLOCK_BOOTTIME)
        self._reported_ms: Millis = 0

    def __call__(self) -> Millis:
        """The current time."""
        return (clock_gettime_ns(CLOCK_BOOTTIME) + self._offset_ns) // 1_000_000

    def ahead_ms(self, now: Millis) -> Millis:
        """How far the wall clock is ahead of `now`.

        The caller has just read `now` from this clock.
        """
        return time_ns() // 1_000_000 - now

    def moved(self, now: Millis) -> Millis | None:
        """How far the wall clock is ahead; None if it has hardly moved since the last report."""
        ahead_ms = self.ahead_ms(now)
        if -SLACK_MS < ahead_ms - self._reported_ms < SLACK_MS:
            return None
        self._reported_ms = ahead_ms
        return ahead_ms
