"""The records inside a batch, for logs that the broker itself writes, for tools and for tests.

The data plane does not use this module, because it moves a client's batch between socket and disk
as it is. kio's record classes are not used, because they round timestamps. A timestamp in this
module is exact. It is the base timestamp plus the record's delta, or the timestamp of the batch if
message.timestamp.type is LogAppendTime.
"""

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from tidelog.model.disk import Buffer
from tidelog.model.ids import (
    NO_EPOCH,
    NO_OFFSET,
    NO_PRODUCER,
    NO_TIMESTAMP,
    LeaderEpoch,
    Millis,
    Offset,
    ProducerId,
)
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.records.batch import (
    CONTROL_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_MASK,
    BatchHeader,
    read_header,
)
from tidelog.protocol.records.compression import compress
from tidelog.protocol.records.unpacking import CODECS, UnreadableRecords, unpack
from tidelog.protocol.varint import read_varint, read_varlong, varint

__all__ = [
    "ControlType",
    "Header",
    "Record",
    "UnreadableRecords",
    "build_batch",
    "codec_of",
    "control_key",
    "control_type",
    "iterate_records",
    "read_records",
]

_HEADER = Struct(">qiibIhiqqqhii")
_CRC_START = 21
_CONTROL_KEY = Struct(">hh")
_LONGEST_VARINT = 5
_NULL = varint(-1)


class ControlType(IntEnum):
    """The type of a control record, from its key."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


_CONTROL_TYPES = {int(kind): kind for kind in ControlType}


class Header(NamedTuple):
    key: str
    value: bytes | None


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: Millis = NO_TIMESTAMP
    headers: tuple[Header, ...] = ()
    offset: Offset = NO_OFFSET
    """Set in every record that was read. If it is not set, `build_batch` uses the next offset."""


# -- Control records -------------------------------------------------------------------------------


def control_key(kind: ControlType) -> bytes:
    return _CONTROL_KEY.pack(0, kind)


def control_type(record: Record) -> ControlType | None:
    """The type of a control record; None for an unknown type, which readers skip."""
    if record.key is None or len(record.key) < _CONTROL_KEY.size:
        return None
    version, kind = _CONTROL_KEY.unpack_from(record.key)
    return _CONTROL_TYPES.get(kind) if version >= 0 else None


# -- Building batches ------------------------------------------------------------------------------


def build_batch(
    records: Sequence[Record],
    base_offset: Offset = 0,
    *,
    leader_epoch: LeaderEpoch = NO_EPOCH,
    producer_id: ProducerId = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
    is_control: bool = False,
    compression: str = "none",
    last_offset_delta: int | None = None,
) -> bytes:
    """Build a batch; `last_offset_delta` is for a batch whose last records were removed."""
    timestamps = [record.timestamp for record in records]
    base_timestamp = timestamps[0] if timestamps else NO_TIMESTAMP
    deltas = _offset_deltas(records, base_offset)
    if last_offset_delta is None:
        last_offset_delta = deltas[-1] if deltas else 0
    body = b"".join(
        _encode(record, record.timestamp - base_timestamp, delta)
        for record, delta in zip(records, deltas, strict=True)
    )
    body = compress(compression, body)
    attributes = CODECS.index(compression)
    attributes |= TRANSACTIONAL_MASK if is_transactional else 0
    attributes |= CONTROL_MASK if is_control else 0
    header = BatchHeader(
        base_offset,
        HEADER_SIZE - LOG_OVERHEAD + len(body),
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max(timestamps, default=NO_TIMESTAMP),
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    covered = _HEADER.pack(*header)[_CRC_START:] + body
    return _HEADER.pack(*header._replace(crc=crc32c(covered)))[:_CRC_START] + covered


def _offset_deltas(records: Sequence[Record], base_offset: Offset) -> list[int]:
    deltas: list[int] = []
    following = 0
    for record in records:
        delta = following if record.offset == NO_OFFSET else record.offset - base_offset
        assert delta >= following, f"offset {record.offset} is not after the previous offset"
        deltas.append(delta)
        following = delta + 1
    return deltas


def _encode(record: Record, timestamp_delta: int, offset_delta: int) -> bytes:
    key, value, _, headers, _ = record
    body = (
        b"\0"
        + varint(timestamp_delta)
        + varint(offset_delta)
        + _sized(key)
        + _sized(value)
        + varint(len(headers))
    )
    if headers:
        body += b"".join(_sized(key.encode()) + _sized(value) for key, value in headers)
    return varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return _NULL if data is None else varint(len(data)) + data


# -- Reading records -------------------------------------------------------------------------------


def read_records(batch: Buffer) -> list[Record]:
    """All records of one whole batch, which has been checked."""
    return list(iterate_records(batch))


def iterate_records(batch: Buffer) -> Iterator[Record]:
    """The records of one whole batch; raises UnreadableRecords at the first invalid record."""
    header = read_header(batch)
    body = memoryview(batch)[HEADER_SIZE : header.size]
    try:
        if header.compression:
            yield from _packed_records(header, unpack(codec_of(header), (body,)))
        else:
            yield from _records(header, body)
    except (struct.error, IndexError):
        raise UnreadableRecords("a record is cut short") from None
    except UnreadableRecords:
        raise
    except MalformedMessage as error:
        raise UnreadableRecords(error.reason) from None


def codec_of(header: BatchHeader) -> str:
    """The name of a batch's compression codec."""
    if header.compression >= len(CODECS):
        raise UnreadableRecords(f"compression type {header.compression}")
    return CODECS[header.compression]


