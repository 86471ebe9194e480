"""One segment: a file of batches and its indexes.

Invariant: `size` bytes of whole batches, last offsets growing; the indexes name batch boundaries
only. Where the newest batches lie is kept in memory, so that a reader at the tail costs no file
access.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from tidelog.log import names, scan
from tidelog.log.index import OffsetIndex, TimeIndex
from tidelog.log.transaction_index import TransactionIndex
from tidelog.model.disk import Disk, File
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset
from tidelog.protocol.batch import BatchHeader

_RECENT = 128


class Hole(NamedTuple):
    """Damaged bytes among sound ones: not served, and stepped over by every walk."""

    position: int
    end: int
    first_offset: Offset
    end_offset: Offset


class Stretch(NamedTuple):
    """A part of a segment's file as it is now, which a job may read while the log goes on."""

    file: File
    position: int
    """A batch boundary."""
    end: int
    holes: tuple[Hole, ...]
    base_offset: Offset

    def headers(self, read_ahead: int = scan.NEAR) -> Iterator[tuple[int, BatchHeader]]:
        """Its batches, without those in holes."""
        position = self.position
        for hole in self.holes:
            if position < hole.position:
                yield from self._run(position, hole.position, read_ahead)
            position = max(position, hole.end)
        yield from self._run(position, self.end, read_ahead)

    def _run(self, position: int, end: int, read_ahead: int) -> Iterator[tuple[int, BatchHeader]]:
        return scan.headers(self.file, position, end, read_ahead, self.base_offset)


