"""Snapshots of the producer state (`<offset>.snapshot`, version 1).

Every roll and every clean shutdown writes a snapshot. It covers the batches below the offset in its
name. It is written without an fsync, so it may be torn after power loss. Its CRC reveals a torn
file. If a snapshot is torn, the state is rebuilt from an older snapshot and the batches after it.
"""

from collections.abc import Mapping
from struct import Struct
from struct import error as struct_error

from crc32c import crc32c

from tidelog.log import names
from tidelog.log.producers.producers import BatchSpan, ProducerEntry
from tidelog.model.disk import Disk
from tidelog.model.ids import NO_OFFSET, Offset, ProducerId

_VERSION = 1
_HEAD = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_MAX_SEQUENCE = (1 << 31) - 1


def encode(entries: Mapping[ProducerId, ProducerEntry]) -> bytes:
    body = bytearray(_COUNT.pack(len(entries)))
    for producer, entry in entries.items():
        last = entry.batches[-1] if entry.batches else None
        body += _ENTRY.pack(
            producer,
            entry.epoch,
            entry.last_sequence,
            last.last_offset if last else NO_OFFSET,
            last.last_offset - last.first_offset if last else 0,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.transaction_first_offset,
        )
    return _HEAD.pack(_VERSION, crc32c(body)) + bytes(body)


def decode(content: bytes) -> dict[ProducerId, ProducerEntry] | None:
    """The producers in a snapshot; None when it is torn, empty, corrupt or of another version."""
    try:
        version, crc = _HEAD.unpack_from(content, 0)
        (count,) = _COUNT.unpack_from(content, _HEAD.size)
    except struct_error:
        return None
    body = content[_HEAD.size :]
    if version != _VERSION or crc != crc32c(body) or len(body) != 4 + count * _ENTRY.size:
        return None
    return dict(_entry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :]))


def _entry(
    producer: ProducerId,
    epoch: int,
    last_sequence: int,
    last_offset: Offset,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    transaction_first_offset: Offset,
) -> tuple[ProducerId, ProducerEntry]:
    entry = ProducerEntry(epoch)
    entry.last_timestamp = timestamp
    entry.coordinator_epoch = coordinator_epoch
    entry.transaction_first_offset = max(transaction_first_offset, NO_OFFSET)
    if last_offset >= 0:
        first_sequence = (
            (last_sequence - offset_delta) & _MAX_SEQUENCE if last_sequence >= 0 else -1
        )
        entry.batches.append(
            BatchSpan(
                first_sequence, last_sequence, last_offset - offset_delta, last_offset, timestamp
            )
        )
    return producer, entry


class SnapshotFiles:
    """The snapshots of one partition."""

    __slots__ = ("_directory", "_disk", "_offsets")

    def __init__(self, disk: Disk, directory: str, file_names: list[str]) -> None:
        self._disk = disk
        self._directory = directory
        found = (names.offset_of(name, names.SNAPSHOT) for name in file_names)
        self._offsets = sorted(offset for offset in found if offset is not None)

    @property
    def offsets(self) -> tuple[Offset, ...]:
        return tuple(self._offsets)

    def newest(
        self, start: Offset, end: Offset
    ) -> tuple[Offset, dict[ProducerId, ProducerEntry]] | None:
        """The newest valid snapshot with start < offset <= end; removes invalid newer snapshots."""
        for offset in reversed(self._offsets.copy()):
            if start < offset <= end:
                entries = self._read(offset)
                if entries is not None:
                    return offset, entries
                self.remove(offset)
        return None

    def write(self, offset: Offset, entries: Mapping[ProducerId, ProducerEntry]) -> None:
        self._disk.write_file(self._path(offset), encode(entries), durable=False)
        if offset not in self._offsets:
            self._offsets.append(offset)
            self._offsets.sort()

    def keep_only(self, start: Offset, end: Offset) -> None:
        """Remove snapshots outside [start, end]."""
        for offset in self._offsets.copy():
            if not start <= offset <= end:
                self.remove(offset)

    def drop(self, offset: Offset) -> None:
        """Remove the snapshot at this offset, if there is one."""
        if offset in self._offsets:
            self.remove(offset)

    def _read(self, offset: Offset) -> dict[ProducerId, ProducerEntry] | None:
        return decode(self._disk.read_file(self._path(offset)))

    def remove(self, offset: Offset) -> None:
        self._disk.remove(self._path(offset))
        self._offsets.remove(offset)

    def _path(self, offset: Offset) -> str:
        return f"{self._directory}/{names.offset_name(offset, names.SNAPSHOT)}"
