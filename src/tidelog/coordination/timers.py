"""Keeps one deadline per key, and returns the keys in order of their deadlines.

Heartbeats move a deadline several times per session. To save work, moving a deadline to a later
time changes only the recorded deadline. The old heap entry is corrected when it reaches the top of
the heap.
"""

from dataclasses import dataclass
from heapq import heappop, heappush, heapreplace
from typing import TypeAlias

from tidelog.model.ids import Millis


@dataclass(frozen=True, slots=True)
class SessionTimeout:
    """A member has sent nothing for its session timeout."""

    group_id: str
    member_id: str


@dataclass(frozen=True, slots=True)
class JoinTimeout:
    """The join phase of a rebalance has timed out."""

    group_id: str


@dataclass(frozen=True, slots=True)
class SyncTimeout:
    """The sync phase of a rebalance has timed out."""

    group_id: str


@dataclass(frozen=True, slots=True)
class WriteTimeout:
    """A write has not been replicated within the commit timeout."""

    write_id: int


@dataclass(frozen=True, slots=True)
class RetentionCheck:
    """The next check for expired offsets and empty groups is due."""


TimerKey: TypeAlias = SessionTimeout | JoinTimeout | SyncTimeout | WriteTimeout | RetentionCheck


class KeyedTimers:
    def __init__(self) -> None:
        self._deadlines: dict[TimerKey, Millis] = {}
        self._in_heap: dict[TimerKey, Millis] = {}  # the deadline of each key's current heap entry
        self._heap: list[tuple[Millis, int, TimerKey]] = []
        self._sequence = 0

    def schedule(self, key: TimerKey, deadline: Millis) -> None:
        """Set or move the key's deadline."""
        self._deadlines[key] = deadline
        listed = self._in_heap.get(key)
        if listed is None or listed > deadline:
            self._push(key, deadline)

    def cancel(self, key: TimerKey) -> None:
        self._deadlines.pop(key, None)

    def clear(self) -> None:
        self._deadlines.clear()
        self._in_heap.clear()
        self._heap.clear()

    def next_deadline(self) -> Millis | None:
        self._settle_top()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: Millis) -> TimerKey | None:
        """Remove and return the earliest key whose deadline has passed, if any."""
        self._settle_top()
        if not self._heap or self._heap[0][0] > now:
            return None
        key = heappop(self._heap)[2]
        del self._in_heap[key]
        del self._deadlines[key]
        return key

    def _push(self, key: TimerKey, deadline: Millis) -> None:
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
