"""The aborted transactions that end in a segment (`.txnindex`); read_committed skips their records.

Entries are in the order of their markers. The file is created with the first entry, so most
segments have no `.txnindex` file. The file has no checksum. Loading therefore ignores invalid
entries, and the verification of the log compares the valid entries with the batches.
"""

from collections.abc import Iterator
from struct import Struct

from tidelog.log.results import AbortedTxn
from tidelog.model.disk import Disk, File
from tidelog.model.ids import Offset

_ENTRY = Struct(">hqqqq")
_VERSION = 0


class TransactionIndex:
    __slots__ = ("_at_rest", "_base", "_disk", "_entries", "_is_whole", "path")

    def __init__(self, disk: Disk, path: str, base_offset: Offset) -> None:
        self.path = path
        self._disk = disk
        self._base = base_offset
        self._entries: list[AbortedTxn] | None = None
        self._at_rest = 0
        """The number of entries that earlier runs wrote, which are at the start of the file."""
        self._is_whole = True
        """Whether the whole file consists of valid entries."""

    def __iter__(self) -> Iterator[AbortedTxn]:
        return iter(self._load())

    def add(self, aborted: AbortedTxn) -> None:
        entries = self._load()
        if entries and entries[-1].last_offset >= aborted.last_offset:
            # The last entry is wrong, because its marker cannot come after a marker appended now.
            self.cut(aborted.last_offset)
            self._is_whole = False
            entries = self._load()
        if not self._is_whole:
            # Loading stops at the first invalid entry, so remove this entry and all bytes after it.
            self._disk.open(self.path).truncate(len(entries) * _ENTRY.size)
        self._disk.open(self.path).append((_ENTRY.pack(_VERSION, *aborted),))
        entries.append(aborted)

    def cut(self, offset: Offset) -> None:
        """Drop transactions whose marker is at or past `offset`."""
        entries = self._load()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) < len(entries):
            self._disk.open(self.path).truncate(len(kept) * _ENTRY.size)
            self._entries = kept
            self._at_rest = min(self._at_rest, len(kept))

    def clear(self) -> None:
        if self._disk.exists(self.path):
            self._disk.open(self.path).truncate(0)
        self._entries, self._at_rest, self._is_whole = [], 0, True

    def file(self) -> File | None:
        """The file to fsync; None if no transaction was aborted in this segment."""
        return self._disk.open(self.path) if self._disk.exists(self.path) else None

    def correct(self, at_rest: list[AbortedTxn]) -> bool:
        """Compare the entries of earlier runs with `at_rest`, which were read from the batches.

        If the two differ, rewrite the file with `at_rest` and the entries of this run. Returns
        whether the two differed.
        """
        entries = self._load()
        if self._is_whole and entries[: self._at_rest] == at_rest:
            return False
        self._entries = at_rest + entries[self._at_rest :]
        self._at_rest, self._is_whole = len(at_rest), True
        file = self._disk.open(self.path)
        file.truncate(0)
        if self._entries:
            file.append((b"".join(_ENTRY.pack(_VERSION, *entry) for entry in self._entries),))
        return True

    def _load(self) -> list[AbortedTxn]:
        if self._entries is None:
            raw = b""
            if self._disk.exists(self.path):
                file = self._disk.open(self.path)
                raw = file.read(0, file.size)
            self._entries = list(_sound_entries(raw, self._base))
            self._is_whole = len(self._entries) * _ENTRY.size == len(raw)
            self._at_rest = len(self._entries)
        return self._entries


def encode_transaction(aborted: AbortedTxn) -> bytes:
    return _ENTRY.pack(_VERSION, *aborted)


def _sound_entries(raw: bytes, base: Offset) -> Iterator[AbortedTxn]:
    """The entries before the first invalid one.

    A valid entry has a known version, follows the previous entry and ends in the segment.
    """
    end = base - 1
    for version, *fields in _ENTRY.iter_unpack(raw[: len(raw) - len(raw) % _ENTRY.size]):
        entry = AbortedTxn(*fields)
        if version != _VERSION or not 0 <= entry.first_offset < entry.last_offset > end:
            return
        yield entry
        end = entry.last_offset
