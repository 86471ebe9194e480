"""Kafka's checks of batches before an append. Most of the checks need only the batch header."""

from tidelog.log.config import LogConfig
from tidelog.log.results import AppendOrigin, AppendRefused
from tidelog.log.validation.body_checks import IN_DOUBT, check_body
from tidelog.log.validation.record_checks import RecordCheck, check_records, rules_of
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis
from tidelog.protocol.records.batch import (
    COMPRESSION_MASK,
    CONTROL_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    check,
    claim_create_time,
    peek_size,
)

_NEWEST_CODEC = 4
_MAGIC_AT = 16
_SMALLEST_LENGTH = 14
"""The length of the smallest message of magic 0. A smaller length is invalid."""
_NOT_ONE_BATCH = "There must be exactly one record batch"


def check_produced(
    batches: memoryview,
    config: LogConfig,
    now: Millis,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> BatchHeader | AppendRefused | RecordCheck:
    """Check the only batch that a produce request may contain for a partition; returns its header.

    If the records must be counted first, the result is the job that counts them.
    """
    header = check(batches)
    if not isinstance(header, BatchHeader):
        return _unsound(header, batches)
    size = len(batches)
    if (
        header.size != size
        or size > config.max_message_bytes
        or header.last_offset_delta + 1 != header.record_count
        or header.record_count <= 0
        or header.base_offset != 0
        or header.attributes & (CONTROL_MASK | TIMESTAMP_TYPE_MASK)
        or header.attributes & COMPRESSION_MASK > _NEWEST_CODEC
        or (header.producer_id >= 0 and header.base_sequence < 0)
    ):
        refused = _ill_formed(header, batches, config)
        if refused is not None:
            return refused
        header = claim_create_time(batches, 0, header)
    fault = check_body(batches, header)
    if fault is not None:
        if fault is not IN_DOUBT:
            return fault
        if origin is not AppendOrigin.CHECKED_CLIENT:
            return RecordCheck(bytearray(batches), rules_of(config, now, is_counted=True))
    if size > config.segment_bytes:
        return AppendRefused(
            ErrorCode.record_list_too_large,
            f"The record batch size is {size} bytes, "
            f"which exceeds the maximum configured segment size of {config.segment_bytes}",
        )
    if not config.stamps_append_time:
        latest = now + config.message_timestamp_after_max_ms
        if header.max_timestamp > latest:
            rules = rules_of(config, now)._replace(stored_codec=None, is_any=True)
            blamed = check_records(batches, rules)
            if isinstance(blamed, AppendRefused):
                return blamed
            return AppendRefused(
                ErrorCode.invalid_timestamp,
                f"Timestamp {header.max_timestamp} is out of range: the latest is {latest}",
            )
    return header


def _unsound(error: ErrorCode, batches: memoryview) -> AppendRefused:
    if error is ErrorCode.unsupported_for_message_format:
        # Kafka's answer to magic 0 and 1 in a produce request of version 3 or later.
        return AppendRefused(
            ErrorCode.invalid_record, "Only record batches with magic version 2 are allowed"
        )
    if _is_cut_short(batches, 0):
        return AppendRefused(ErrorCode.invalid_record, _NOT_ONE_BATCH)
    return AppendRefused(error, "The record batch is corrupt")


def _is_cut_short(batches: memoryview, position: int) -> bool:
    """Whether the bytes may be an incomplete batch, which Kafka does not count as a batch."""
    rest = batches[position:]
    if len(rest) < LOG_OVERHEAD:
        return True
    size = LOG_OVERHEAD + int.from_bytes(rest[8:12], "big", signed=True)
    if size < LOG_OVERHEAD + _SMALLEST_LENGTH:
        return False
    return len(rest) <= _MAGIC_AT or (rest[_MAGIC_AT] <= MAGIC and len(rest) < size)


def _ill_formed(
    header: BatchHeader, batches: memoryview, config: LogConfig
) -> AppendRefused | None:
    """The refusal for the first rule that the header breaks; None if the broker can correct it."""
    error, message = ErrorCode.invalid_record, ""
    if header.size != len(batches):
        message = _NOT_ONE_BATCH
        if not _is_cut_short(batches, header.size) and not _is_batch(batches, header.size):
            error = ErrorCode.corrupt_message
    elif header.base_offset != 0:
        message = f"The base offset of the record batch should be 0, but it is {header.base_offset}"
    elif header.size > config.max_message_bytes:
        error = ErrorCode.message_too_large
        message = (
            f"The record batch size is {header.size} bytes, "
            f"which exceeds the maximum configured value of {config.max_message_bytes}"
        )
    elif header.record_count <= 0 or header.last_offset_delta + 1 != header.record_count:
        message = (
            f"Inconsistent last offset delta {header.last_offset_delta} "
            f"and count of records {header.record_count}"
        )
    elif header.is_control:
        message = "Clients are not allowed to write control records"
    elif header.compression > _NEWEST_CODEC:
        error = ErrorCode.unsupported_compression_type
        message = f"Unknown compression type {header.compression}"
    elif header.producer_id >= 0 and header.base_sequence < 0:
        message = f"Invalid sequence number {header.base_sequence} of an idempotent producer"
    elif config.stamps_append_time:
        error = ErrorCode.invalid_timestamp
        message = "A producer should not set the timestamp type to LogAppendTime"
    else:
        assert header.uses_log_append_time
        return None
    return AppendRefused(error, message)


def _is_batch(batches: memoryview, position: int) -> bool:
    return isinstance(check(batches, position), BatchHeader)


def check_whole(batches: memoryview) -> list[tuple[int, BatchHeader]] | AppendRefused:
    """Check all batches; returns (position, header) of each whole batch.

    A partial last batch is ignored.
    """
    found: list[tuple[int, BatchHeader]] = []
    position = 0
    while position + HEADER_SIZE <= len(batches):
        if position + peek_size(batches, position) > len(batches):
            break
        header = check(batches, position)
        if not isinstance(header, BatchHeader):
            return AppendRefused(header, f"The record batch at byte {position} is corrupt")
        found.append((position, header))
        position += LOG_OVERHEAD + header.length
    return found


def check_replicated(
    batches: memoryview, newest_epoch: LeaderEpoch, *, has_gaps: bool
) -> list[tuple[int, BatchHeader]] | AppendRefused:
    """Check batches from the leader, like `check_whole`; returns the batches before the first gap.

    If `has_gaps` is set, gaps are accepted. No checksum covers a batch's offset and leader epoch.
    Instead, the offset is compared with the previous batch, and the leader epoch with the newest
    epoch.
    """
    found = check_whole(batches)
    if isinstance(found, AppendRefused):
        return found
    least = -1
    for number, (_, header) in enumerate(found):
        base_offset = header.base_offset
        if base_offset < max(least, 0) or header.last_offset_delta < 0:
            return AppendRefused(ErrorCode.corrupt_message, f"Offset {base_offset} is out of order")
        if header.leader_epoch > newest_epoch:
            message = f"Leader epoch {header.leader_epoch} is later than {newest_epoch}"
            return AppendRefused(ErrorCode.corrupt_message, message)
        if base_offset != least >= 0 and not has_gaps:
            return found[:number]
        least = base_offset + header.last_offset_delta + 1
    return found
