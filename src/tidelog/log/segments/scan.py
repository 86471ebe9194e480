"""Iterates over the batches of a segment file: headers only, or whole batches with checksums.

Invariant: a scan checks each header before it uses the length in it. The scan continues only while
each batch has magic 2, lies inside the file, and begins at or past the end offset of the previous
batch.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tidelog.model.disk import File
from tidelog.model.ids import Offset
from tidelog.protocol.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    is_valid_crc,
    read_header,
)

NEAR = 4096 + HEADER_SIZE
"""The number of bytes to read ahead for a look-up: one index interval and a header."""
FAR = 1 << 20
"""The number of bytes to read ahead for a pass over a whole segment."""
_BLOCK_BITS = 24
"""After a broken batch, the search for a valid batch covers at least the next 2^24 offsets."""


class Hole(NamedTuple):
    """A damaged range of bytes in a segment. Reads never return it, and scans skip it."""

    position: int
    end: int
    first_offset: Offset
    end_offset: Offset


class BrokenChainError(Exception):
    """The bytes at `position` are not the next batch. `PartitionLog` handles this error."""

    def __init__(self, position: int, next_offset: Offset, reason: str) -> None:
        super().__init__(f"position {position}: {reason}")
        self.position = position
        self.next_offset = next_offset
        """The end offset of the last valid batch before `position`; -1 if there is none."""
        self.reason = reason


def headers(
    file: File, position: int, end: int, read_ahead: int, least: Offset = 0
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield (position, header) of each batch between two positions; raise at a broken batch."""
    buffer, start = b"", position
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(buffer):
            buffer, start, at = file.read(position, min(read_ahead, end - position)), position, 0
        header = _next_header(buffer, at, position, end, least)
        yield position, header
        position += LOG_OVERHEAD + header.length
        least = header.next_offset


def batches(
    file: File, position: int, end: int, least: Offset = 0
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield (position, header, bytes) of each batch; raise at a broken or corrupt batch."""
    buffer, start = memoryview(b""), position
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(buffer):
            buffer, start, at = _read(file, position, FAR, end), position, 0
        header = _next_header(buffer, at, position, end, least)
        if at + header.size > len(buffer):
            buffer, start, at = _read(file, position, max(FAR, header.size), end), position, 0
        if at + header.size > len(buffer):
            raise BrokenChainError(position, least, "the file ends inside the batch")
        if not is_valid_crc(buffer, at, header):
            raise BrokenChainError(position, least, "the checksum does not match")
        yield position, header, buffer[at : at + header.size]
        position += header.size
        least = header.next_offset


def resume_after(file: File, position: int, end: int, least: Offset) -> int | None:
    """The position of the next valid batch after a broken one; None if no valid batch follows.

    The next base offset is expected soon after `least`. Its leading bytes are therefore equal to
    those of `least`, or larger by one. A byte search finds candidates. A candidate counts only if
    its checksum matches.
    """
    block = least >> _BLOCK_BITS
    prefix = re.compile(b"|".join(re.escape(_leading(one)) for one in (block, block + 1)))
    search = position + 1
    while search < end:
        window = file.read(search, min(FAR + HEADER_SIZE, end - search))
        found = prefix.search(window)
        while found is not None:
            if _is_batch(file, search + found.start(), end, least):
                return search + found.start()
            found = prefix.search(window, found.start() + 1)
        if len(window) <= HEADER_SIZE:
            return None
        search += len(window) - HEADER_SIZE
    return None


def _leading(block: int) -> bytes:
    return (block << _BLOCK_BITS).to_bytes(8, "big")[: 8 - _BLOCK_BITS // 8]


def _is_batch(file: File, position: int, end: int, least: Offset) -> bool:
    try:
        next(batches(file, position, end, least))
    except (BrokenChainError, StopIteration):
        return False
    return True


def _read(file: File, position: int, length: int, end: int) -> memoryview:
    return memoryview(file.read(position, min(length, end - position)))


def _next_header(
    buffer: bytes | memoryview, at: int, position: int, end: int, least: Offset
) -> BatchHeader:
    if len(buffer) - at < HEADER_SIZE:
        raise BrokenChainError(position, least, "the file ends inside a header")
    header = read_header(buffer, at)
    if header.magic != MAGIC:
        raise BrokenChainError(position, least, f"magic {header.magic} is not {MAGIC}")
    if header.length < HEADER_SIZE - LOG_OVERHEAD or position + header.size > end:
        raise BrokenChainError(position, least, f"length {header.length} is invalid")
    if header.base_offset < least or header.last_offset_delta < 0:
        raise BrokenChainError(position, least, f"offset {header.base_offset} is out of order")
    return header


class Stretch(NamedTuple):
    """A range of a segment file that a job may read while the log changes."""

    file: File
    position: int
    """The start of the range, at a batch boundary."""
    end: int
    holes: tuple[Hole, ...]
    base_offset: Offset

    def headers(self, read_ahead: int = NEAR) -> Iterator[tuple[int, BatchHeader]]:
        """Yield (position, header) of each batch outside the holes."""
        position = self.position
        for hole in self.holes:
            if position < hole.position:
                yield from self._run(position, hole.position, read_ahead)
            position = max(position, hole.end)
        yield from self._run(position, self.end, read_ahead)

    def _run(self, position: int, end: int, read_ahead: int) -> Iterator[tuple[int, BatchHeader]]:
        return headers(self.file, position, end, read_ahead, self.base_offset)
