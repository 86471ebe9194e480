"""Deadlines as values: a heap that the host asks for its next time and runs when it has come."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count

from tidelog.model.ids import Millis


class Timer:
    """One action at one time, unless cancelled before."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None


class Timers:
    """Actions fire in order of time, then in the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[Millis, int, Timer]] = []
        self._order = count()

    def at(self, when: Millis, action: Callable[[], None]) -> Timer:
        timer = Timer(action)
        heappush(self._heap, (when, next(self._order), timer))
        return timer

    def next_deadline(self) -> Millis | None:
        while self._heap and self._heap[0][2].action is None:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def fire(self, now: Millis) -> None:
        """Run everything that is due, including what the actions themselves set for now."""
        while self._heap and self._heap[0][0] <= now:
            action = heappop(self._heap)[2].action
            if action is not None:
                action()
