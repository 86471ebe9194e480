"""Keeps one deadline per key, and returns the keys in order of their deadlines.

Heartbeats move a deadline several times per session. To save work, moving a deadline to a later
time changes only the recorded deadline. The old heap entry is corrected when it reaches the top of
the heap.
"""

from collections.abc import Hashable
from heapq import heappop, heappush, heapreplace
from typing import Any, Generic, NamedTuple, TypeVar

from tidelog.model.ids import Millis

K = TypeVar("K", bound=Hashable)


class SetTimer(NamedTuple):
    """Set or move the deadline of a key; None cancels it."""

    key: Any
    deadline: Millis | None


class KeyedTimers(Generic[K]):
    def __init__(self) -> None:
        self._deadlines: dict[K, Millis] = {}
        self._in_heap: dict[K, Millis] = {}  # the deadline of each key's current heap entry
        self._heap: list[tuple[Millis, int, K]] = []
        self._sequence = 0

    def schedule(self, key: K, deadline: Millis) -> None:
        """Set or move the key's deadline."""
        self._deadlines[key] = deadline
        listed = self._in_heap.get(key)
        if listed is None or listed > deadline:
            self._push(key, deadline)

    def set(self, key: K, deadline: Millis | None) -> None:
        """Carry out a `SetTimer`."""
        if deadline is None:
            self.cancel(key)
        else:
            self.schedule(key, deadline)

    def cancel(self, key: K) -> None:
        self._deadlines.pop(key, None)

    def next_deadline(self) -> Millis | None:
        self._settle_top()
        return self._heap[0][0] if self._heap else None

    def __contains__(self, key: K) -> bool:
        return key in self._deadlines

    def is_due(self, key: K, now: Millis) -> bool:
        deadline = self._deadlines.get(key)
        return deadline is not None and deadline <= now

    def due(self, now: Millis) -> list[K]:
        """The keys whose deadline has passed, earliest first. They stay due until cancelled."""
        entries = []
        while True:
            self._settle_top()
            if not self._heap or self._heap[0][0] > now:
                break
            entry = heappop(self._heap)
            del self._in_heap[entry[2]]
            entries.append(entry)
        for deadline, sequence, key in entries:
            self._in_heap[key] = deadline
            heappush(self._heap, (deadline, sequence, key))
        return [key for _, _, key in entries]

    def _push(self, key: K, deadline: Millis) -> None:
        self._in_heap[key] = deadline
        heappush(self._heap, (deadline, self._next_sequence(), key))

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence

    def _settle_top(self) -> None:
        """Drop or move entries at the top of the heap that are out of date."""
        while self._heap:
            listed, _, key = self._heap[0]
            deadline = self._deadlines.get(key)
            if self._in_heap.get(key) != listed:
                heappop(self._heap)  # an earlier entry for this key has replaced it
            elif deadline is None:
                heappop(self._heap)
                del self._in_heap[key]
            elif deadline > listed:
                self._in_heap[key] = deadline
                heapreplace(self._heap, (deadline, self._next_sequence(), key))
            else:
                return
