"""Simulated time: a heap of (time, sequence number, action), and a running hash of all events.

Invariant: the same seed produces the same trace on any machine and with any PYTHONHASHSEED.
"""

import hashlib
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from tidelog.model.ids import Millis
from tidelog.sim.machines.dice import SeededDice

EPOCH_MS = 1_700_000_000_000
"""Simulated time starts at a plausible wall-clock time, because records carry timestamps."""


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.dice = SeededDice(seed)
        self.now: Millis = EPOCH_MS
        self.events = 0
        """The number of events so far."""
        self._heap: list[tuple[Millis, int, Callable[[], None]]] = []
        self._ties = count()
        self._trace = hashlib.blake2b(digest_size=16)

    @property
    def trace_hash(self) -> str:
        return self._trace.hexdigest()

    def note(self, what: str) -> None:
        """Add an event to the trace."""
        self._trace.update(f"{self.now} {what}\n".encode())

    def after(self, delay: Millis, action: Callable[[], None]) -> None:
        heappush(self._heap, (self.now + delay, next(self._ties), action))

    def run(self, duration: Millis) -> None:
        """Advance simulated time by this much."""
        end = self.now + duration
        heap = self._heap
        while heap and heap[0][0] <= end:
            self.now, _, action = heappop(heap)
            self.events += 1
            action()
        self.now = end

    def run_until(self, condition: Callable[[], bool], limit: Millis) -> bool:
        """Run until the condition holds; False if the time limit is reached first."""
        end = self.now + limit
        while not condition():
            if not self._heap or self._heap[0][0] > end:
                self.now = end
                return condition()
            self.now, _, action = heappop(self._heap)
            self.events += 1
            action()
        return True
