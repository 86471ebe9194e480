"""The node's timers: the host reads the next deadline and fires the timers that are due.

Invariant: at most about half of the timers in the heap are cancelled. Cancelled timers therefore do
not accumulate, even if their deadlines are far away.
"""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

from tidelog.model.ids import Millis

_FEW = 512
"""The heap is cleaned up only if it has more cancelled timers than this."""


class Timer:
    """An action that runs at a given time, unless it is cancelled first."""

    __slots__ = ("_timers", "action")

    def __init__(self, timers: "Timers", action: Callable[[], None]) -> None:
        self._timers = timers
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        if self.action is not None:
            self.action = None
            timers = self._timers
            timers.cancelled += 1
            if timers.cancelled > _FEW:
                timers.clean_up()


class Timers:
    """Actions fire in order of time, then in the order in which they were set."""

    def __init__(self) -> None:
        self._heap: list[tuple[Millis, int, Timer]] = []
        self._order = count()
        self.cancelled = 0
        """The number of cancelled timers in the heap."""

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, when: Millis, action: Callable[[], None]) -> Timer:
        timer = Timer(self, action)
        heappush(self._heap, (when, next(self._order), timer))
        return timer

    def clean_up(self) -> None:
        """Remove the cancelled timers, if they are more than half of the heap."""
        if 2 * self.cancelled > len(self._heap):
            self._heap = [entry for entry in self._heap if entry[2].action is not None]
            heapify(self._heap)
            self.cancelled = 0

    def next_deadline(self) -> Millis | None:
        while self._heap and self._heap[0][2].action is None:
            heappop(self._heap)
            self.cancelled -= 1
        return self._heap[0][0] if self._heap else None

    def fire(self, now: Millis, run: Callable[[Callable[[], None]], None]) -> None:
        """Pass every action that is due to `run`, including due actions that these actions add."""
        while self._heap and self._heap[0][0] <= now:
            timer = heappop(self._heap)[2]
            action, timer.action = timer.action, None
            if action is None:
                self.cancelled -= 1
            else:
                run(action)
