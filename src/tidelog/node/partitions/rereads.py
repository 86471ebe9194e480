"""Limits how much one event reads again for parked fetches (F97).

One append, or the same deadline, can wake thousands of parked fetches, and each fetch may have
hundreds of partitions. Only some of them are read in the event that wakes them. The others follow
in turns, between the requests of other clients, in the order in which they were woken.
"""

from typing import Protocol

from tidelog.model.ids import Millis
from tidelog.node.clock import Clock

READS_PER_TURN = 300
"""How many partitions one turn reads for fetches of many partitions; this takes a few milliseconds.
"""
SHORT_READS_PER_TURN = 1_000
"""The same for fetches of few partitions. One turn then answers about a hundred consumers of the
same partition.
"""
FETCH_COST = 8
"""Waking one fetch takes about as long as reading this many partitions."""


class WokenFetch(Protocol):
    @property
    def partitions(self) -> int:
        """How many partitions the fetch reads."""

    def read_again(self) -> None: ...


class Rereads:
    """The woken fetches that wait for their turn."""

    __slots__ = ("_at", "_clock", "_left", "_per_turn", "_timers", "_woken")

    def __init__(self, clock: Clock, per_turn: int = READS_PER_TURN) -> None:
        self._clock = clock
        self._per_turn = per_turn
        self._timers = clock.timers
        self._woken: dict[WokenFetch, None] = {}
        self._at: Millis = -1
        self._left = 0
        """How many more partitions may be read at the time `_at`."""

    def admits(self, fetch: WokenFetch) -> bool:
        """Whether the fetch may be read now. If not, `read_again` is called in its turn."""
        if self._clock.now != self._at:
            self._at, self._left = self._clock.now, self._per_turn
        if not self._woken and self._left > 0:
            self._left -= FETCH_COST + fetch.partitions
            return True
        if fetch not in self._woken:
            if not self._woken:
                self._timers.at(self._clock.now + 1, self._turn)
            self._woken[fetch] = None
        return False

    def drop(self, fetch: WokenFetch) -> None:
        """Forget a fetch that is answered, or whose connection is lost."""
        self._woken.pop(fetch, None)

    def _turn(self) -> None:
        left = self._per_turn
        try:
            while self._woken and left > 0:
                fetch = next(iter(self._woken))
                del self._woken[fetch]
                left -= FETCH_COST + fetch.partitions
                fetch.read_again()
        finally:
            self._at, self._left = self._clock.now, left
            if self._woken:
                self._timers.at(self._clock.now + 1, self._turn)
