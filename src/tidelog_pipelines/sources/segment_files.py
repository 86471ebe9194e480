"""Finds a topic's segments in the data directories of replicas, and reads their batches.

A large segment is read in several parts. Each part begins at the first batch at or after its first
byte, and ends before the first batch of the next part. The offset index helps to find the first
batch. A damaged batch is reported and skipped. If its length cannot be trusted, reading continues
at the next batch in the index.
"""

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from tidelog_pipelines.sources.batch_compression import BadBatch, unpack
from tidelog_pipelines.sources.record_columns import CRC_START, HEADER, LOG_OVERHEAD, Batch, Header

MAGIC = 2
READ_BYTES = 4 * 1024 * 1024
BROKER_ID = re.compile(r"^(?:node|broker)\.id *= *(\d+)", re.MULTILINE)
UNKNOWN_BROKER = -1
_INDEX_ENTRY = Struct(">ii")


class NoSegments(Exception):
    """A data directory has no segment of the topic. The message names the directory."""


class Part(NamedTuple):
    """The batches of one segment that begin in [start, end)."""

    replica: int
    topic: str
    partition: int
    path: str
    start: int
    end: int
    is_active: bool
    """Whether this is the partition's last segment, whose last batch may be partial."""

    @property
    def base_offset(self) -> int:
        return int(Path(self.path).stem)


class Damage(NamedTuple):
    """An unreadable batch: the offsets that it claims to hold, and the reason."""

    base_offset: int
    last_offset: int
    position: int
    reason: str


def broker_of(directories: str) -> int:
    """The id of the broker that uses these data directories; -1 if no directory names a broker."""
    for directory in directories.split(","):
        try:
            properties = (Path(directory) / "meta.properties").read_text()
        except OSError:
            continue
        if found := BROKER_ID.search(properties):
            return int(found[1])
    return UNKNOWN_BROKER


def find_parts(replicas: Mapping[int, str], topic: str | None, part_bytes: int) -> list[Part]:
    """Every part of every segment. Commas separate the directories of one replica.

    Without a topic, finds the segments of all topics. Raises `NoSegments` if a replica has no
    segment.
    """
    parts: list[Part] = []
    for replica, directories in replicas.items():
        found = [
            part
            for directory in directories.split(",")
            for part in _in_directory(replica, Path(directory), topic, part_bytes)
        ]
        if not found:
            of = f" of '{topic}'" if topic else ""
            raise NoSegments(f"replica {replica} has no segment{of} in {directories}")
        parts += found
    return parts


def _in_directory(
    replica: int, directory: Path, topic: str | None, part_bytes: int
) -> Iterator[Part]:
    # The directory of a partition that is being deleted or moved has a longer name, and is not
    # read.
    name = re.compile(f"({re.escape(topic) if topic else '.+'})" + r"-(\d+)")
    if not directory.is_dir():
        raise NoSegments(f"{directory} is not a directory")
    for partition in sorted(directory.iterdir()):
        if matched := name.fullmatch(partition.name):
            segments = sorted(partition.glob("*.log"))
            for segment in segments:
                size = segment.stat().st_size
                for start in range(0, max(size, 1), part_bytes):
                    yield Part(
                        replica,
                        matched[1],
                        int(matched[2]),
                        str(segment),
                        start,
                        min(start + part_bytes, size),
                        segment == segments[-1],
                    )


