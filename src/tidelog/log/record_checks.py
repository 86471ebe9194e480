"""The few questions that only records can answer, asked where a topic's configuration needs it.

A batch whose codec this broker cannot read is judged by its header: clients can read it.
"""

from tidelog.log.config import UNLIMITED, LogConfig
from tidelog.log.results import AppendRefused
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset
from tidelog.protocol.batch import COMPRESSION_MASK, HEADER_SIZE, BatchHeader
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.records import UnreadableRecords, iterate_records
from tidelog.protocol.varint import read_varint

_SMALLEST_RECORD = 7
"""Its length, attributes, two deltas, no key, no value and no headers: a byte each."""
_WALKED = 16
"""How many records of a batch are looked at, at most: a walk over thousands costs too much."""
_BEGINNINGS = {1: b"\x1f\x8b", 3: b"\x04\x22\x4d\x18", 4: b"\x28\xb5\x2f\xfd"}
"""Of what gzip, lz4 and zstd write; snappy's may begin in any way."""


def check_body(batch: memoryview, header: BatchHeader) -> AppendRefused | None:
    """Refuse a batch that cannot hold the records that its header counts.

    What is compressed stays so, and a long batch is judged by its size and its first records.
    """
    codec = header.attributes & COMPRESSION_MASK
    if codec:
        beginning = _BEGINNINGS.get(codec, b"")
        body = batch[HEADER_SIZE : HEADER_SIZE + max(1, len(beginning))]
        if not body or (beginning and body != beginning):
            return AppendRefused(
                ErrorCode.corrupt_message, "The records are not compressed as the batch says"
            )
    elif not _may_hold(batch, header.record_count):
        return AppendRefused(
            ErrorCode.invalid_record,
            f"The batch does not hold the {header.record_count} records that it counts",
        )
    return None


def _may_hold(batch: memoryview, count: int) -> bool:
    end = len(batch)
    if count * _SMALLEST_RECORD > end - HEADER_SIZE:
        return False
    position = HEADER_SIZE
    try:
        for _ in range(min(count, _WALKED)):
            length, position = read_varint(batch, position)
            position += length
            if length < _SMALLEST_RECORD - 1 or position > end:
                return False
    except (IndexError, MalformedMessage):
        return False
    return position == end or count > _WALKED


def looks_inside(config: LogConfig) -> bool:
    """Compaction needs keys; a bound on age is a bound on each record's age."""
    return "compact" in config.cleanup_policy or (
        not config.stamps_append_time and config.message_timestamp_before_max_ms != UNLIMITED
    )


def check_records(batch: memoryview, config: LogConfig, now: Millis) -> AppendRefused | None:
    """Refuse records without a key in a compacted topic, and ones that are too old or too new."""
    found: list[tuple[int, str]] = []
    error = ErrorCode.invalid_record
    try:
        for index, record in enumerate(iterate_records(batch)):
            if "compact" in config.cleanup_policy and record.key is None:
                found.append((index, "Compacted topic cannot accept message without key"))
            elif not config.stamps_append_time and record.timestamp != NO_TIMESTAMP:
                fault = _time_fault(record.timestamp, config, now)
                if fault is not None:
                    error = ErrorCode.invalid_timestamp
                    found.append((index, fault))
    except UnreadableRecords as unreadable:
        if unreadable.error is ErrorCode.unsupported_compression_type:
            return None
        return AppendRefused(ErrorCode.corrupt_message, unreadable.reason)
    if not found:
        return None
    reason = f"{found[0][1]} (record {found[0][0]}; {len(found)} of the batch are refused)"
    return AppendRefused(error, reason, tuple(found))


def _time_fault(timestamp: Millis, config: LogConfig, now: Millis) -> str | None:
    oldest = now - config.message_timestamp_before_max_ms
    newest = now + config.message_timestamp_after_max_ms
    if oldest <= timestamp <= newest:
        return None
    return f"Timestamp {timestamp} is out of range: it should lie within [{oldest}, {newest}]"


def first_not_older(
    batch: memoryview, header: BatchHeader, timestamp: Millis, start: Offset
) -> tuple[Offset, Millis] | None:
    """(offset, timestamp) of the first record from `start` on that is not older than that."""
    try:
        for record in iterate_records(batch):
            if record.timestamp >= timestamp and record.offset >= start:
                return record.offset, record.timestamp
    except UnreadableRecords:
        return max(header.base_offset, start), header.max_timestamp
    return None
