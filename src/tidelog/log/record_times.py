"""Timestamps and offsets of the records inside a batch, for look-ups by time only."""

from collections.abc import Iterator

from tidelog.model.ids import Millis, Offset
from tidelog.protocol.batch import HEADER_SIZE, BatchHeader
from tidelog.protocol.varint import read_varint, read_varlong


def first_record_at(
    batch: memoryview, header: BatchHeader, timestamp: Millis, start: Offset
) -> tuple[Offset, Millis] | None:
    """(offset, timestamp) of the first record not older than `timestamp` and not before `start`."""
    if header.compression:
        # A compressed batch answers as a whole: with its first offset that may be asked for.
        return max(header.base_offset, start), header.max_timestamp
    for offset, time in _records(batch, header):
        if time >= timestamp and offset >= start:
            return offset, time
    return None


def _records(batch: memoryview, header: BatchHeader) -> Iterator[tuple[Offset, Millis]]:
    position = HEADER_SIZE
    for _ in range(header.record_count):
        size, position = read_varint(batch, position)
        time_delta, at = read_varlong(batch, position + 1)
        offset_delta, _ = read_varint(batch, at)
        yield header.base_offset + offset_delta, header.base_timestamp + time_delta
        position += size
