"""Finds the intact record batches in files that may be damaged."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from crc32c import crc32c

HEADER_BYTES = 61
PREFIX, LAST_DELTA, CRC = struct.Struct(">qi"), struct.Struct(">i"), struct.Struct(">I")
LENGTH_AT, MAGIC_AT, CRC_AT, CHECKED_FROM, LAST_DELTA_AT = 8, 16, 17, 21, 23
MAGIC = 2
DIGITS, END = 20, 1 << 62


class WholeBatch(NamedTuple):
    position: int
    base: int
    last: int
    content: bytes

    @property
    def offsets(self) -> range:
        return range(self.base, self.last + 1)


def whole_batches(data: bytes) -> Iterator[WholeBatch]:
    """Every batch whose checksum matches; bytes between such batches are skipped."""
    position = 0
    while position + HEADER_BYTES <= len(data):
        base, length = PREFIX.unpack_from(data, position)
        end = position + PREFIX.size + length
        is_plausible = data[position + MAGIC_AT] == MAGIC and base >= 0
        if is_plausible and HEADER_BYTES - PREFIX.size <= length and end <= len(data):
            content = data[position:end]
            if crc32c(content[CHECKED_FROM:]) == CRC.unpack_from(content, CRC_AT)[0]:
                last = base + LAST_DELTA.unpack_from(content, LAST_DELTA_AT)[0]
                yield WholeBatch(position, base, last, content)
                position = end
                continue
        # Continue at the next possible header, whose magic byte is at position 16.
        found = data.find(MAGIC, position + MAGIC_AT + 1)
        if found < 0:
            return
        position = found - MAGIC_AT


def batches_under(directory: Path) -> set[bytes]:
    """The checksummed part of every intact batch, in all files under a directory."""
    return {
        batch.content[CHECKED_FROM:]
        for path in directory.rglob("*")
        if path.is_file() and not path.is_symlink()
        for batch in whole_batches(path.read_bytes())
    }


def offsets_in(partition: Path) -> set[int]:
    """The offsets of all intact batches whose offsets are in the range of their segment."""
    found: set[int] = set()
    logs = {
        int(path.stem): path
        for path in sorted(partition.glob("*.log"))
        if path.is_file() and path.stem.isdigit() and len(path.stem) == DIGITS
    }
    following = [*list(logs)[1:], END]
    for (base, path), end in zip(logs.items(), following, strict=False):
        for batch in whole_batches(path.read_bytes()):
            if base <= batch.base and batch.last < end:
                found.update(batch.offsets)
    return found
