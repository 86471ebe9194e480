"""compression.type: batches in another codec are compressed again in a job, with Kafka's result."""

from dataclasses import replace

import pytest
from tests.unit.log.support import NOW, SMALL, headers, new_log, raw, run

from tidelog.log.config import LogConfig, StoredCodec
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, AppendOrigin, AppendRefused
from tidelog.log.validation.record_checks import RecordCheck
from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.records import Header, Record, build_batch, read_records
from tidelog.protocol.records.unpacking import CODECS

RECORDS = [Record(b"key", b"value %d " % n * 9, NOW + n, (Header("h", b"x"),)) for n in range(5)]


def storing(codec: str, level: int | None = None, **others: object) -> PartitionLog:
    config: LogConfig = replace(SMALL, stored_codec=StoredCodec(codec, level), **others)  # type: ignore[arg-type]
    return new_log(config)


def append(log: PartitionLog, batch: bytes) -> Appended | AppendRefused:
    """Append as the node does: if the result is a job, run it and append its batch."""
    result = log.append_as_leader(memoryview(bytearray(batch)), 1, NOW)
    if isinstance(result, RecordCheck):
        refused = run(result)
        if refused is not None:
            return refused
        result = log.append_as_leader(memoryview(result.batch), 1, NOW, AppendOrigin.CHECKED_CLIENT)
    assert not isinstance(result, RecordCheck)
    return result


@pytest.mark.parametrize("stored", CODECS)
@pytest.mark.parametrize("sent", CODECS)
def test_a_batch_is_stored_in_the_codec_of_its_topic(sent: str, stored: str) -> None:
    log = storing(stored)
    batch = build_batch(RECORDS, compression=sent, producer_id=7, producer_epoch=0, base_sequence=0)
    assert isinstance(append(log, batch), Appended)
    [header] = headers(log)
    assert CODECS[header.compression] == stored
    assert (header.producer_id, header.base_sequence, header.record_count) == (7, 0, 5)
    assert [one[:4] for one in read_records(raw(log))] == [one[:4] for one in RECORDS]
    again = append(log, batch)
    assert isinstance(again, Appended)
    assert again.duplicate


def test_a_batch_in_the_right_codec_is_stored_unchanged_and_at_once() -> None:
    log = storing("lz4")
    batch = build_batch(RECORDS, compression="lz4")
    assert isinstance(log.append_as_leader(memoryview(bytearray(batch)), 1, NOW), Appended)
    assert raw(log)[61:] == batch[61:]


def test_a_level_of_the_codec_is_used() -> None:
    text = b"".join(b"%d," % (n * n * 7_919 % 1_009) for n in range(2_000))
    records = [Record(b"key", text, NOW)]
    sizes = {}
    for level in (1, 9):
        log = storing("gzip", level, max_message_bytes=100_000, segment_bytes=100_000)
        assert isinstance(append(log, build_batch(records)), Appended)
        sizes[level] = len(raw(log))
    assert sizes[9] < sizes[1]


def test_a_batch_that_is_too_large_without_its_compression_is_refused() -> None:
    log = storing("none")
    batch = build_batch([Record(b"key", bytes(5_000), NOW)], compression="gzip")
    refused = append(log, batch)
    assert isinstance(refused, AppendRefused)
    assert refused.error is ErrorCode.message_too_large


def test_records_without_a_key_are_refused_before_a_compacted_topic_stores_them() -> None:
    log = storing("zstd", cleanup_policy=frozenset({"compact"}))
    refused = append(log, build_batch([Record(None, b"value", NOW)]))
    assert isinstance(refused, AppendRefused)
    assert refused.error is ErrorCode.invalid_record
    assert append(log, build_batch(RECORDS)) == Appended(0, 4, -1)
