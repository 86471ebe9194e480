"""One pass of the cleaner over a log: builds the offset map, then replaces groups of segments.

The work runs in slices, each of which is a job. Between two slices the node may serve others, pause
or cancel the pass. A slice reads segments and writes `.cleaned` files, which no one else uses. The
node's thread replaces segments (`take`), after it has checked that they are still the segments that
were read. Invariant: at every moment the log on disk is complete. A crash leaves `.cleaned` files,
which the next start removes, or `.swap` files, which the next start puts in place
(`log/recovery/leftovers.py`).
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tidelog.log import names
from tidelog.log.cleaner.copying import PassMap, SegmentSource, build_map, clean_group
from tidelog.log.cleaner.filtering import BatchFilter, CleaningStats, LastRecord
from tidelog.log.cleaner.grouping import group_segments
from tidelog.log.cleaner.offset_map import DEFAULT_LOAD_PERCENT, slots_for
from tidelog.log.cleaner.selection import Cleanable
from tidelog.log.cleaner.transactions import CleanedTransactions
from tidelog.log.cleaner.writing import CleanedSegment, cleaned_path, open_cleaned
from tidelog.log.results import AbortedTxn
from tidelog.log.segments.retention import DeletedFiles
from tidelog.log.segments.scan import BrokenChainError
from tidelog.log.segments.segment import Segment
from tidelog.log.tail import LogTail
from tidelog.model.disk import Disk
from tidelog.model.ids import Millis, Offset, ProducerId
from tidelog.model.jobs import Steps, Work
from tidelog.protocol.records.unpacking import UnreadableRecords

SLICE_BYTES = 1 << 20
"""The number of bytes that a slice reads and writes."""
STEP_BYTES = 16 * 1024
"""The number of bytes after which a slice lets the node's thread run: about two milliseconds."""
LARGE_BYTES = 8 << 20
"""A pass over more bytes uses numpy, if it is installed."""


class CleanerLimits(NamedTuple):
    dedupe_buffer_bytes: int = 128 * 1024 * 1024
    load_percent: int = DEFAULT_LOAD_PERCENT
    large_bytes: int = LARGE_BYTES


class SliceDone(NamedTuple):
    """The result of a slice."""

    bytes_moved: int
    """The number of bytes that were read and written."""
    is_last: bool
    """Whether the map or the new segment is complete."""
    problem: str | None = None
    """Why this log cannot be cleaned."""


@dataclass(slots=True)
class CleaningSlice:
    """A job that does the next part of a pass."""

    work: ClassVar[Work] = Work.CLEAN
    todo: Iterator[int]
    """Yields the number of bytes that were read and written since the last time."""

    def run(self) -> Steps[SliceDone]:
        spent = since_step = 0
        try:
            for cost in self.todo:
                spent += cost
                since_step += cost
                if spent >= SLICE_BYTES:
                    return SliceDone(spent, is_last=False)
                if since_step >= STEP_BYTES:
                    since_step = 0
                    yield
        except (BrokenChainError, UnreadableRecords) as broken:
            return SliceDone(spent, is_last=True, problem=str(broken))
        return SliceDone(spent, is_last=True)


@dataclass(slots=True)
class SyncDirectory:
    """A job that makes the replacement of segments durable."""

    work: ClassVar[Work] = Work.CLEAN
    disk: Disk
    directory: str

    def run(self) -> Steps[SliceDone]:
        yield
        self.disk.sync_directory(self.directory)
        return SliceDone(0, is_last=True)


