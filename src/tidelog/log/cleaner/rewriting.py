"""Writes a batch again without some of its records, as Kafka's cleaner does.

Base offset, last offset, producer, base sequence and leader epoch stay. Readers therefore find
every remaining record at its offset, and the producer's last sequence number stays known (F81). A
batch with a delete horizon stores the horizon in its base timestamp, and bit 6 of its attributes is
set. The timestamps of the records are relative to the base timestamp in any case, so they do not
change.
"""

from collections.abc import Sequence
from struct import Struct

from crc32c import crc32c

from tidelog.log.cleaner.record_spans import RecordSpan
from tidelog.model.disk import Buffer
from tidelog.model.ids import NO_TIMESTAMP, Millis
from tidelog.protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
)
from tidelog.protocol.records.compression import compress
from tidelog.protocol.records.records import codec_of
from tidelog.protocol.varint import varint

DELETE_HORIZON_MASK = 0x40
_KEPT_ATTRIBUTES = COMPRESSION_MASK | TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK
_HEADER = Struct(">qiibIhiqqqhii")
_CRC_START = 21


def delete_horizon(header: BatchHeader) -> Millis | None:
    """When the tombstones or the marker of a batch may be removed; None if it is not decided."""
    return header.base_timestamp if header.attributes & DELETE_HORIZON_MASK else None


def without_records(header: BatchHeader) -> bytes:
    """The batch with no record, which still shows the last sequence number and offset."""
    attributes = header.attributes & _KEPT_ATTRIBUTES & ~COMPRESSION_MASK
    return _packed(
        header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, record_count=0), b""
    )


def with_records(
    header: BatchHeader, body: Buffer, kept: Sequence[RecordSpan], horizon: Millis | None
) -> bytes:
    """The batch with some of its records; `body` holds the unpacked records of the old batch."""
    base, shift = header.base_timestamp, 0
    attributes = header.attributes & _KEPT_ATTRIBUTES
    stamps = [span.timestamp_delta for span in kept]
    newest = base + max(stamps)
    if header.uses_log_append_time:
        # Every record has the append time. Its own delta has no meaning.
        stamps, base, newest = [0] * len(kept), header.max_timestamp, header.max_timestamp
    if horizon is None:
        shift = stamps[0]
    else:
        shift, attributes = horizon - base, attributes | DELETE_HORIZON_MASK
    if shift or header.uses_log_append_time:
        records = _with_timestamps(body, kept, [stamp - shift for stamp in stamps])
    else:
        records = b"".join([body[span.start : span.end] for span in kept])
    packed = compress(codec_of(header), records) if header.compression else records
    return _packed(
        header._replace(
            attributes=attributes,
            base_timestamp=base + shift,
            max_timestamp=newest,
            record_count=len(kept),
        ),
        packed,
    )


def _with_timestamps(body: Buffer, kept: Sequence[RecordSpan], deltas: Sequence[int]) -> bytes:
    """The records with other timestamp deltas."""
    parts = bytearray()
    for span, delta in zip(kept, deltas, strict=True):
        head = bytes(body[span.attributes : span.attributes + 1]) + varint(delta)
        head += varint(span.offset_delta)
        parts += varint(len(head) + span.end - span.rest) + head
        parts += body[span.rest : span.end]
    return bytes(parts)


def _packed(header: BatchHeader, body: bytes) -> bytes:
    header = header._replace(length=HEADER_SIZE - LOG_OVERHEAD + len(body))
    covered = _HEADER.pack(*header)[_CRC_START:] + body
    return _HEADER.pack(*header._replace(crc=crc32c(covered)))[:_CRC_START] + covered
