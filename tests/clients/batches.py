"""Builds and reads valid and invalid record batches, without the broker's own code."""

import struct
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

from crc32c import crc32c
from tests.clients.schema import Cursor, varint

HEADER = struct.Struct(">qiibIhiqqqhii")
LOG_APPEND_TIME = 0x08
NOW = 1_700_000_000_000
"""The timestamp of test records. It is fixed, so that answers can be compared."""


@dataclass(frozen=True)
class Record:
    value: bytes | None = b"value"
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_delta: int = 0

    def encode(self, offset_delta: int) -> bytes:
        body = bytearray(b"\0")
        body += zigzag(self.timestamp_delta) + zigzag(offset_delta)
        for data in (self.key, self.value):
            body += zigzag(-1) if data is None else zigzag(len(data)) + data
        body += zigzag(len(self.headers))
        for name, content in self.headers:
            body += zigzag(len(name.encode())) + name.encode()
            body += zigzag(-1) if content is None else zigzag(len(content)) + content
        return zigzag(len(body)) + bytes(body)


def zigzag(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63) if value < 0 else value << 1)


@dataclass(frozen=True)
class Batch:
    """A batch in which a test can set any header field; None stands for the correct value."""

    records: tuple[Record, ...] = (Record(),)
    base_offset: int = 0
    leader_epoch: int = -1
    magic: int = 2
    attributes: int = 0
    base_timestamp: int = NOW
    max_timestamp: int | None = None
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    length: int | None = None
    crc: int | None = None
    last_offset_delta: int | None = None
    count: int | None = None
    payload: bytes | None = None
    """The bytes after the header, if they are compressed or garbage instead of plain records."""

    def encode(self) -> bytes:
        payload = self.payload
        if payload is None:
            payload = b"".join(record.encode(delta) for delta, record in enumerate(self.records))
        deltas = [record.timestamp_delta for record in self.records]
        maximum = self.base_timestamp + max(deltas, default=0)
        rest = struct.pack(
            ">hiqqqhii",
            self.attributes,
            len(self.records) - 1 if self.last_offset_delta is None else self.last_offset_delta,
            self.base_timestamp,
            maximum if self.max_timestamp is None else self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            len(self.records) if self.count is None else self.count,
        )
        rest += payload
        crc = crc32c(rest) if self.crc is None else self.crc
        length = len(rest) + 9 if self.length is None else self.length
        return (
            struct.pack(">qiibI", self.base_offset, length, self.leader_epoch, self.magic, crc)
            + rest
        )

    def but(self, **changes: Any) -> "Batch":
        return replace(self, **changes)


def old_message(magic: int, value: bytes = b"old", crc: int | None = None) -> bytes:
    """One message of the formats before Kafka 0.11 (magic 0 or 1)."""
    body = struct.pack(">bb", magic, 0)
    if magic == 1:
        body += struct.pack(">q", NOW)
    body += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
    message = struct.pack(">I", zlib.crc32(body) if crc is None else crc) + body
    return struct.pack(">qi", 0, len(message)) + message


def describe(data: bytes) -> list[dict[str, Any]]:
    """The header fields of each batch; if the last batch is incomplete, only its size."""
    found: list[dict[str, Any]] = []
    at = 0
    while at < len(data):
        if len(data) - at < HEADER.size or len(data) - at < 12 + _length(data, at):
            found.append({"tornBytes": len(data) - at})
            break
        end = at + 12 + _length(data, at)
        (
            base,
            length,
            epoch,
            magic,
            crc,
            attributes,
            last,
            first_ts,
            max_ts,
            pid,
            pepoch,
            seq,
            count,
        ) = HEADER.unpack_from(data, at)
        found.append(
            {
                "baseOffset": base,
                "length": length,
                "leaderEpoch": epoch,
                "magic": magic,
                "crcHolds": crc == crc32c(data[at + 21 : end]),
                "attributes": attributes,
                "lastOffsetDelta": last,
                "baseTimestamp": first_ts,
                "maxTimestamp": max_ts,
                "producerId": pid,
                "producerEpoch": pepoch,
                "baseSequence": seq,
                "count": count,
            }
        )
        at = end
    return found


def _length(data: bytes, at: int) -> int:
    (length,) = struct.unpack_from(">i", data, at + 8)
    return int(length)


@dataclass
class Read:
    """One record as read back from an uncompressed batch."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)


def records(data: bytes) -> list[Read]:
    """The records of all complete, uncompressed batches."""
    out: list[Read] = []
    at = 0
    while at + HEADER.size <= len(data) and at + 12 + _length(data, at) <= len(data):
        (base, length, *_rest, first_ts, _max_ts, _pid, _pepoch, _seq, count) = HEADER.unpack_from(
            data, at
        )
        cursor = Cursor(data[at + HEADER.size : at + 12 + length])
        for _ in range(count):
            out.append(_record(cursor, base, first_ts))
        at += 12 + length
    return out


def _record(cursor: Cursor, base: int, first_timestamp: int) -> Read:
    def signed() -> int:
        value = cursor.varint()
        return (value >> 1) ^ -(value & 1)

    def data() -> bytes | None:
        size = signed()
        return None if size < 0 else cursor.take(size)

    signed()  # skip the record's length
    cursor.take(1)
    timestamp, offset = first_timestamp + signed(), base + signed()
    key, value = data(), data()
    headers = [((data() or b"").decode(), data()) for _ in range(signed())]
    return Read(offset, timestamp, key, value, headers)
