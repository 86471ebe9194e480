"""The few questions that only records can answer, asked where a topic's configuration needs it.

A batch whose codec this broker cannot read is judged by its header: clients can read it.
"""

from tidelog.log.config import UNLIMITED, LogConfig
from tidelog.log.results import AppendRefused
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_TIMESTAMP, Millis, Offset
from tidelog.protocol.batch import BatchHeader
from tidelog.protocol.records import UnreadableRecords, iterate_records


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
