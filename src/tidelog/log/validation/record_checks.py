"""Checks that read the records of a batch. They run only if the batch or its topic requires them.

A batch with a codec that this broker cannot read is accepted if its header is valid, because
clients may be able to read it.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from tidelog.log.config import UNLIMITED, LogConfig, StoredCodec
from tidelog.log.results import AppendRefused
from tidelog.log.validation.recompression import needs_recompression, recompressed
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_TIMESTAMP, Millis
from tidelog.model.jobs import Steps, Work
from tidelog.protocol.records.batch import HEADER_SIZE, BatchHeader, read_header
from tidelog.protocol.records.record_heads import RecordHead, record_heads
from tidelog.protocol.records.records import codec_of
from tidelog.protocol.records.unpacking import OverBudget, UnreadableRecords, unpack

CHECKED_BYTES = 256 * 1024 * 1024
"""A compressed batch that unpacks to more bytes than this is refused."""
CHECKED_RECORDS = 1_000_000
"""The maximum number of records in a compressed batch that has fewer bytes than records."""
_AT_ONCE_BYTES = 16 * 1024
_AT_ONCE_RECORDS = 64
"""A compressed batch above the limit of bytes or of records is checked in a job."""
_MOST_REPORTED = 1_000
"""The maximum number of invalid records to report for a batch."""


class RecordRules(NamedTuple):
    """The rules for every record of a batch."""

    needs_keys: bool
    oldest: Millis | None
    newest: Millis | None
    """The latest allowed timestamp; like `oldest`, it is None if there is no bound."""
    is_counted: bool
    """Whether to verify that the number of records is correct and their offsets are contiguous."""
    stored_codec: StoredCodec | None = None
    """The codec in which the batch must be stored; None if its own codec is right."""
    is_any: bool = True
    """Whether the topic has rules for single records."""


def rules_of(config: LogConfig, now: Millis, *, is_counted: bool = False) -> RecordRules:
    """The rules of a topic. Compaction requires keys, and timestamps may have limits."""
    oldest = newest = None
    if not config.stamps_append_time:
        oldest = now - config.message_timestamp_before_max_ms
        newest = now + config.message_timestamp_after_max_ms
    return RecordRules(
        "compact" in config.cleanup_policy,
        oldest,
        newest,
        is_counted,
        config.stored_codec,
        _has_rules(config),
    )


def looks_inside(config: LogConfig) -> bool:
    """Whether a topic has rules that require more than a batch header to check."""
    return config.stored_codec is not None or _has_rules(config)


def _has_rules(config: LogConfig) -> bool:
    return "compact" in config.cleanup_policy or (
        not config.stamps_append_time and config.message_timestamp_before_max_ms != UNLIMITED
    )


@dataclass(slots=True)
class RecordCheck:
    """A job that unpacks a batch, counts its records and applies the rules. Its result is a
    refusal or None.

    If the topic stores batches in another codec, the job compresses the batch again. The job has
    its own copy of the batch, because the host reuses the buffer of the request.
    """

    work: ClassVar[Work] = Work.COMPUTE
    batch: bytearray
    rules: RecordRules

    def run(self) -> Steps[AppendRefused | None]:
        size, budget = len(self.batch), CHECKED_BYTES
        if not read_header(self.batch).compression:
            budget = size
        records = max(CHECKED_RECORDS, size)
        try:
            refused = yield from _check(memoryview(self.batch), self.rules, budget, records)
            codec = self.rules.stored_codec
            if refused is None and codec is not None and needs_recompression(self.batch, codec):
                self.batch = recompressed(self.batch, codec, budget)
            return refused
        except OverBudget as over:
            return AppendRefused(ErrorCode.invalid_record, f"The batch cannot be checked: {over}")
        except UnreadableRecords as unreadable:
            return AppendRefused(unreadable.error, unreadable.reason)


def check_records(batch: memoryview, rules: RecordRules) -> AppendRefused | RecordCheck | None:
    """Check a small batch; returns its refusal, if any. For a large batch, returns a job.

    A batch that must be compressed again needs a job too.
    """
    if rules.stored_codec is not None and needs_recompression(batch, rules.stored_codec):
        return RecordCheck(bytearray(batch), rules._replace(is_counted=True))
    if not rules.is_any:
        return None
    steps = _check(batch, rules, _AT_ONCE_BYTES, _AT_ONCE_RECORDS)
    try:
        while True:
            next(steps)
    except StopIteration as done:
        refused: AppendRefused | None = done.value
        return refused
    except OverBudget:
        return RecordCheck(bytearray(batch), rules)


def _check(
    batch: memoryview, rules: RecordRules, budget: int, most: int
) -> Steps[AppendRefused | None]:
    header = read_header(batch)
    faults = _Faults(header, rules)
    try:
        chunks = unpack(codec_of(header), (batch[HEADER_SIZE:],), budget)
        for heads in record_heads(chunks, header.record_count):
            faults.check(heads)
            if faults.seen > most:
                raise OverBudget(f"it holds more than {most} records")
            yield
    except OverBudget:
        raise
    except UnreadableRecords as unreadable:
        if unreadable.error is ErrorCode.unsupported_compression_type:
            return None
        return AppendRefused(unreadable.error, unreadable.reason)
    return faults.refusal()


class _Faults:
    """Collects the records of a batch that break a rule."""

    def __init__(self, header: BatchHeader, rules: RecordRules) -> None:
        self._base = header.base_timestamp
        self._rules = rules
        self._found: list[tuple[int, str]] = []
        self._count = 0
        self._error = ErrorCode.invalid_record
        self.seen = 0

    def check(self, heads: list[RecordHead]) -> None:
        if heads:
            self._check_keys_and_times(heads)
            if self._rules.is_counted:
                offsets = [offset for _, offset, _ in heads]
                if offsets != list(range(self.seen, self.seen + len(heads))):
                    raise UnreadableRecords(
                        "The offsets of the records have gaps", ErrorCode.invalid_record
                    )
            self.seen += len(heads)

    def _check_keys_and_times(self, heads: list[RecordHead]) -> None:
        rules, base = self._rules, self._base
        are_keyed = not rules.needs_keys or min(key for _, _, key in heads) >= 0
        are_timely = (
            rules.oldest is None
            or rules.newest is None
            or (rules.oldest <= base + min(heads)[0] and base + max(heads)[0] <= rules.newest)
        )
        if are_keyed and are_timely:
            return
        for index, (delta, _, key) in enumerate(heads, self.seen):
            if rules.needs_keys and key < 0:
                self._report(index, "Compacted topic cannot accept message without key")
            elif not are_timely and (fault := self._time_fault(base + delta)) is not None:
                self._error = ErrorCode.invalid_timestamp
                self._report(index, fault)

    def _time_fault(self, timestamp: Millis) -> str | None:
        oldest, newest = self._rules.oldest, self._rules.newest
        assert oldest is not None
        assert newest is not None
        if timestamp == NO_TIMESTAMP or oldest <= timestamp <= newest:
            return None
        return f"Timestamp {timestamp} is out of range: it should lie within [{oldest}, {newest}]"

    def _report(self, index: int, fault: str) -> None:
        self._count += 1
        if self._count <= _MOST_REPORTED:
            self._found.append((index, fault))

    def refusal(self) -> AppendRefused | None:
        if not self._found:
            return None
        index, fault = self._found[0]
        reason = f"{fault} (record {index}; {self._count} of the batch are refused)"
        return AppendRefused(self._error, reason, tuple(self._found))
