"""The records between the start and the end of a share partition, as runs of equal state.

Invariant: the runs cover every offset from `start` to `end` exactly once, in order. Offsets that
the log does not contain, because compaction removed them, are in ARCHIVED runs.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum

from tidelog.model.ids import Millis, Offset


class RecordState(IntEnum):
    """The delivery state of a record, with the number that Kafka persists for it."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4

    @property
    def is_terminal(self) -> bool:
        return self in (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


@dataclass(slots=True)
class RecordRun:
    """Consecutive records in the same state."""

    first: Offset
    last: Offset
    state: RecordState
    delivery_count: int
    batch_size: int
    """The number of records of the batch with which these records were first acquired."""
    member: str = ""
    """The member that has acquired the records; empty in every other state."""
    deadline: Millis = 0
    """The time at which the acquisition lock expires."""
    next_state: RecordState | None = None
    """The state that is being persisted; None if the state is settled."""
    next_count: int = 0

    @property
    def size(self) -> int:
        return self.last - self.first + 1

    @property
    def coming_state(self) -> RecordState:
        """The state of the records once the write in progress, if any, has succeeded."""
        return self.state if self.next_state is None else self.next_state

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self.next_state is None

    @property
    def is_done(self) -> bool:
        """Whether the records will never be delivered again, and this is persisted."""
        return self.state.is_terminal and self.next_state is None


class InFlightRecords:
    def __init__(self, start: Offset) -> None:
        self.start = start
        self.end = start
        """The offset after the last record in flight."""
        self._runs: list[RecordRun] = []

    def __iter__(self) -> Iterator[RecordRun]:
        return iter(self._runs)

    def __len__(self) -> int:
        """The number of runs."""
        return len(self._runs)

    @property
    def count(self) -> int:
        """The number of records in flight."""
        return self.end - self.start

    @property
    def completed(self) -> int:
        """The number of records from `start` on that will not be delivered again."""
        return sum(run.size for run in self._runs if run.coming_state.is_terminal)

    def append(self, run: RecordRun) -> None:
        assert run.first == self.end
        assert run.first <= run.last
        self._runs.append(run)
        self.end = run.last + 1

    def between(self, first: Offset, last: Offset) -> list[RecordRun]:
        """The runs of this range; runs across its borders are split first."""
        first, last = max(first, self.start), min(last, self.end - 1)
        if first > last:
            return []
        self._split(first)
        self._split(last + 1)
        return self._runs[self._index(first) : self._index(last) + 1]

    def overlapping(self, first: Offset, last: Offset) -> list[RecordRun]:
        """The runs that have at least one record in this range, whole."""
        first, last = max(first, self.start), min(last, self.end - 1)
        return self._runs[self._index(first) : self._index(last) + 1] if first <= last else []

    def advance(self) -> bool:
        """Move the start past the records that are done; returns whether it moved."""
        done = 0
        for run in self._runs:
            if not run.is_done:
                break
            done += 1
        if not done:
            return False
        self.start = self._runs[done - 1].last + 1
        del self._runs[:done]
        return True

    def truncate_before(self, offset: Offset) -> None:
        """Forget the records below an offset, which the log has deleted."""
        assert offset > self.start
        if offset >= self.end:
            self._runs.clear()
            self.start = self.end = offset
            return
        self._split(offset)
        del self._runs[: self._index(offset)]
        self.start = offset

    def _index(self, offset: Offset) -> int:
        return bisect_right(self._runs, offset, key=_first) - 1

    def _split(self, offset: Offset) -> None:
        """Let a run begin at this offset."""
        if not self.start < offset < self.end:
            return
        index = self._index(offset)
        run = self._runs[index]
        if run.first < offset:
            self._runs.insert(index + 1, replace(run, first=offset))
            run.last = offset - 1


def _first(run: RecordRun) -> Offset:
    return run.first
