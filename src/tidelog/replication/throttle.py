"""A limit in bytes per second, which one response may exceed.

A response is never shortened to meet the rate. Instead, later requests wait until the average is
within the rate again. At most one second's worth of unused bytes is saved, so no large burst
follows a pause.
"""

from typing import NamedTuple

from tidelog.model.ids import Millis

NO_LIMIT = (1 << 63) - 1
_MILLIS = 1_000


class Throttling(NamedTuple):
    """Whether the topic's configuration throttles a replica as leader, and as follower."""

    as_leader: bool = False
    as_follower: bool = False


class Throttle:
    """A limit in bytes per second, counted in thousandths of a byte, so that nothing is rounded."""

    __slots__ = ("_balance", "_earned_until", "_rate", "is_on")

    def __init__(self, rate: int = NO_LIMIT) -> None:
        self._rate = rate
        self.is_on = rate < NO_LIMIT
        self._balance = 0
        self._earned_until: Millis = 0

    def set_rate(self, rate: int, now: Millis) -> None:
        """Apply a new rate from now on; bytes that exceeded the old rate still count."""
        self._earn(now)
        self._rate = rate
        self.is_on = rate < NO_LIMIT
        self._balance = min(self._balance, rate * _MILLIS)

    def record(self, size: int, now: Millis) -> None:
        """Count bytes that were sent or received."""
        if self.is_on:
            self._earn(now)
            self._balance -= size * _MILLIS

    def is_exceeded(self, now: Millis) -> bool:
        return self.wait_ms(now) > 0

    def wait_ms(self, now: Millis) -> Millis:
        """How long until bytes may be sent again; 0 if they may be sent now."""
        if not self.is_on:
            return 0
        self._earn(now)
        return 0 if self._balance >= 0 else -(self._balance // max(1, self._rate))

    def _earn(self, now: Millis) -> None:
        elapsed = max(0, now - self._earned_until)
        self._earned_until = max(self._earned_until, now)
        if self.is_on:
            earned = self._balance + self._rate * elapsed
            self._balance = min(earned, self._rate * _MILLIS)
