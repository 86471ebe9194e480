"""Writes the files of a new segment (`.cleaned`) in a job, and syncs them before the job ends.

The new segment replaces others only after the sync. Without the sync, power loss could leave a
broken segment, while the replaced segments are gone (F79).
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from tidelog.log import names
from tidelog.log.indexes.transaction_index import encode_transaction
from tidelog.log.results import AbortedTxn
from tidelog.model.disk import Buffer, Disk, File
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset
from tidelog.protocol.records.batch import BatchHeader, read_header

_CHUNK = 1 << 20
_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")


class CleanedFiles(NamedTuple):
    """The open files of a new segment, by what they will hold."""

    log: File
    offset_index: File
    time_index: File
    transaction_index: File


def open_cleaned(disk: Disk, directory: str, base_offset: Offset) -> CleanedFiles:
    """Create empty files. Only the node's thread may open files."""
    files = []
    for suffix in names.SEGMENT_SUFFIXES:
        path = cleaned_path(directory, base_offset, suffix)
        disk.remove(path)
        files.append(disk.open(path))
    return CleanedFiles(*files)


def cleaned_path(directory: str, base_offset: Offset, suffix: str) -> str:
    return f"{directory}/{names.offset_name(base_offset, suffix)}{names.CLEANED}"


def sync_files(files: Iterable[File]) -> None:
    for file in files:
        file.sync()


class CleanedSegment:
    """The content of a new segment, in the order of the log."""

    __slots__ = (
        "_chunks",
        "_files",
        "_indexed",
        "_interval",
        "_newest",
        "_newest_at",
        "_offsets",
        "_pending",
        "_since_entry",
        "_times",
        "base_offset",
        "size",
    )

    def __init__(self, files: CleanedFiles, base_offset: Offset, index_interval: int) -> None:
        self._files = files
        self.base_offset = base_offset
        self._interval = index_interval
        self._chunks: list[Buffer] = []
        self._pending = 0
        self._offsets = bytearray()
        self._times = bytearray()
        self._newest: Millis = NO_TIMESTAMP
        self._newest_at = base_offset
        self._indexed: Millis = NO_TIMESTAMP
        self._since_entry = 0
        self.size = 0

    def add(self, batch: Buffer) -> None:
        """Append a batch and add it to the indexes, by the rules of every other append."""
        header: BatchHeader = read_header(batch)
        if header.max_timestamp > self._newest:
            self._newest, self._newest_at = header.max_timestamp, header.last_offset
        if self._since_entry > self._interval:
            self._offsets += _OFFSET_ENTRY.pack(header.last_offset - self.base_offset, self.size)
            self._add_time()
            self._since_entry = 0
        self._since_entry += len(batch)
        self.size += len(batch)
        self._chunks.append(batch)
        self._pending += len(batch)
        if self._pending >= _CHUNK:
            self._write_out()

    def finish(self, aborted: Iterable[AbortedTxn]) -> None:
        """Write the rest and the indexes, and sync all files."""
        self._write_out()
        self._add_time()
        files = self._files
        files.offset_index.append((self._offsets,))
        files.time_index.append((self._times,))
        files.transaction_index.append((b"".join(map(encode_transaction, aborted)),))
        sync_files(files)

    def _add_time(self) -> None:
        if self._newest > self._indexed:
            self._times += _TIME_ENTRY.pack(self._newest, self._newest_at - self.base_offset)
            self._indexed = self._newest

    def _write_out(self) -> None:
        if self._chunks:
            self._files.log.append((b"".join(self._chunks),))
            self._chunks, self._pending = [], 0
