"""The host's clock: wall-clock milliseconds that never go back.

The wall clock is read once, at start; from there on time is what the machine's boot clock has
counted, sleep of the machine included. A stepped wall clock therefore moves no deadline, and a
long-lived process may differ from a wall clock that was set after it started.
"""

from collections.abc import Callable
from time import CLOCK_BOOTTIME, clock_gettime_ns, time_ns

from tidelog.model.ids import Millis


def wall_clock() -> Callable[[], Millis]:
    """A clock to ask for the time now."""
    offset = time_ns() - clock_gettime_ns(CLOCK_BOOTTIME)

    def now() -> Millis:
        return (clock_gettime_ns(CLOCK_BOOTTIME) + offset) // 1_000_000

    return now
