"""Which of the fetched records a member acquires.

Members acquire whole batches where possible, because a whole batch is acknowledged with one entry.
The limit of a request is therefore soft, unless the member asks for the strict limit (KIP-1206).
Records that were delivered several times may be harmful. They are delivered in smaller and smaller
portions, and at the last attempt alone, so that one harmful record does not archive its neighbours.
"""

from typing import NamedTuple

from tidelog.coordination.delivery.in_flight import InFlightRecords, RecordRun, RecordState
from tidelog.model.ids import Millis, Offset


class OffsetRange(NamedTuple):
    first: Offset
    last: Offset


class Acquirer(NamedTuple):
    """A member that fetches, with the limits of its request."""

    member: str
    max_records: int
    batch_size: int
    """The preferred number of records of an acquired batch."""
    is_strict: bool = False
    """Whether `max_records` may never be exceeded (share acquire mode `record_limit`)."""


class FetchedBatches(NamedTuple):
    offset: Offset
    """The offset from which the log was read."""
    batches: tuple[OffsetRange, ...]
    aborted: tuple[OffsetRange, ...] = ()
    """The batches of aborted transactions, which a group with `read_committed` does not get."""


class AcquiredRecords(NamedTuple):
    first: Offset
    last: Offset
    delivery_count: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


def acquire_fetched(
    records: InFlightRecords,
    acquirer: Acquirer,
    fetched: FetchedBatches,
    deadline: Millis,
    *,
    max_locks: int,
    attempts: int,
) -> list[AcquiredRecords]:
    if not fetched.batches or acquirer.max_records <= 0:
        return []
    last = fetched.batches[-1].last
    budget = min(acquirer.max_records, max_locks - records.count)
    if budget <= 0:
        if fetched.offset >= records.end:
            return []
        # No record may be added, but records in flight have become available again.
        budget = min(acquirer.max_records, records.end - fetched.offset)
        last = min(last, records.end - 1)
    _archive_removed(records, fetched.offset, fetched.batches[0].first)
    round_ = _Round(records, acquirer, deadline, attempts, budget)
    round_.redeliver(fetched.batches[0].first, last)
    if round_.budget > 0 and last >= records.end:
        round_.deliver_new(fetched.batches, last)
    return round_.acquired


def archive_aborted(
    records: InFlightRecords, acquired: list[AcquiredRecords], aborted: tuple[OffsetRange, ...]
) -> list[AcquiredRecords]:
    """Archive acquired records of aborted transactions; returns the remaining acquired records."""
    for first, last in aborted:
        kept: list[AcquiredRecords] = []
        for part in acquired:
            if part.last < first or last < part.first:
                kept.append(part)
                continue
            overlap_first, overlap_last = max(part.first, first), min(part.last, last)
            for run in records.between(overlap_first, overlap_last):
                run.state, run.member = RecordState.ARCHIVED, ""
            if part.first < first:
                kept.append(part._replace(last=first - 1))
            if last < part.last:
                kept.append(part._replace(first=last + 1))
        acquired = kept
    return acquired


def _archive_removed(records: InFlightRecords, fetched_from: Offset, found: Offset) -> None:
    """Archive available records that compaction has removed: the read skipped them."""
    for run in records.between(fetched_from, found - 1):
        if run.is_available:
            run.state, run.delivery_count = RecordState.ARCHIVED, 0


class _Round:
    """One request's acquisition."""

    def __init__(
        self,
        records: InFlightRecords,
        acquirer: Acquirer,
        deadline: Millis,
        attempts: int,
        budget: int,
    ) -> None:
        self._records = records
        self._acquirer = acquirer
        self._deadline = deadline
        self._attempts = attempts
        self._throttle_from = max(2, (attempts + 1) // 2)
        """The delivery count from which records are delivered in smaller portions."""
        self.budget = budget
        self.acquired: list[AcquiredRecords] = []

    def redeliver(self, first: Offset, last: Offset) -> None:
        for run in self._records.overlapping(first, last):
            if self.budget <= 0:
                return
            if not run.is_available:
                continue
            is_suspect = run.delivery_count >= self._throttle_from
            if is_suspect and self.acquired:
                self.budget = 0
                return
            portion = self._portion(run) if is_suspect else run.size
            if self._acquirer.is_strict:
                portion = min(portion, self.budget)
            begin = max(run.first, first)
            end = min(run.last, last, begin + portion - 1)
            for part in self._records.between(begin, end):
                self._take(part)
            if is_suspect:
                self.budget = 0

    def deliver_new(self, batches: tuple[OffsetRange, ...], last: Offset) -> None:
        """Take records past the end of those in flight."""
        records = self._records
        first = next(
            max(batch.first, records.end) for batch in batches if batch.last >= records.end
        )
        if records.end < first:
            # The log has no records at these offsets.
            gap = RecordRun(records.end, first - 1, RecordState.ARCHIVED, 0, first - records.end)
            records.append(gap)
        if self.budget < last - first + 1:
            last = min(last, _end_of_batch(batches, first + self.budget - 1))
        if self._acquirer.is_strict:
            granted = min(last, first + self.budget - 1)
            size = last - first + 1
            self._add(first, granted, size)
            if granted < last:
                records.append(RecordRun(granted + 1, last, RecordState.AVAILABLE, 0, size))
            return
        for chunk in _chunks(batches, first, last, self._acquirer.batch_size):
            self._add(chunk.first, chunk.last, chunk.last - chunk.first + 1)

    def _portion(self, run: RecordRun) -> int:
        """The number of suspect records to deliver together."""
        if self._attempts > 2 and run.delivery_count == self._attempts - 1:
            return 1
        return max(1, run.batch_size >> (run.delivery_count - self._throttle_from + 1))

    def _add(self, first: Offset, last: Offset, batch_size: int) -> None:
        run = RecordRun(first, last, RecordState.AVAILABLE, 0, batch_size)
        self._records.append(run)
        self._take(run)

    def _take(self, run: RecordRun) -> None:
        assert run.is_available
        run.state = RecordState.ACQUIRED
        run.delivery_count += 1
        run.member = self._acquirer.member
        run.deadline = self._deadline
        self.budget -= run.size
        self.acquired.append(AcquiredRecords(run.first, run.last, run.delivery_count))


def _end_of_batch(batches: tuple[OffsetRange, ...], offset: Offset) -> Offset:
    """The end of the batch that contains the offset; the offset itself if none does."""
    return next((batch.last for batch in batches if batch.first <= offset <= batch.last), offset)


def _chunks(
    batches: tuple[OffsetRange, ...], first: Offset, last: Offset, batch_size: int
) -> list[OffsetRange]:
    """Split a range at borders of batches into ranges of at least `batch_size` records."""
    chunks: list[OffsetRange] = []
    begin = first
    if last - first + 1 > batch_size:
        for batch in batches:
            if batch.first > last:
                break
            if batch.first - begin >= batch_size:
                chunks.append(OffsetRange(begin, batch.first - 1))
                begin = batch.first
    chunks.append(OffsetRange(begin, last))
    return chunks
