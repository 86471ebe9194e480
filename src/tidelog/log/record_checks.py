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
    """Refuse a record without a key in a compacted topic, and one that is too old."""
    needs_key = "compact" in config.cleanup_policy
    oldest = now - config.message_timestamp_before_max_ms
    try:
        for record in iterate_records(batch):
            if needs_key and record.key is None:
                return AppendRefused(
                    ErrorCode.invalid_record, "Compacted topic cannot accept message without key"
                )
            if record.timestamp < oldest and record.timestamp != NO_TIMESTAMP:
                return AppendRefused(
                    ErrorCode.invalid_timestamp,
                    f"Timestamp {record.timestamp} is out of range: the earliest is {oldest}",
                )
    except UnreadableRecords as unreadable:
        if unreadable.error is ErrorCode.unsupported_compression_type:
            return None
        return AppendRefused(ErrorCode.corrupt_message, unreadable.reason)
    return None


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
