"""The host's clock: milliseconds that never go back, and how far the machine's clock is from them.

The machine's clock is read once, at the start; from there on time is what the boot clock has
counted, sleep of the machine included. Setting the machine's clock therefore moves no deadline: it
shows in `ahead_ms`.
"""

from time import CLOCK_BOOTTIME, clock_gettime_ns, time_ns

from tidelog.model.ids import Millis

SLACK_MS: Millis = 20
"""What the machine's clock may differ by before the node is told."""


class HostClock:
    def __init__(self) -> None:
        self._offset_ns = time_ns() - clock_gettime_ns(CLOCK_BOOTTIME)
        self._told_ms: Millis = 0

    def __call__(self) -> Millis:
        """The time now."""
        return (clock_gettime_ns(CLOCK_BOOTTIME) + self._offset_ns) // 1_000_000

    def ahead_ms(self, now: Millis) -> Millis:
        """How far the machine's clock is ahead of a time that was just read."""
        return time_ns() // 1_000_000 - now

    def moved(self, now: Millis) -> Millis | None:
        """How far the machine's clock is ahead, if it was set since that was last told."""
        ahead_ms = self.ahead_ms(now)
        if -SLACK_MS < ahead_ms - self._told_ms < SLACK_MS:
            return None
        self._told_ms = ahead_ms
        return ahead_ms