class Segment:
    __slots__ = (
        "_disk",
        "_file",
        "_max_timestamp",
        "_recent_from",
        "_recent_last_offsets",
        "_recent_positions",
        "_since_index_entry",
        "base_offset",
        "created",
        "directory",
        "first_timestamp",
        "holes",
        "offset_index",
        "offset_of_max_timestamp",
        "size",
        "time_index",
        "transaction_index",
    )

    def __init__(self, disk: Disk, directory: str, base_offset: Offset, now: Millis) -> None:
        self._disk = disk
        self._file: File | None = None
        self.directory = directory
        self.base_offset = base_offset
        self.created = now
        self.size = 0
        self.first_timestamp: Millis | None = None  # None: the first batch knows
        self.holes: tuple[Hole, ...] = ()
        self.offset_index = OffsetIndex(disk, self.path(names.OFFSET_INDEX), base_offset)
        self.time_index = TimeIndex(disk, self.path(names.TIME_INDEX), base_offset)
        self.transaction_index = TransactionIndex(
            disk, self.path(names.TRANSACTION_INDEX), base_offset
        )
        self._max_timestamp: Millis | None = None  # None: the time index knows
        self.offset_of_max_timestamp = base_offset
        self._since_index_entry = 0
        self._recent_from = base_offset
        self._recent_last_offsets = array("q")
        self._recent_positions = array("q")

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{names.offset_name(self.base_offset, suffix)}"

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path(names.LOG))
        return self._file

    @property
    def max_timestamp(self) -> Millis:
        """The largest timestamp in this segment; -1 when it has none."""
        if self._max_timestamp is None:
            last = self.time_index.last
            if last is None:
                self._max_timestamp = NO_TIMESTAMP
            else:
                self._max_timestamp, self.offset_of_max_timestamp = last
        return self._max_timestamp

    def start(self) -> None:
        """Make the file of a new segment."""
        assert self.file.size == 0, self.path(names.LOG)
        self.start_without_file()

    def start_without_file(self) -> None:
        """A new segment, whose file comes with its first batch."""
        self._max_timestamp = NO_TIMESTAMP

    # -- writing

    def append(self, batches: memoryview) -> int:
        """Write at the end; where it begins. The caller `note`s each batch in it."""
        position = self.size
        self.file.append((batches,))
        self.size = position + len(batches)
        return position

    def note(
        self,
        base_offset: Offset,
        last_offset: Offset,
        timestamp: Millis,
        position: int,
        size: int,
        index_interval: int,
    ) -> None:
        """Take a batch at `position` into the indexes."""
        if position == 0:
            self.first_timestamp = timestamp
        if self._max_timestamp is None or timestamp > self._max_timestamp:
            self._raise_max_timestamp(timestamp, last_offset)
        if self._since_index_entry > index_interval:
            self.offset_index.add(last_offset, position)
            self.time_index.add(self.max_timestamp, self.offset_of_max_timestamp)
            self._since_index_entry = 0
        self._since_index_entry += size
        recent = self._recent_last_offsets
        if not recent:
            self._recent_from = base_offset
        elif len(recent) == _RECENT:
            self._forget_older_half()
        recent.append(last_offset)
        self._recent_positions.append(position)

    def _raise_max_timestamp(self, timestamp: Millis, last_offset: Offset) -> None:
        if timestamp > self.max_timestamp:
            self._max_timestamp = timestamp
            self.offset_of_max_timestamp = last_offset

    def _forget_older_half(self) -> None:
        half = _RECENT // 2
        self._recent_from = self._recent_last_offsets[half - 1] + 1
        del self._recent_last_offsets[:half]
        del self._recent_positions[:half]

    def _forget_recent(self) -> None:
        del self._recent_last_offsets[:]
        del self._recent_positions[:]

    # -- reading

    def locate(self, offset: Offset) -> tuple[int, int] | None:
        """Position and size of the first batch that reaches `offset`; None past the end."""
        recent = self._recent_last_offsets
        if recent and offset >= self._recent_from:
            found = bisect_left(recent, offset)
            if found == len(recent):
                return None
            positions = self._recent_positions
            end = positions[found + 1] if found + 1 < len(recent) else self.size
            return positions[found], end - positions[found]
        for position, header in self.headers_from(offset):
            return position, header.size
        return None

    def headers(
        self, position: int = 0, read_ahead: int = scan.NEAR
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Batches from a batch boundary on."""
        return self._stretch(position).headers(read_ahead)

    def _stretch(self, position: int) -> Stretch:
        return Stretch(self.file, position, self.size, self.holes, self.base_offset)

    def stretch_from(self, offset: Offset) -> Stretch:
        """From somewhat before the batch that reaches `offset` to the end."""
        return self._stretch(self.offset_index.position_before(offset))

    def headers_from(self, offset: Offset) -> Iterator[tuple[int, BatchHeader]]:
        """Batches from the one that reaches `offset` on."""
        for position, header in self.headers(self.offset_index.position_before(offset)):
            if header.last_offset >= offset:
                yield position, header

    def hole_at(self, offset: Offset) -> Hole | None:
        """The first hole that ends behind `offset`."""
        return next((hole for hole in self.holes if hole.end_offset > offset), None)

    def read(self, position: int, length: int) -> memoryview:
        return memoryview(self.file.read(position, length))

    def next_offset(self) -> Offset:
        """One past the last offset, found by the offset index and the few batches behind it."""
        if not self.size:
            return self.base_offset
        last = self.offset_index.entries.last
        end = self.base_offset
        for _, header in self.headers(last[1] if last else 0):
            end = header.next_offset
        return end

    def first_batch_timestamp(self) -> Millis:
        """The time from which segment.ms counts; -1 when the first batch has none."""
        if self.first_timestamp is None and self.size:
            try:
                self.first_timestamp = next(self.headers())[1].max_timestamp
            except (scan.BrokenChainError, StopIteration):
                self.first_timestamp = NO_TIMESTAMP
        return NO_TIMESTAMP if self.first_timestamp is None else self.first_timestamp

    # -- changing shape

    def cut_point(self, offset: Offset) -> tuple[int, Offset]:
        """Where the first batch or hole that reaches `offset` begins: its position and offset."""
        try:
            dropped = next(self.headers_from(offset), None)
        except scan.BrokenChainError:
            return self._sound_end(offset)
        hole = self.hole_at(offset)
        position = self.size
        if dropped is not None:
            position, offset = dropped[0], min(offset, dropped[1].base_offset)
        if hole is not None and hole.first_offset <= offset:
            position, offset = hole.position, hole.first_offset
        return position, offset

    def _sound_end(self, offset: Offset) -> tuple[int, Offset]:
        """Where the sound batches below `offset` end, in a segment with a broken one."""
        position, end = 0, self.base_offset
        with suppress(scan.BrokenChainError):
            for at, header in self.headers():
                if header.last_offset >= offset:
                    break
                position, end = at + header.size, header.next_offset
        return position, min(end, offset)

    def truncate(self, position: int, offset: Offset) -> None:
        """Drop everything from a cut point on."""
        self.offset_index.cut(offset)
        self.time_index.cut(offset)
        self.transaction_index.cut(offset)
        self._forget_recent()
        self._since_index_entry = 0
        self.cut_at(position, tuple(h for h in self.holes if h.position < position))
        if position == 0:
            self.first_timestamp = None
        self._find_max_timestamp()

    def _find_max_timestamp(self) -> None:
        """The time index is sparse: look at the batches behind its last entry too."""
        self._max_timestamp = None
        largest, start = self.max_timestamp, 0
        if largest == NO_TIMESTAMP:
            self.offset_of_max_timestamp = self.base_offset
        else:
            start = self.offset_index.position_before(self.offset_of_max_timestamp)
        with suppress(scan.BrokenChainError):
            for _, header in self.headers(start):
                if header.max_timestamp > largest:
                    largest = header.max_timestamp
                    self.offset_of_max_timestamp = header.last_offset
        self._max_timestamp = largest

    def reset_indexes(self) -> None:
        """Empty all indexes and what was derived: the caller notes every batch anew."""
        self.offset_index.entries.clear()
        self.time_index.entries.clear()
        self.transaction_index.clear()
        self._forget_recent()
        self._since_index_entry = 0
        self._max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = self.base_offset
        self.first_timestamp = None
        self.holes = ()

    def cut_at(self, position: int, holes: tuple[Hole, ...]) -> None:
        """Drop the bytes from a position on, of which no index speaks."""
        self.size = position
        self.file.truncate(position)
        self.holes = holes

    def seal(self) -> None:
        """No more appends: the time index ends with the largest timestamp, all is on file."""
        if self.max_timestamp != NO_TIMESTAMP:
            self.time_index.add(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.entries.write_out()
        self.time_index.entries.write_out()
        self._forget_recent()

    def files(self) -> list[File]:
        """Everything to fsync once the segment is sealed."""
        transactions = self.transaction_index.file()
        return [
            self.file,
            self.offset_index.entries.write_out(),
            self.time_index.entries.write_out(),
            *([transactions] if transactions is not None else []),
        ]

    def indexes_fit(self) -> bool:
        """The indexes exist, and their last entries speak of batches that are there."""
        for index in (self.offset_index.entries, self.time_index.entries):
            if not self._disk.exists(index.path):
                return False
        if not self.transaction_index.is_sound():
            return False
        entry, newest = self.offset_index.entries.last, self.time_index.last
        if newest is not None and newest.offset < self.base_offset:
            return False
        if entry is None:
            return True
        try:
            found = next(self.headers(entry[1]), None)
        except scan.BrokenChainError:
            return False
        return found is not None and found[1].last_offset == self.base_offset + entry[0]

    def remove_files(self) -> None:
        for kind in names.SEGMENT_SUFFIXES:
            self._disk.remove(self.path(kind))

    def rename_files(self, suffix: str) -> list[str]:
        """Add a suffix to every file of the segment; their new paths."""
        renamed = []
        for kind in names.SEGMENT_SUFFIXES:
            path = self.path(kind)
            if self._disk.exists(path):
                self._disk.rename(path, path + suffix)
                renamed.append(path + suffix)
        return renamed
