"""Short log lines on stderr, limited in rate so that a hostile peer cannot flood the log."""

import logging
import os
from collections.abc import Callable

from tidelog.model.ids import Millis
from tidelog.runtime.clock import HostClock

SAME_PER_SECOND = 10
LEVEL_VARIABLE = "TIDELOG_LOG_LEVEL"
"""The environment variable that sets the lowest level of log lines; INFO if it is not set."""


class RepeatedLineFilter(logging.Filter):
    """Omits a message that was already logged `SAME_PER_SECOND` times in this second. The first
    line with the same message in a later second reports how many lines were omitted.
    """

    def __init__(self, clock: Callable[[], Millis]) -> None:
        super().__init__()
        self._clock = clock
        self._seen: dict[str, tuple[int, int]] = {}  # by message: (second, lines in it)

    def filter(self, record: logging.LogRecord) -> bool:
        kind, second = record.msg, self._clock() // 1000
        since, lines = self._seen.get(kind, (second, 0))
        if since != second:
            if lines > SAME_PER_SECOND:
                record.msg = f"{kind} ({lines - SAME_PER_SECOND} similar lines were omitted)"
            since, lines = second, 0
        self._seen[kind] = (since, lines + 1)
        return lines < SAME_PER_SECOND


class LineLimit:
    """Limits log lines that peers trigger: up to `burst` lines at once, then one per `every_ms`."""

    __slots__ = ("_every_ms", "_left", "_most", "_omitted", "_refilled_at")

    def __init__(self, burst: int, every_ms: Millis) -> None:
        self._most = self._left = burst
        self._every_ms = every_ms
        self._refilled_at: Millis = 0
        self._omitted = 0

    def allow(self, now: Millis) -> bool:
        """Whether the line may be written; if not, it counts as omitted."""
        refill = (now - self._refilled_at) // self._every_ms
        if refill > 0:
            self._left = min(self._most, self._left + refill)
            self._refilled_at = now
        if not self._left:
            self._omitted += 1
            return False
        self._left -= 1
        return True

    def omitted(self) -> str:
        """The report about omitted lines, for the end of the next line; empty if there are none."""
        omitted, self._omitted = self._omitted, 0
        return f" ({omitted} such lines were omitted before)" if omitted else ""


def log_to_stderr(who: str = "") -> None:
    """Log `HH:MM:SS.mmm LEVEL message`, with a prefix if several nodes share a terminal."""
    handler = logging.StreamHandler()
    prefix = f"{who}: " if who else ""
    line = f"%(asctime)s.%(msecs)03d %(levelname)s {prefix}%(message)s"
    handler.setFormatter(logging.Formatter(line, "%H:%M:%S"))
    handler.addFilter(RepeatedLineFilter(HostClock()))
    level = logging.getLevelNamesMapping().get(os.environ.get(LEVEL_VARIABLE, ""), logging.INFO)
    logging.basicConfig(level=level, handlers=[handler])