def read_batches(
    part: Part, stretches: Sequence[tuple[int, int]] | None = None
) -> Iterator[Batch | Damage]:
    """The part's batches in order, without control batches.

    With `stretches`, only batches with an offset in one of these ranges [first, end) are returned.
    Of all other batches, only the header is read.
    """
    read_bytes = READ_BYTES if stretches is None else HEADER.size
    index = _index_positions(part.path)
    with open(part.path, "rb") as segment:
        file = segment.fileno()
        size = os.fstat(file).st_size
        position = _first_batch(file, part.start, size, index)
        buffer, buffer_at = b"", position
        expected = part.base_offset
        while position < min(part.end, size):
            if len(buffer) - (position - buffer_at) < HEADER.size:
                buffer, buffer_at = os.pread(file, read_bytes, position), position
            header, reason = _header(buffer, position - buffer_at, position, size)
            if header is None:
                resumed = _next_indexed(index, position, size)
                is_end = part.is_active and resumed == size
                if is_end and _is_unwritten(reason, buffer, position - buffer_at):
                    return
                yield Damage(expected, expected, position, f"{reason}; {resumed - position} bytes")
                position = resumed
                continue
            if stretches is None or _touches(header, stretches):
                if len(buffer) - (position - buffer_at) < header.size:
                    wanted = max(read_bytes, header.size)
                    buffer, buffer_at = os.pread(file, wanted, position), position
                within = position - buffer_at
                found = _batch(header, position, buffer[within : within + header.size], expected)
                if found is not None:
                    yield found
            expected = max(expected, header.last_offset + 1)
            position += header.size


def _header(buffer: bytes, at: int, position: int, size: int) -> tuple[Header | None, str]:
    """The header of a batch that lies within the file, or the reason why it is invalid."""
    if len(buffer) - at < HEADER.size:
        return None, "cut short"
    header = Header(*HEADER.unpack_from(buffer, at))
    if header.magic != MAGIC:
        return None, f"magic {header.magic} is not {MAGIC}"
    if header.length < HEADER.size - LOG_OVERHEAD:
        return None, f"a length of {header.length}"
    if position + header.size > size:
        return None, "cut short"
    return header, ""


def _touches(header: Header, stretches: Sequence[tuple[int, int]]) -> bool:
    return any(first <= header.last_offset and header.base_offset < end for first, end in stretches)


def _is_unwritten(reason: str, buffer: bytes, at: int) -> bool:
    """Whether this is the end of a log that a broker is writing, or was writing when it died."""
    return reason == "cut short" or not any(buffer[at : at + HEADER.size])


def _batch(header: Header, position: int, raw: bytes, expected: int) -> Batch | Damage | None:
    if header.base_offset < expected:  # the CRC does not cover the base offset
        reason = f"its base offset {header.base_offset} is below {expected}"
        return Damage(expected, expected, position, reason)
    if crc32c(memoryview(raw)[CRC_START:]) != header.crc:
        return Damage(header.base_offset, header.last_offset, position, "its CRC is wrong")
    if header.is_control:
        return None
    try:
        records = unpack(header.compression, raw[HEADER.size :])
    except BadBatch as error:
        return Damage(header.base_offset, header.last_offset, position, str(error))
    return Batch(header, position, records)


def _index_positions(path: str) -> list[int]:
    """The batch positions in the offset index, in ascending order. Empty if there is no index."""
    try:
        entries = Path(path).with_suffix(".index").read_bytes()
    except FileNotFoundError:
        return []
    whole = len(entries) // _INDEX_ENTRY.size * _INDEX_ENTRY.size
    positions = [position for _, position in _INDEX_ENTRY.iter_unpack(entries[:whole])]
    # A running broker preallocates its index, so zeros follow the last entry.
    return [position for number, position in enumerate(positions) if position > 0 or number == 0]


def _first_batch(file: int, start: int, size: int, index: list[int]) -> int:
    """The position of the first batch that begins at or after `start`."""
    if start == 0:
        return 0
    known = bisect_right(index, start)
    position = index[known - 1] if known else 0
    while position < start:
        header, _ = _header(os.pread(file, HEADER.size, position), 0, position, size)
        if header is None:  # the previous part reports this damage
            position = _next_indexed(index, position, size)
        else:
            position += header.size
    return position


def _next_indexed(index: list[int], position: int, size: int) -> int:
    known = bisect_right(index, position)
    return index[known] if known < len(index) else size