class CleaningPass:
    """A pass over one log. `next_job` and `take` alternate until `next_job` returns None."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        tail: LogTail,
        deleted: DeletedFiles,
        cleanable: Cleanable,
        limits: CleanerLimits,
        wall: Millis,
    ) -> None:
        """`wall` is the wall-clock time, which decides about tombstones."""
        self._disk = disk
        self._directory = directory
        self._tail = tail
        self._deleted = deleted
        self._wall = wall
        self.cleanable = cleanable
        self.stats = CleaningStats()
        self.is_cancelled = False
        """Whether the log has changed so that the result would be wrong."""
        self._segments = [one for one in tail.segments if one.base_offset < cleanable.end]
        aborted = [one for segment in tail.segments for one in segment.transaction_index]
        ends = [one.last_offset for one in aborted]
        self._sources = {
            one.base_offset: self._source(one, aborted, ends) for one in self._segments
        }
        dirty = [
            source for source in self._sources.values() if source.end_offset > cleanable.first_dirty
        ]
        records = sum(source.end_offset - source.base_offset for source in dirty)
        self._map = PassMap(
            slots_for(records, limits.dedupe_buffer_bytes, limits.load_percent),
            limits.load_percent,
            is_large=cleanable.clean_bytes + cleanable.dirty_bytes > limits.large_bytes,
        )
        self._transactions = CleanedTransactions()
        self._groups: list[list[Segment]] | None = None
        """The groups that are left; None while the map is being built."""
        self._new: CleanedSegment | None = None
        self._needs_sync = False
        self._todo: Iterator[int] | None = build_map(
            self._map, dirty, cleanable.first_dirty, cleanable.end
        )

    def _source(
        self, segment: Segment, aborted: Sequence[AbortedTxn], ends: Sequence[Offset]
    ) -> SegmentSource:
        """`aborted` holds all aborted transactions of the log, and `ends` their last offsets."""
        segments, base = self._tail.segments, segment.base_offset
        end = segments.end_of(segments.index_of(base), self._tail.end_offset)
        inside = []
        for number in range(bisect_left(ends, base), len(aborted)):
            if aborted[number].first_offset < end:
                inside.append(aborted[number])
            if aborted[number].last_stable_offset >= end:
                break  # every transaction that ends later also begins later
        return SegmentSource(segment.file, segment.size, base, end, tuple(inside))

    @property
    def cleaned_to(self) -> Offset:
        """The first dirty offset after this pass."""
        assert self._map.engine is not None
        return self._map.engine.latest_offset + 1

    def next_job(self) -> CleaningSlice | SyncDirectory | None:
        """The next job to run; None if the pass is complete or cancelled."""
        if self.is_cancelled:
            return None
        if self._todo is None and self._needs_sync:
            return SyncDirectory(self._disk, self._directory)
        if self._todo is None and self._groups:
            self._begin_group(self._groups[0])
        return None if self._todo is None else CleaningSlice(self._todo)

    def take(self, result: SliceDone, now: Millis) -> None:
        """Continue after a job. When a new segment is complete, it replaces its group."""
        if self.is_cancelled or not result.is_last or result.problem is not None:
            return
        if self._needs_sync:
            self._needs_sync = False
        elif self._groups is None:
            self._todo = None
            last = self._segments[-1]
            end = self._sources[last.base_offset].end_offset
            covered = [one for one in self._segments if one.base_offset < self.cleaned_to]
            end = end if len(covered) == len(self._segments) else self.cleaned_to
            self._groups = group_segments(covered, self._tail.config, end)
        else:
            self._todo = None
            self._replace(self._groups.pop(0), now)

    def abandon(self) -> None:
        """Stop the pass, and leave its files alone: their directory was renamed or has failed."""
        self.is_cancelled = True
        self._new = None

    def cancel(self) -> None:
        """Stop the pass, and remove the files of an incomplete segment."""
        self.is_cancelled = True
        if self._new is not None:
            for suffix in names.SEGMENT_SUFFIXES:
                self._disk.remove(cleaned_path(self._directory, self._new.base_offset, suffix))
            self._new = None

    # -- one group

    def _begin_group(self, group: Sequence[Segment]) -> None:
        base = group[0].base_offset
        files = open_cleaned(self._disk, self._directory, base)
        self._new = CleanedSegment(files, base, self._tail.config.index_interval_bytes)
        assert self._map.engine is not None
        batch_filter = BatchFilter(
            self._map.engine,
            self._transactions,
            self._last_records(),
            self.cleanable.end,
            self._wall,
            self._tail.config.delete_retention_ms,
            self.stats,
        )
        sources = [self._sources[one.base_offset] for one in group]
        self._todo = clean_group(batch_filter, sources, self._new)

    def _last_records(self) -> Mapping[ProducerId, LastRecord]:
        return {
            producer: LastRecord(
                entry.batches[-1].last_offset if entry.batches else None, entry.epoch
            )
            for producer, entry in self._tail.producers.entries.items()
        }

    def _replace(self, group: list[Segment], now: Millis) -> None:
        """Put the new segment in the place of its group, on disk and in memory."""
        new, segments, first = self._new, self._tail.segments, group[0]
        assert new is not None
        number = segments.index_of(first.base_offset)
        if not self._is_unchanged(number, group):
            self.cancel()
            return
        self._new = None
        self._tail.begin_change()
        swap_in(self._disk, self._directory, first.base_offset)
        self._deleted.add(group, now + self._tail.config.file_delete_delay_ms)
        put_in_place(self._disk, self._directory, first.base_offset)
        fresh = Segment(
            self._disk,
            self._directory,
            first.base_offset,
            group[-1].created,
            self._tail.config.index_interval_bytes,
        )
        fresh.size, fresh.is_time_confirmed = new.size, True
        segments.replace(number, len(group), fresh)
        for dropped in group[1:]:
            self._tail.snapshots.drop(dropped.base_offset)
        self._needs_sync = True

    def _is_unchanged(self, number: int, group: list[Segment]) -> bool:
        """Whether the log still has the segments that the job has read."""
        found = list(self._tail.segments)[number : number + len(group)]
        return found == group and all(
            one.size == self._sources[one.base_offset].size for one in group
        )


def swap_in(disk: Disk, directory: str, base_offset: Offset) -> None:
    """Rename `.cleaned` files to `.swap`. The log file comes last: it makes the swap complete."""
    for suffix in reversed(names.SEGMENT_SUFFIXES):
        path = cleaned_path(directory, base_offset, suffix)
        if suffix == names.TRANSACTION_INDEX and disk.size(path) == 0:
            disk.remove(path)
        else:
            disk.rename(path, path.removesuffix(names.CLEANED) + names.SWAP)


def put_in_place(disk: Disk, directory: str, base_offset: Offset) -> None:
    """Rename `.swap` files to the names of a segment."""
    for suffix in names.SEGMENT_SUFFIXES:
        path = f"{directory}/{names.offset_name(base_offset, suffix)}"
        if disk.exists(path + names.SWAP):
            disk.rename(path + names.SWAP, path)
