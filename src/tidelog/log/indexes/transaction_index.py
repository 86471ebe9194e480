"""Which aborted transactions end in a segment (`.txnindex`), so that read_committed can skip them.

Entries are in the order of their markers. Most segments have none: the file appears with the
first.
"""

from collections.abc import Iterator
from struct import Struct

from tidelog.log.results import AbortedTxn
from tidelog.model.disk import Disk, File
from tidelog.model.ids import Offset

_ENTRY = Struct(">hqqqq")
_VERSION = 0


class TransactionIndex:
    __slots__ = ("_base", "_disk", "_entries", "path")

    def __init__(self, disk: Disk, path: str, base_offset: Offset) -> None:
        self.path = path
        self._disk = disk
        self._base = base_offset
        self._entries: list[AbortedTxn] | None = None

    def __iter__(self) -> Iterator[AbortedTxn]:
        return iter(self._load())

    def add(self, aborted: AbortedTxn) -> None:
        entries = self._load()
        assert not entries or entries[-1].last_offset < aborted.last_offset
        self._disk.open(self.path).append((_ENTRY.pack(_VERSION, *aborted),))
        entries.append(aborted)

    def cut(self, offset: Offset) -> None:
        """Drop transactions whose marker is at or past `offset`."""
        entries = self._load()
        kept = [entry for entry in entries if entry.last_offset < offset]
        if len(kept) < len(entries):
            self._disk.open(self.path).truncate(len(kept) * _ENTRY.size)
            self._entries = kept

    def clear(self) -> None:
        if self._disk.exists(self.path):
            self._load()
        if self._disk.exists(self.path):
            self._disk.open(self.path).truncate(0)
        self._entries = []

    def file(self) -> File | None:
        """The file, for an fsync; None when no transaction was aborted here."""
        return self._disk.open(self.path) if self._disk.exists(self.path) else None

    def is_sound(self) -> bool:
        """Whole entries of a known version, in order, none that ended before this segment."""
        if not self._disk.exists(self.path):
            return True
        if self._disk.size(self.path) % _ENTRY.size:
            return False
        ends = [entry.last_offset for entry in self._load()]
        return ends == sorted(set(ends)) and all(end >= self._base for end in ends)

    def _load(self) -> list[AbortedTxn]:
        if self._entries is None:
            self._entries = []
            if self._disk.exists(self.path):
                raw = self._disk.read_file(self.path)
                whole = len(raw) - len(raw) % _ENTRY.size
                for version, *fields in _ENTRY.iter_unpack(raw[:whole]):
                    if version != _VERSION:
                        break
                    self._entries.append(AbortedTxn(*fields))
        return self._entries
