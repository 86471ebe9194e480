"""Writes segments for the tests, with the broker's own code for batches."""

from collections.abc import Sequence
from pathlib import Path
from struct import Struct

from tidelog.protocol.records.records import Record, build_batch

INDEX_ENTRY = Struct(">ii")
NOW = 1_700_000_000_000


def some_records(first: int, count: int) -> list[Record]:
    """Records of many sizes, with and without a key and a value."""
    return [
        Record(
            None if number % 7 == 3 else b"key-%d" % number,
            None if number % 11 == 5 else b"v%d" % number * (number % 90),
            NOW + number * (1 if number % 2 else -1),
            offset=number,
        )
        for number in range(first, first + count)
    ]


def write_segment(
    data: Path, topic: str, batches: Sequence[bytes], base_offset: int = 0, every: int = 1
) -> Path:
    """Write a segment of partition 0. Its offset index has one entry per `every` batches."""
    directory = data / f"{topic}-0"
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base_offset:020}.log"
    path.write_bytes(b"".join(batches))
    position, index = 0, bytearray()
    for number, batch in enumerate(batches):
        if number and number % every == 0:
            offset = int.from_bytes(batch[:8], "big")
            index += INDEX_ENTRY.pack(offset - base_offset, position)
        position += len(batch)
    path.with_suffix(".index").write_bytes(index)
    return path


def some_batches(count: int, each: int, compression: str = "none") -> list[bytes]:
    """`count` consecutive batches of `each` records, from offset 0."""
    return [
        build_batch(
            some_records(number * each, each),
            number * each,
            leader_epoch=number // 3,
            compression=compression,
        )
        for number in range(count)
    ]
