"""Decodes Kafka's record batches (magic 2) to columns: the records of many batches at once.

Each record begins with its length. A Python loop reads only these lengths, to find where each
record begins and ends. Then numpy reads all other fields for all records at once. An invalid batch
is left out and reported. The other batches are decoded as usual.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidelog_pipelines.sources.batch_compression import BadBatch

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

HEADER = Struct(">qiibIhiqqqhii")
LOG_OVERHEAD = 12
"""The size of the fields base offset and length. The value of `length` does not include it."""
CRC_START = 21
LONGEST_VARINT = 10

_COMPRESSION, _APPEND_TIME, _CONTROL = 0x07, 0x08, 0x20


class Header(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return LOG_OVERHEAD + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def compression(self) -> int:
        return self.attributes & _COMPRESSION

    @property
    def uses_append_time(self) -> bool:
        return self.attributes & _APPEND_TIME != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & _CONTROL != 0


class Batch(NamedTuple):
    """A valid batch, with its decompressed records and its position in the segment."""

    header: Header
    position: int
    records: bytes


class Columns(NamedTuple):
    """Each column has one entry per record. A missing key or value is None."""

    batch: Ints
    """The index of the record's batch in the input."""
    offset: Ints
    timestamp_ms: Ints
    keys: list[bytes | None]
    values: list[bytes | None]


def decode(batches: Sequence[Batch]) -> tuple[Columns, dict[int, str]]:
    """The records of these batches, and the index and reason of each batch that was left out."""
    starts, ends, counts, broken = _walk(batches)
    area = b"".join([batch.records for batch in batches]) + bytes(LONGEST_VARINT)
    batch = np.repeat(np.arange(len(batches)), counts)
    columns, is_sound = _fields(area, starts, ends, batch, batches)
    if not is_sound.all():
        bad = np.unique(batch[~is_sound])
        broken |= {int(number): "its records do not match their lengths" for number in bad}
        columns = _only(columns, ~np.isin(batch, bad))
    return columns, broken


def _walk(batches: Sequence[Batch]) -> tuple[Ints, Ints, list[int], dict[int, str]]:
    """The start and end of each record's body in the concatenated batches."""
    starts: list[int] = []
    ends: list[int] = []
    counts: list[int] = []
    broken: dict[int, str] = {}
    base = 0
    for number, batch in enumerate(batches):
        try:
            bodies, afters = _bodies(batch.records, batch.header.record_count)
        except BadBatch as error:
            broken[number] = str(error)
            bodies, afters = [], []
        starts += [base + position for position in bodies]
        ends += [base + position for position in afters]
        counts.append(len(bodies))
        base += len(batch.records)
    return np.array(starts, np.int64), np.array(ends, np.int64), counts, broken


def _bodies(records: bytes, count: int) -> tuple[list[int], list[int]]:
    starts: list[int] = []
    ends: list[int] = []
    position = 0
    try:
        for _ in range(count):
            byte = records[position]
            position += 1
            length, shift = byte & 0x7F, 7
            while byte >= 0x80:
                byte = records[position]
                position += 1
                length |= (byte & 0x7F) << shift
                shift += 7
            starts.append(position)
            position += length >> 1  # zigzag encoding; a length is never negative
            ends.append(position)
    except IndexError:
        raise BadBatch(f"its {count} records end after {len(ends)}") from None
    if position != len(records):
        raise BadBatch(f"its {count} records take {position} bytes of {len(records)}")
    return starts, ends


def _fields(
    area: bytes, starts: Ints, ends: Ints, batch: Ints, batches: Sequence[Batch]
) -> tuple[Columns, Bools]:
    data = np.frombuffer(area, np.uint8)
    timestamp_delta, at = _varints(data, starts + 1)  # after the attributes
    offset_delta, at = _varints(data, at)
    key_length, key_at = _varints(data, at)
    key_end = key_at + np.maximum(key_length, 0)
    value_length, value_at = _varints(data, key_end)
    value_end = value_at + np.maximum(value_length, 0)
    is_sound = (key_at <= key_end) & (key_end < ends) & (value_end < ends)
    keys = _slices(area, key_at, key_end, key_length, is_sound)
    values = _slices(area, value_at, value_end, value_length, is_sound)
    return (
        Columns(
            batch,
            _of(batches, "base_offset")[batch] + offset_delta,
            _timestamps(batches, batch, timestamp_delta),
            keys,
            values,
        ),
        is_sound,
    )


def _timestamps(batches: Sequence[Batch], batch: Ints, delta: Ints) -> Ints:
    is_append_time = np.array([one.header.uses_append_time for one in batches], np.bool_)
    created = _of(batches, "base_timestamp")[batch] + delta
    return np.where(is_append_time[batch], _of(batches, "max_timestamp")[batch], created)


def _of(batches: Sequence[Batch], field: str) -> Ints:
    return np.array([getattr(one.header, field) for one in batches], np.int64)


def _slices(
    area: bytes, starts: Ints, ends: Ints, lengths: Ints, is_sound: Bools
) -> list[bytes | None]:
    is_there = (lengths >= 0) & is_sound
    return [
        area[start:end] if there else None
        for start, end, there in zip(starts.tolist(), ends.tolist(), is_there.tolist(), strict=True)
    ]


def _varints(data: NDArray[np.uint8], positions: Ints) -> tuple[Ints, Ints]:
    """The zigzag varints at these positions, and the positions after them."""
    last = len(data) - 1
    at = np.minimum(positions, last)  # positions past the end are rejected by the caller
    byte = data[at]
    value = (byte & 0x7F).astype(np.uint64)
    after = positions + 1
    more = np.flatnonzero(byte & 0x80)
    for shift in range(7, 7 * LONGEST_VARINT, 7):
        if not len(more):
            break
        byte = data[np.minimum(after[more], last)]
        value[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[more] += 1
        more = more[(byte & 0x80) != 0]
    magnitude = (value >> np.uint64(1)).astype(np.int64)
    return magnitude ^ -(value & np.uint64(1)).astype(np.int64), after


def _only(columns: Columns, kept: Bools) -> Columns:
    chosen: list[Any] = np.flatnonzero(kept).tolist()
    return Columns(
        columns.batch[kept],
        columns.offset[kept],
        columns.timestamp_ms[kept],
        [columns.keys[number] for number in chosen],
        [columns.values[number] for number in chosen],
    )
