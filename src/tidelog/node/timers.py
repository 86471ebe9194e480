"""Deadlines as values: a heap that the host asks for its next time and runs when it has come.

Invariant: at most about half of the heap is timers that were cancelled, however far away their time
is, so that what is asked to wait for long and is done soon costs nothing.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

from tidelog.model.ids import Millis

_FEW = 512
"""So many cancelled timers are let be."""


class Timer:
    """One action at one time, unless cancelled before."""

    __slots__ = ("_timers", "action")

    def __init__(self, timers: "Timers", action: Callable[[], None]) -> None:
        self._timers = timers
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        if self.action is not None:
            self.action = None
            self._timers.cancelled()


class Timers:
    """Actions fire in order of time, then in the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[Millis, int, Timer]] = []
        self._order = count()
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, when: Millis, action: Callable[[], None]) -> Timer:
        timer = Timer(self, action)
        heappush(self._heap, (when, next(self._order), timer))
        return timer

    def cancelled(self) -> None:
        """One more of the heap is not to fire."""
        self._cancelled += 1
        if self._cancelled > _FEW and 2 * self._cancelled > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].action is not None]
            heapify(self._heap)
            self._cancelled = 0

    def next_deadline(self) -> Millis | None:
        while self._heap and self._heap[0][2].action is None:
            heappop(self._heap)
            self._cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def fire(self, now: Millis) -> None:
        """Run everything that is due, including what the actions themselves set for now."""
        while self._heap and self._heap[0][0] <= now:
            timer = heappop(self._heap)[2]
            action, timer.action = timer.action, None
            if action is None:
                self._cancelled -= 1
            else:
                action()
