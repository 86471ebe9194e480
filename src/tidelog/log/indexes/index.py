"""Sparse indexes of a segment: offset to position, and timestamp to offset.

An entry is a key and a value. Keys increase strictly from entry to entry, and values never
decrease. New entries stay in memory until they fill a page, which is then written. Written entries
are searched on disk, so the memory of an index does not depend on the size of its segment. Kafka
leaves zeros after the last entry of a preallocated index. These zeros are cut off when the index is
first used, and are never read as entries.

An index is derived from its segment and has no checksum. Callers therefore compare each entry with
its batch before they use it (F55, F56). If an entry is wrong, `steps_back` finds earlier entries.
"""

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from tidelog.model.disk import Buffer, Disk, File
from tidelog.model.ids import Millis, Offset

_PENDING_BYTES = 4096
_SCAN_ENTRIES = 512
"""A binary search stops when this many entries are left, and reads them all at once."""

_KEY, _VALUE = 0, 1


class SparseIndex:
    """A file of sorted entries of fixed size; the newest entries are still in memory."""

    __slots__ = ("_count", "_disk", "_entry", "_file", "_last", "_pending", "path")

    def __init__(self, disk: Disk, path: str, entry: Struct) -> None:
        self.path = path
        self._disk = disk
        self._entry = entry
        self._file: File | None = None
        self._pending = bytearray()
        self._count = -1  # the number of entries in the file; -1 until it is known
        self._last = (-1, -1)

    @property
    def last(self) -> tuple[int, int] | None:
        """The newest entry."""
        if self._count < 0:
            self._load()
        return self._last if self._count or self._pending else None

    @property
    def size(self) -> int:
        """The size of all entries in bytes, including entries that are still in memory."""
        if self._count < 0:
            self._load()
        return self._count * self._entry.size + len(self._pending)

    @property
    def entry_size(self) -> int:
        return self._entry.size

    def add(self, key: int, value: int) -> None:
        """Append an entry if its key is larger than the last key."""
        if self._count < 0:
            self._load()
        if key <= self._last[_KEY]:
            return
        self._last = (key, value)
        self._pending += self._entry.pack(key, value)
        if len(self._pending) >= _PENDING_BYTES:
            self.write_out()

    def floor(self, key: int) -> tuple[int, int] | None:
        """The entry with the largest key that is at most `key`."""
        return self._floor(_KEY, key)

    def floor_of_values(self, value: int) -> tuple[int, int] | None:
        """The last entry whose value is at most `value`."""
        return self._floor(_VALUE, value)

    def steps_back(self, key: int) -> Iterator[tuple[int, int]]:
        """Yield some of the entries before `floor(key)`, the latest first.

        The distance between two of these entries doubles each time.
        """
        self.write_out()
        number, step = self._count_below(_KEY, key + 1) - 2, 1
        while number >= 0:
            yield self._read(number)
            number, step = number - step, step * 2

    def some_before(self, value: int, steps: int) -> tuple[int, int] | None:
        """Find the first entry whose value is at least `value`, and go back `steps` entries."""
        self.write_out()
        number = self._count_below(_VALUE, value) - steps
        return self._read(number) if number >= 0 else None

    def cut(self, key: int) -> None:
        """Drop every entry whose key is at or above `key`."""
        self._cut(_KEY, key)

    def cut_values(self, value: int) -> None:
        """Drop every entry whose value is at or above `value`."""
        self._cut(_VALUE, value)

    def clear(self) -> None:
        """Drop all entries, so that the index can be rebuilt from its segment."""
        if self._count < 0:
            self._load()
        if self._disk.exists(self.path):
            self._open().truncate(0)
        self._pending.clear()
        self._count = 0
        self._last = (-1, -1)

    def replace(self, entries: bytes) -> None:
        """Replace all entries."""
        self.clear()
        file = self._open()
        if entries:
            file.append((entries,))
            self._count = len(entries) // self._entry.size
            self._last = self._read(self._count - 1)

    def write_out(self) -> File:
        """Write pending entries to the file, which is created if necessary."""
        if self._count < 0:
            self._load()
        file = self._open()
        if self._pending:
            file.append((bytes(self._pending),))
            self._count += len(self._pending) // self._entry.size
            self._pending.clear()
        return file

    def entries(self) -> list[tuple[int, int]]:
        """All entries."""
        file = self.write_out()
        return list(self._entry.iter_unpack(file.read(0, self._count * self._entry.size)))

    def forget(self) -> None:
        """If no entries are pending, release the file until it is used again."""
        if not self._pending:
            self._file, self._count, self._last = None, -1, (-1, -1)

    def _load(self) -> None:
        if not self._disk.exists(self.path):
            self._count = 0
            return
        file = self._open()
        count = self._used(file.size // self._entry.size)
        last = self._read(count - 1) if count else (-1, -1)
        if count * self._entry.size != file.size:
            file.truncate(count * self._entry.size)
        # A read may raise NotCached, so the index counts as loaded only after all reads.
        self._count, self._last = count, last

    def _used(self, whole: int) -> int:
        """The number of entries before the zeros of a preallocated file."""
        if not whole or any(self._read(whole - 1)):
            return whole
        low, high = 0, whole - 1
        while low < high:
            middle = (low + high) // 2
            if any(self._read(middle)):
                low = middle + 1
            else:
                high = middle
        return low

    def _cut(self, field: int, bound: int) -> None:
        self.write_out()
        kept = self._count_below(field, bound)
        if kept < self._count:
            self._open().truncate(kept * self._entry.size)
            self._count = kept
            self._last = self._read(kept - 1) if kept else (-1, -1)

    def _count_below(self, field: int, bound: int) -> int:
        """The number of entries in the file whose key or value is below the bound."""
        low, high = 0, self._count
        while low < high:
            middle = (low + high) // 2
            if self._read(middle)[field] < bound:
                low = middle + 1
            else:
                high = middle
        return low

    def _floor(self, field: int, bound: int) -> tuple[int, int] | None:
        last = self.last
        if last is None or last[field] <= bound:
            return last
        if self._pending and self._unpack(self._pending, 0)[field] <= bound:
            return self._floor_in(self._pending, field, bound)
        size = self._entry.size
        low, high = 0, self._count
        while high - low > _SCAN_ENTRIES:
            middle = (low + high) // 2
            if self._read(middle)[field] <= bound:
                low = middle
            else:
                high = middle
        return self._floor_in(self._open().read(low * size, (high - low) * size), field, bound)

    def _floor_in(self, entries: Buffer, field: int, bound: int) -> tuple[int, int] | None:
        low, high = 0, len(entries) // self._entry.size
        while low < high:
            middle = (low + high) // 2
            if self._unpack(entries, middle)[field] <= bound:
                low = middle + 1
            else:
                high = middle
        return self._unpack(entries, low - 1) if low else None

    def _unpack(self, entries: Buffer, number: int) -> tuple[int, int]:
        key, value = self._entry.unpack_from(entries, number * self._entry.size)
        return key, value

    def _read(self, number: int) -> tuple[int, int]:
        return self._unpack(self._open().read(number * self._entry.size, self._entry.size), 0)

    def _open(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path)
        return self._file


class OffsetEntry(NamedTuple):
    last_offset: Offset
    position: int


class OffsetIndex:
    """Maps the last offsets of some batches to the positions of these batches in the segment."""

    __slots__ = ("_base", "entries")

    ENTRY = Struct(">ii")

    def __init__(self, disk: Disk, path: str, base_offset: Offset) -> None:
        self._base = base_offset
        self.entries = SparseIndex(disk, path, self.ENTRY)

    def add(self, last_offset: Offset, position: int) -> None:
        self.entries.add(last_offset - self._base, position)

    @property
    def last(self) -> OffsetEntry | None:
        entry = self.entries.last
        return None if entry is None else OffsetEntry(self._base + entry[0], entry[1])

    def entry_before(self, offset: Offset) -> OffsetEntry | None:
        """The last entry whose offset is at most `offset`."""
        entry = self.entries.floor(offset - self._base)
        return None if entry is None else OffsetEntry(self._base + entry[0], entry[1])

    def steps_back(self, offset: Offset) -> Iterator[OffsetEntry]:
        """Yield earlier entries, at growing distances from `offset`."""
        for key, position in self.entries.steps_back(offset - self._base):
            yield OffsetEntry(self._base + key, position)

    def cut(self, offset: Offset) -> None:
        """Drop entries of batches that end at or past `offset`."""
        self.entries.cut(offset - self._base)


class TimeEntry(NamedTuple):
    timestamp: Millis
    offset: Offset


class TimeIndex:
    """Maps timestamps to offsets. An entry's timestamp is the largest in the batches up to its
    offset."""

    __slots__ = ("_base", "entries")

    ENTRY = Struct(">qi")

    def __init__(self, disk: Disk, path: str, base_offset: Offset) -> None:
        self._base = base_offset
        self.entries = SparseIndex(disk, path, self.ENTRY)

    def add(self, timestamp: Millis, offset: Offset) -> None:
        self.entries.add(timestamp, offset - self._base)

    @property
    def last(self) -> TimeEntry | None:
        entry = self.entries.last
        return None if entry is None else TimeEntry(entry[0], self._base + entry[1])

    def entry_before(self, timestamp: Millis) -> TimeEntry | None:
        """The last entry older than `timestamp`. All records up to its offset are older too."""
        entry = self.entries.floor(timestamp - 1)
        return None if entry is None else TimeEntry(entry[0], self._base + entry[1])

    def entry_below(self, offset: Offset) -> TimeEntry | None:
        """The last entry for an offset below `offset`."""
        entry = self.entries.floor_of_values(offset - 1 - self._base)
        return None if entry is None else TimeEntry(entry[0], self._base + entry[1])

    def cut(self, offset: Offset) -> None:
        """Drop the entries for `offset` and for later offsets."""
        self.entries.cut_values(offset - self._base)
