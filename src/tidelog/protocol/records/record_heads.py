"""A fast scan over the records of a batch. It reads the head of each record, but no key or value.

The scan takes the bytes of the records in chunks, as the chunks are unpacked, and keeps at most one
chunk.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from tidelog.model.errors import ErrorCode
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.records.unpacking import UnreadableRecords
from tidelog.protocol.varint import read_varint, read_varlong

RecordHead: TypeAlias = tuple[int, int, int]
"""Timestamp delta, offset delta, and the size of the key (-1 for no key)."""

_SMALLEST = 6
"""The size of the smallest record after its length: six fields of one byte each."""
_LONGEST_HEAD = 5 + 1 + 10 + 5 + 5


def record_heads(chunks: Iterable[bytes], count: int) -> Iterator[list[RecordHead]]:
    """Yield the heads of the records in each chunk, in order; there must be `count` records.

    Raises UnreadableRecords if a record is invalid, or if there are fewer or more records.
    """
    buffer, position = b"", 0
    for chunk in chunks:
        if position >= len(buffer):
            buffer, position = chunk, position - len(buffer)
        else:
            buffer, position = buffer[position:] + chunk, 0
        heads, position = _heads(buffer, position, len(buffer) - _LONGEST_HEAD, count)
        count -= len(heads)
        yield heads
    size = len(buffer)
    heads, position = _heads(buffer + bytes(_LONGEST_HEAD), position, size - 1, count)
    yield heads
    if len(heads) < count:
        raise _unreadable(f"{count - len(heads)} of the records that the batch counts are missing")
    if position != size:
        raise _unreadable("the last record does not end where the records end")


def _heads(buffer: bytes, position: int, last: int, count: int) -> tuple[list[RecordHead], int]:
    """The heads of records that begin at or before `last`, and the start of the next record.

    Short varints are read inline, because a call for each varint would take most of the time.
    """
    heads: list[RecordHead] = []
    note = heads.append
    try:
        while position <= last and count:
            size = buffer[position]
            if size < 0x80:
                size, at = (size >> 1) ^ -(size & 1), position + 1
            else:
                size, at = read_varint(buffer, position)
            end = at + size
            # Skip the attributes, which are unused.
            timestamp = buffer[at + 1]
            if timestamp < 0x80:
                timestamp, at = (timestamp >> 1) ^ -(timestamp & 1), at + 2
            else:
                timestamp, at = read_varlong(buffer, at + 1)
            offset = buffer[at]
            if offset < 0x80:
                offset, at = (offset >> 1) ^ -(offset & 1), at + 1
            else:
                offset, at = read_varint(buffer, at)
            key = buffer[at]
            if key < 0x80:
                key, at = (key >> 1) ^ -(key & 1), at + 1
            else:
                key, at = read_varint(buffer, at)
            if size < _SMALLEST or at > end or key > end - at:
                raise _unreadable(f"a record of {size} bytes")
            note((timestamp, offset, key))
            position = end
            count -= 1
    except (IndexError, MalformedMessage) as error:
        if isinstance(error, UnreadableRecords):
            raise
        raise _unreadable("a record is cut short") from None
    return heads, position


def _unreadable(reason: str) -> UnreadableRecords:
    return UnreadableRecords(reason, ErrorCode.invalid_record)
