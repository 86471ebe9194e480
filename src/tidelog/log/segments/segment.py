"""One segment: a file of batches and its indexes.

Invariant: the first `size` bytes are whole batches in offset order. The positions of the newest
batches are in memory, so locating these batches needs no file access. Wrong indexes are rebuilt.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress

from tidelog.log import names
from tidelog.log.indexes.index import OffsetEntry, OffsetIndex, TimeIndex
from tidelog.log.indexes.index_repair import IndexRebuild
from tidelog.log.indexes.transaction_index import TransactionIndex
from tidelog.log.recovery.set_aside import set_aside
from tidelog.log.segments import scan
from tidelog.log.segments.scan import Hole, Stretch
from tidelog.model.disk import Disk, File
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset
from tidelog.protocol.records.batch import HEADER_SIZE, BatchHeader

_RECENT = 128


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
        "chained",
        "created",
        "directory",
        "first_timestamp",
        "holes",
        "index_interval",
        "is_time_confirmed",
        "offset_index",
        "offset_of_max_timestamp",
        "rebuild",
        "size",
        "summed",
        "time_index",
        "transaction_index",
        "unread_to",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: Offset,
        now: Millis,
        index_interval: int = 4096,
    ) -> None:
        self._disk = disk
        self._file: File | None = None
        self.directory = directory
        self.base_offset = base_offset
        self.created = now
        self.size = 0
        self.first_timestamp: Millis | None = None  # None until it is read from the first batch
        self.holes: tuple[Hole, ...] = ()
        self.index_interval = index_interval
        """The topic's index.interval.bytes."""
        self.rebuild: IndexRebuild | None = None
        """The rebuild of the indexes, or their comparison with the batches, while it runs."""
        self.is_time_confirmed = False
        """Whether the batches have confirmed the largest timestamp of the time index."""
        self.unread_to = 0
        """Bytes before this position are from an earlier run and may have changed on disk."""
        self.chained = (0, 0)
        """The start and end of the bytes whose batches are known to be contiguous."""
        self.summed = (0, 0)
        """The same for bytes whose batches are also known to have valid checksums."""
        self.offset_index = OffsetIndex(disk, self.path(names.OFFSET_INDEX), base_offset)
        self.time_index = TimeIndex(disk, self.path(names.TIME_INDEX), base_offset)
        self.transaction_index = TransactionIndex(
            disk, self.path(names.TRANSACTION_INDEX), base_offset
        )
        self._max_timestamp: Millis | None = None  # None until it is read from the time index
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
        """Create the file of a new segment."""
        assert self.file.size == 0, self.path(names.LOG)
        self.start_without_file()

    def start_without_file(self) -> None:
        """Start a new segment whose file is created with its first batch."""
        self._max_timestamp = NO_TIMESTAMP
        self.is_time_confirmed = True

    # -- appending

    def append(self, batches: memoryview) -> int:
        """Append the batches and return their position; the caller then calls `note` for each."""
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
        """Add the batch at `position` to the indexes."""
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

    # -- finding batches

    def locate(self, offset: Offset) -> tuple[int, int] | None:
        """The position and size of the first batch that ends at or past `offset`, if any."""
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
        """Yield (position, header) of each batch from a batch boundary on."""
        return self._stretch(position).headers(read_ahead)

    def _stretch(self, position: int) -> Stretch:
        return Stretch(self.file, position, self.size, self.holes, self.base_offset)

    def stretch_from(self, offset: Offset) -> Stretch:
        """The range from a batch boundary at or before `offset` to the end."""
        return self._stretch(self.position_before(offset))

    def headers_from(self, offset: Offset) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (position, header) of each batch, starting with the one that holds `offset`."""
        for position, header in self.headers(self.position_before(offset)):
            if header.last_offset >= offset:
                yield position, header

    def position_before(self, offset: Offset) -> int:
        """A batch boundary at or before the batch that holds `offset`, verified by its header."""
        entry = self.offset_index.entry_before(offset)
        if entry is not None and self.is_sound(entry):
            return entry.position
        if entry is not None:
            self.distrust_indexes("an entry of its offset index does not point to its batch")
        elif self.rebuild is None or not self.rebuild.reason:
            return 0
        for earlier in self.offset_index.steps_back(offset):
            if earlier.last_offset <= offset and self.is_sound(earlier):
                return earlier.position
        assert self.rebuild is not None
        return self.rebuild.position_before(offset)

    def last_indexed_position(self) -> int:
        """The position of the last index entry that points to its batch."""
        last = self.offset_index.last
        if last is None:
            return 0
        return last.position if self.is_sound(last) else self.position_before(last.last_offset)

    def is_sound(self, entry: OffsetEntry) -> bool:
        """Whether a batch at the entry's position ends with the entry's offset."""
        header = self.header_at(entry.position)
        return header is not None and header.last_offset == entry.last_offset

    def header_at(self, position: int) -> BatchHeader | None:
        """The header at an expected batch boundary; None if there is no valid header."""
        if not 0 <= position <= self.size - HEADER_SIZE:
            return None
        if any(hole.position <= position < hole.end for hole in self.holes):
            return None
        try:
            found = scan.headers(self.file, position, self.size, HEADER_SIZE, self.base_offset)
            return next(found)[1]
        except (scan.BrokenChainError, StopIteration):
            return None

    def distrust_indexes(self, reason: str) -> None:
        """Start to rebuild the indexes. Until the rebuild ends, look-ups scan the batches."""
        if self.rebuild is None or not self.rebuild.reason:
            self.rebuild = IndexRebuild(self, self.index_interval, reason)

    def confirm_indexes(self) -> None:
        """Start to compare the indexes with the batches."""
        if self.rebuild is None:
            self.rebuild = IndexRebuild(self, self.index_interval, "")

    def end_rebuild(self) -> str | None:
        """Replace wrong indexes with the rebuilt ones; returns why they were wrong, or None."""
        self.adopt_times()
        built, self.rebuild = self.rebuild, None
        assert built is not None
        if not built.reason:
            return None
        self.offset_index.entries.replace(built.offset_entries())
        self.time_index.entries.replace(built.time_entries())
        self._since_index_entry = built.since_entry
        return built.reason

    def adopt_times(self) -> None:
        """Use the largest timestamp that the completed scan found, instead of the time index."""
        built = self.rebuild
        assert built is not None
        if not built.reason and self.max_timestamp != built.max_timestamp:
            built.reason = f"its time index ends with {self.max_timestamp}, which is wrong"
        self._max_timestamp = built.max_timestamp
        self.offset_of_max_timestamp = built.offset_of_max_timestamp
        self.is_time_confirmed = built.broken is None

    def add_hole(self, hole: Hole) -> None:
        self.holes = tuple(sorted((*self.holes, hole)))
        self.chained = self.summed = (0, 0)

    def hole_at(self, offset: Offset) -> Hole | None:
        """The first hole that ends past `offset`."""
        return next((hole for hole in self.holes if hole.end_offset > offset), None)

    def read(self, position: int, length: int) -> memoryview:
        return memoryview(self.file.read(position, length))

    def first_batch_timestamp(self) -> Millis:
        """The first batch's timestamp, from which segment.ms counts; -1 if there is none."""
        if self.first_timestamp is None and self.size:
            try:
                self.first_timestamp = next(self.headers())[1].max_timestamp
            except (scan.BrokenChainError, StopIteration):
                self.first_timestamp = NO_TIMESTAMP
        return NO_TIMESTAMP if self.first_timestamp is None else self.first_timestamp

    # -- cutting, sealing and renaming

    def truncate(self, position: int, offset: Offset) -> None:
        """Drop the bytes from `position` on, and the index entries from `offset` on."""
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
        """Scan the batches from the last time index entry on, because the index is sparse."""
        self._max_timestamp = None
        largest, start = self.max_timestamp, 0
        if largest == NO_TIMESTAMP:
            self.offset_of_max_timestamp = self.base_offset
        else:
            start = self.position_before(self.offset_of_max_timestamp)
        with suppress(scan.BrokenChainError):
            for _, header in self.headers(start):
                if header.max_timestamp > largest:
                    largest = header.max_timestamp
                    self.offset_of_max_timestamp = header.last_offset
        self._max_timestamp = largest

    def reset_indexes(self) -> None:
        """Clear all indexes and derived state; the caller then calls `note` for every batch."""
        self.offset_index.entries.clear()
        self.time_index.entries.clear()
        self.transaction_index.clear()
        self._forget_recent()
        self._since_index_entry = 0
        self._max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = self.base_offset
        self.first_timestamp = None
        self.holes = ()
        self.rebuild = None
        self.is_time_confirmed = True
        self.unread_to = 0

    def cut_at(self, position: int, holes: tuple[Hole, ...]) -> None:
        """Drop the bytes from `position` on; the caller has removed their index entries."""
        self.size = position
        self.file.truncate(position)
        self.holes = holes
        self.unread_to = min(self.unread_to, position)
        self.chained = self.summed = (0, 0)
        if self.rebuild is not None:
            self.rebuild = IndexRebuild(self, self.index_interval, self.rebuild.reason)

    def seal(self) -> None:
        """Write the indexes, with the largest timestamp in the last entry of the time index."""
        if self.max_timestamp != NO_TIMESTAMP:
            self.time_index.add(self.max_timestamp, self.offset_of_max_timestamp)
        self.offset_index.entries.write_out()
        self.time_index.entries.write_out()
        self._forget_recent()

    def files(self) -> list[File]:
        """The files to fsync once the segment is sealed."""
        transactions = self.transaction_index.file()
        return [
            self.file,
            self.offset_index.entries.write_out(),
            self.time_index.entries.write_out(),
            *([transactions] if transactions is not None else []),
        ]

    def remove_files(self) -> None:
        for kind in names.SEGMENT_SUFFIXES:
            self._disk.remove(self.path(kind))

    def set_aside(self) -> str:
        """Rename the segment's files so that loading ignores them; returns the log's new path."""
        kept = ""
        for kind in reversed(names.SEGMENT_SUFFIXES):
            path = self.path(kind)
            if self._disk.exists(path):
                kept = set_aside(self._disk, path)
        self._file = None
        return kept

    def rest(self) -> None:
        """Release the files until they are used again."""
        self._file = None
        self.offset_index.entries.forget()
        self.time_index.entries.forget()

    def rename_files(self, suffix: str) -> list[str]:
        """Add a suffix to the names of all files of the segment; returns the new paths."""
        renamed = []
        for kind in names.SEGMENT_SUFFIXES:
            path = self.path(kind)
            if self._disk.exists(path):
                self._disk.rename(path, path + suffix)
                renamed.append(path + suffix)
        return renamed
