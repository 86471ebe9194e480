"""Which batches are decompressed before they are appended, and how they are checked (F64)."""

from collections.abc import Iterator

import pytest
from tests.hostile_batches import bomb, claiming
from tests.unit.log.support import NOW, new_log, run

from tidelog.log.config import LogConfig
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, AppendOrigin, AppendRefused
from tidelog.log.validation import record_checks
from tidelog.log.validation.record_checks import RecordCheck
from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.compression import CODECS
from tidelog.protocol.records.records import Record, build_batch

LARGE = LogConfig(max_message_bytes=1 << 24, segment_bytes=1 << 26)
COMPACTED = LogConfig(
    max_message_bytes=1 << 24, segment_bytes=1 << 26, cleanup_policy=frozenset({"compact"})
)
DENSE = [Record(b"k", None, NOW)] * 100_000
"""Many small records with different offsets; zstd compresses several of them into one byte."""


def offered(batch: bytes, log: PartitionLog) -> Appended | AppendRefused | RecordCheck:
    return log.append_as_leader(memoryview(bytearray(batch)), 1, NOW)


def appended(batch: bytes, config: LogConfig = LARGE) -> Appended | AppendRefused:
    """Append as the node does. If a job has to check the batch, it is appended after the job."""
    log = new_log(config)
    outcome = offered(batch, log)
    if isinstance(outcome, RecordCheck):
        assert log.log_end_offset == 0
        refused = run(outcome)
        if refused is not None:
            return refused
        view = memoryview(outcome.batch)
        outcome = log.append_as_leader(view, 1, NOW, AppendOrigin.CHECKED_CLIENT)
    assert not isinstance(outcome, RecordCheck)
    return outcome


def refused(batch: bytes, config: LogConfig = LARGE) -> ErrorCode:
    outcome = appended(batch, config)
    assert isinstance(outcome, AppendRefused), outcome
    return outcome.error


def test_f64_eight_million_records_in_82_kilobytes_are_refused_at_once() -> None:
    batch = bomb("gzip", 8_000_000, NOW)
    assert len(batch) < 82_000
    outcome = offered(batch, new_log(LARGE))
    assert isinstance(outcome, AppendRefused)
    assert outcome.error is ErrorCode.invalid_record


@pytest.mark.parametrize("codec", ["gzip", "zstd"])
def test_f64_records_that_are_there_but_have_no_offsets_of_their_own_are_refused(
    codec: str,
) -> None:
    batch = bomb(codec, 50_000, NOW)
    assert isinstance(offered(batch, new_log(LARGE)), RecordCheck)
    assert refused(batch) is ErrorCode.invalid_record


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("count", [500, 50_000, 1_000_000, 1_000_001, 2**31 - 1])
def test_f64_more_records_counted_than_there_are_bytes_must_be_there(
    codec: str, count: int
) -> None:
    batch = claiming(build_batch([Record(None, b"x" * 10, NOW)] * 20, compression=codec), count)
    assert len(batch) < 500
    assert refused(batch) is ErrorCode.invalid_record


def test_f64_a_true_count_is_believed_once_it_was_counted() -> None:
    batch = build_batch(DENSE, compression="zstd")
    assert len(DENSE) > len(batch)
    assert isinstance(offered(batch, new_log(LARGE)), RecordCheck)
    assert appended(batch) == Appended(0, len(DENSE) - 1, -1)
    for wrong in (len(DENSE) - 1, len(DENSE) + 1):
        assert refused(claiming(batch, wrong)) is ErrorCode.invalid_record


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
@pytest.mark.parametrize("value", [None, b"x" * 10, b"x" * 1_000])
def test_f64_batches_of_honest_producers_are_not_unpacked(codec: str, value: bytes | None) -> None:
    for count in (1, 2, 10, 100, 5_000):
        batch = build_batch([Record(None, value, NOW)] * count, compression=codec)
        assert isinstance(offered(batch, new_log(LARGE)), Appended)


# -- topics that need a check of every record ------------------------------------------------------


def test_f64_a_compacted_topic_unpacks_large_batches_in_a_job_and_small_ones_at_once() -> None:
    for codec in CODECS:
        large = build_batch([Record(b"k", b"x" * 100, NOW)] * 1_000, compression=codec)
        assert isinstance(offered(large, new_log(COMPACTED)), RecordCheck)
        assert appended(large, COMPACTED) == Appended(0, 999, -1)
        small = build_batch([Record(b"k", b"x" * 100, NOW)] * 10, compression=codec)
        assert offered(small, new_log(COMPACTED)) == Appended(0, 9, -1)


def test_f64_records_without_a_key_are_named_up_to_a_number() -> None:
    records = [Record(b"k" if number % 2 else None, b"", NOW) for number in range(5_000)]
    outcome = appended(build_batch(records, compression="gzip"), COMPACTED)
    assert isinstance(outcome, AppendRefused)
    assert outcome.error is ErrorCode.invalid_record
    assert "2500 of the batch" in outcome.message
    assert [index for index, _ in outcome.record_errors] == list(range(0, 2_000, 2))


@pytest.mark.parametrize("codec", CODECS[1:])
def test_f64_a_batch_that_is_over_the_budget_of_a_check_is_refused(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = build_batch([Record(b"k", bytes(100_000), NOW)] * 100, compression=codec)
    assert isinstance(appended(batch, COMPACTED), Appended)
    monkeypatch.setattr(record_checks, "CHECKED_BYTES", 5_000_000)
    assert refused(batch, COMPACTED) is ErrorCode.invalid_record


def test_f64_a_batch_that_is_too_new_is_refused_without_unpacking_it_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unpacked = 0

    def counting(codec: str, packed: Iterator[bytes], budget: int) -> Iterator[bytes]:
        nonlocal unpacked
        for chunk in unpack(codec, packed, budget):
            unpacked += len(chunk)
            yield chunk

    unpack = record_checks.unpack
    monkeypatch.setattr(record_checks, "unpack", counting)
    records = [Record(None, bytes(10_000), NOW + 10**9)] * 1_000
    assert refused(build_batch(records, compression="gzip")) is ErrorCode.invalid_timestamp
    assert unpacked < 100_000
