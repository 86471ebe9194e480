"""The records of a chunk of batches as arrays with one element per record.

Where a record begins depends on the length of the record before it, so the starts are found one
after the other. All other fields are read for all records at once. If a record is invalid, or has
a field that only hostile clients send, there is no table, and the plain engine reads the chunk.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidelog.log.cleaner.record_choice import OpenBatch
from tidelog.log.cleaner.record_spans import SMALLEST_RECORD
from tidelog.log.cleaner.vectors.key_hashes import PADDING, Bytes, Positions
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.varint import read_varint

_PADDING = bytes(PADDING)
_INT_BYTES, _LONG_BYTES = 5, 9
"""The longest varints that are read; a timestamp of 10 bytes would be 146 million years away."""


class NotVectorizable(Exception):
    """The chunk must be read one record after the other."""


class RecordTable(NamedTuple):
    data: bytes
    """The records of all batches, and padding."""
    first_rows: list[int]
    """The row of the first record of each batch."""
    start: Positions
    attributes: Positions
    timestamp_delta: Positions
    offset_delta: Positions
    offset: Positions
    rest: Positions
    key: Positions
    key_size: Positions
    """Negative if the record has no key."""
    has_value: NDArray[np.bool_]
    end: Positions


def record_table(batches: Sequence[OpenBatch]) -> RecordTable:
    data = b"".join([*(batch.body for batch in batches), _PADDING])
    starts, first_rows = _starts(data, batches)
    start = np.array(starts, np.int64)
    end = np.append(start[1:], len(data) - PADDING)
    view: Bytes = np.frombuffer(data, np.uint8)
    length, attributes = _varints(view, start, _INT_BYTES)
    timestamp_delta, at = _varints(view, attributes + 1, _LONG_BYTES)
    offset_delta, rest = _varints(view, at, _INT_BYTES)
    key_size, key = _varints(view, rest, _INT_BYTES)
    value = key + np.maximum(key_size, 0)
    if bool(((length < SMALLEST_RECORD) | (attributes + length != end) | (value >= end)).any()):
        raise NotVectorizable
    counts = [batch.record_count for batch in batches]
    base = np.repeat(np.array([batch.base_offset for batch in batches], np.int64), counts)
    # A size with a set lowest bit is negative, which means that there is no value.
    has_value = (view[value] & 1) == 0
    offset = base + offset_delta
    return RecordTable(
        data,
        first_rows,
        start,
        attributes,
        timestamp_delta,
        offset_delta,
        offset,
        rest,
        key,
        key_size,
        has_value,
        end,
    )


def _starts(data: bytes, batches: Sequence[OpenBatch]) -> tuple[list[int], list[int]]:
    """The position of each record, and the row of the first record of each batch."""
    starts: list[int] = []
    first_rows: list[int] = []
    at = limit = 0
    try:
        for batch in batches:
            first_rows.append(len(starts))
            at, limit = limit, limit + len(batch.body)
            equal = _equal_records(data, at, limit, batch.record_count)
            if equal is None:
                _walk(data, at, limit, batch.record_count, starts)
            else:
                starts += equal
    except (IndexError, MalformedMessage):
        raise NotVectorizable from None
    return starts, first_rows


def _equal_records(data: bytes, at: int, limit: int, count: int) -> range | None:
    """The positions of records that all have the same length; None if they have not."""
    size, rest = divmod(limit - at, count)
    if rest or size <= SMALLEST_RECORD:
        return None
    # If the length of each record is the same, then each record begins where it is expected.
    firsts, seconds = data[at:limit:size], data[at + 1 : limit : size]
    length, after = read_varint(data, at)
    if after + length != at + size or after > at + 2:
        return None
    if firsts.count(firsts[:1]) != count or (
        after == at + 2 and seconds.count(seconds[:1]) != count
    ):
        return None
    return range(at, limit, size)


def _walk(data: bytes, at: int, limit: int, count: int, starts: list[int]) -> None:
    """Follow the lengths from one record to the next."""
    note = starts.append
    for _ in range(count):
        note(at)
        length = data[at]
        if length < 0x80:
            at += 1 + (length >> 1)
        elif (high := data[at + 1]) < 0x80:
            at += 2 + ((length & 0x7F | high << 7) >> 1)
        else:
            size, at = read_varint(data, at)
            at += max(size, 0)
    if at != limit:
        raise NotVectorizable


def _varints(view: Bytes, at: Positions, longest: int) -> tuple[Positions, Positions]:
    """The numbers at these positions, and the positions after them."""
    byte = view[at]
    value = (byte & 0x7F).astype(np.int64)
    after = at + 1
    more = np.flatnonzero(byte >= 0x80)
    shift = 7
    while len(more):
        if shift == 7 * longest:
            raise NotVectorizable
        byte = view[after[more]]
        value[more] |= (byte & 0x7F).astype(np.int64) << shift
        after[more] += 1
        more = more[byte >= 0x80]
        shift += 7
    return (value >> 1) ^ -(value & 1), after