def _records(header: BatchHeader, body: Buffer) -> Iterator[Record]:
    position = 0
    for _ in range(header.record_count):
        size, position = read_varint(body, position)
        end = position + size
        if size < 0 or end > len(body):
            raise UnreadableRecords(f"a record of {size} bytes")
        yield _record(header, body, position, end)
        position = end
    if position != len(body):
        raise UnreadableRecords(f"{len(body) - position} bytes after the last record")


def _packed_records(header: BatchHeader, chunks: Iterator[bytes]) -> Iterator[Record]:
    """As `_records`, from unpacked chunks; at most one record and one chunk are in memory."""
    body, position = b"", 0

    def await_bytes(size: int) -> None:
        """Unpack until `size` bytes follow the position, or the input ends."""
        nonlocal body, position
        if len(body) - position < size:
            parts, held = [body[position:]], len(body) - position
            while held < size and (chunk := next(chunks, None)) is not None:
                parts.append(chunk)
                held += len(chunk)
            body, position = b"".join(parts), 0

    for _ in range(header.record_count):
        await_bytes(_LONGEST_VARINT)
        size, position = read_varint(body, position)
        if size < 0:
            raise UnreadableRecords(f"a record of {size} bytes")
        await_bytes(size)
        end = position + size
        if end > len(body):
            raise UnreadableRecords(f"a record of {size} bytes")
        yield _record(header, body, position, end)
        position = end
    await_bytes(1)
    if position != len(body):
        raise UnreadableRecords("bytes after the last record")


def _record(header: BatchHeader, body: Buffer, position: int, end: int) -> Record:
    """The record whose content lies between two positions."""
    timestamp_delta, position = read_varlong(body, position + 1)
    offset_delta, position = read_varint(body, position)
    key, position = _read_sized(body, position)
    value, position = _read_sized(body, position)
    headers, position = _read_headers(body, position)
    if position != end:
        raise UnreadableRecords("the content of a record does not match its length")
    timestamp = header.max_timestamp
    if not header.uses_log_append_time:
        timestamp = header.base_timestamp + timestamp_delta
    return Record(key, value, timestamp, headers, header.base_offset + offset_delta)


def _read_sized(body: Buffer, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(body, position)
    if size < 0:
        return None, position
    end = position + size
    if end > len(body):
        raise UnreadableRecords(f"a key or value of {size} bytes")
    return bytes(body[position:end]), end


def _read_headers(body: Buffer, position: int) -> tuple[tuple[Header, ...], int]:
    count, position = read_varint(body, position)
    if count == 0:
        return (), position
    if count < 0:
        raise UnreadableRecords(f"{count} headers")
    headers = []
    for _ in range(count):
        key, position = _read_sized(body, position)
        if key is None:
            raise UnreadableRecords("a header without a key")
        value, position = _read_sized(body, position)
        headers.append(Header(str(key, "utf-8", "replace"), value))
    return tuple(headers), position
