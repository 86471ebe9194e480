"""Ways to damage the files of a log, and the rules that every log must obey afterwards."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from tests.unit.log.support import DIRECTORY, NOW, SMALL, append, batch, flush, open_log

from tidelog.log.partition import PartitionLog
from tidelog.log.results import ReadResult
from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.batch import is_valid_crc, iterate
from tidelog.sim.machines.disk import SimDisk

CONFIG = replace(SMALL, segment_bytes=1_500, retention_ms=-1)
EPOCH_BYTES = slice(12, 16)
"""The position of the leader epoch in a batch. No checksum covers it, and no consumer reads it."""


@dataclass
class Written:
    """A log as it was before the damage."""

    disk: SimDisk
    batches: dict[int, bytes]
    end: int
    start: int = 0


def written(count: int = 40, *, clean: bool = True, epochs: int = 3) -> Written:
    """A synced log in several segments, with batches of several sizes, epochs and timestamps."""
    disk = SimDisk()
    log = open_log(disk, CONFIG)
    batches = {}
    for number in range(count):
        records = batch(1 + number % 3, size=20 + 37 * number % 150, timestamp=NOW + number * 10)
        found = append(log, records, epoch=1 + number * epochs // count)
        batches[found.base_offset] = bytes(records)
    end = log.log_end_offset
    if clean:
        log.close()
    else:
        flush(log)
    disk.sync_all()
    disk.kill()
    return Written(disk, batches, end)


class Damage(NamedTuple):
    kind: str
    file: int
    other: int
    where: int


def _flip(disk: SimDisk, path: str, other: str, where: int) -> None:
    size = disk.size(path)
    if size:
        disk.flip_bit(path, where % (size * 8))


def _truncate(disk: SimDisk, path: str, other: str, where: int) -> None:
    disk.open(path).truncate(where % (disk.size(path) + 1))


def _empty(disk: SimDisk, path: str, other: str, where: int) -> None:
    disk.open(path).truncate(0)


def _delete(disk: SimDisk, path: str, other: str, where: int) -> None:
    disk.remove(path)


def _garbage_behind(disk: SimDisk, path: str, other: str, where: int) -> None:
    disk.open(path).append((bytes((where * n * 31) % 256 for n in range(1 + where % 300)),))


def _garbage(disk: SimDisk, path: str, other: str, where: int) -> None:
    size = disk.size(path)
    disk.write_file(path, bytes((where + n * 7) % 256 for n in range(size)))


def _duplicate(disk: SimDisk, path: str, other: str, where: int) -> None:
    disk.write_file(other, disk.read_file(path))


def _swap(disk: SimDisk, path: str, other: str, where: int) -> None:
    one, two = disk.read_file(path), disk.read_file(other)
    disk.write_file(path, two)
    disk.write_file(other, one)


def _directory(disk: SimDisk, path: str, other: str, where: int) -> None:
    disk.remove(path)
    disk.make_directory(path)


def _copy_elsewhere(disk: SimDisk, path: str, other: str, where: int) -> None:
    """Copy a file to a file name with another base offset."""
    _, _, suffix = path.removeprefix(DIRECTORY).rpartition(".")
    suffix = suffix.removeprefix("/")
    disk.write_file(f"{DIRECTORY}/{where % 100:020d}.{suffix}", disk.read_file(path))


def _later_segment(disk: SimDisk, path: str, other: str, where: int) -> None:
    disk.write_file(f"{DIRECTORY}/{99_999_999:020d}.log", b"")


KINDS: dict[str, Callable[[SimDisk, str, str, int], None]] = {
    "flip": _flip,
    "truncate": _truncate,
    "empty": _empty,
    "delete": _delete,
    "garbage behind": _garbage_behind,
    "garbage": _garbage,
    "duplicate": _duplicate,
    "swap": _swap,
    "directory": _directory,
    "copy elsewhere": _copy_elsewhere,
    "later segment": _later_segment,
}


def strike(log: Written, damage: Damage) -> str:
    """Damage one file of the log, if the log has a file; return a description."""
    files = [name for name in log.disk.list(DIRECTORY) if _is_file(log.disk, name)]
    if not files:
        return "nothing"
    path = f"{DIRECTORY}/{files[damage.file % len(files)]}"
    other = f"{DIRECTORY}/{files[damage.other % len(files)]}"
    KINDS[damage.kind](log.disk, path, other, damage.where)
    log.disk.sync_all()
    log.disk.kill()
    return f"{damage.kind} {path} {other}"


def _is_file(disk: SimDisk, name: str) -> bool:
    try:
        disk.size(f"{DIRECTORY}/{name}")
    except IsADirectoryError:
        return False
    return True


def is_reported(log: PartitionLog) -> bool:
    return bool(log.recovery.notes) or not log.recovery.is_proven


class Consumed(NamedTuple):
    batches: set[int]
    """Base offsets of the batches that the consumer got."""
    errors: set[int]
    """Offsets at which a read gave an error or a batch with a wrong checksum."""


def consume(log: PartitionLog, wrote: Written) -> Consumed:
    """Read the log from start to end; no batch may be changed or skipped silently."""
    consumed = Consumed(set(), set())
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.read(offset, 2_000, log.log_end_offset, at_least_one=True)
        if isinstance(result, ErrorCode):
            assert result is ErrorCode.corrupt_message
            consumed.errors.add(offset)
            offset += 1
        else:
            offset = _take(result, offset, wrote, consumed)
    return consumed


def _take(result: ReadResult, offset: int, wrote: Written, consumed: Consumed) -> int:
    """Check the batches of a read, and return the next offset."""
    assert result.slice is not None, f"nothing at {offset}"
    file, position, length = result.slice
    chunk = memoryview(file.read(position, length))
    following = offset
    for at, header in iterate(chunk):
        raw = bytearray(chunk[at : at + header.size])
        assert header.base_offset <= following, f"passed over {following} to {header.base_offset}"
        if not is_valid_crc(chunk, at, header):
            consumed.errors.add(following)
            return following + 1
        was = bytearray(wrote.batches[header.base_offset])
        raw[EPOCH_BYTES] = was[EPOCH_BYTES]
        assert raw == was, f"other bytes at {header.base_offset}"
        consumed.batches.add(header.base_offset)
        following = max(following, header.next_offset)
    assert following > offset, f"no progress at {offset}"
    return following
