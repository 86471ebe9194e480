"""A directory of Apache Kafka 4.1, stopped or killed, is opened with all of its records.

tests/clients/kafka_directory.py made the files in tests/unit/log/data.
"""

import json
import shutil
from pathlib import Path

import pytest
from tests.unit.log.support import NOW, append, batch, headers, offset_for_timestamp, raw, verify

from tidelog.log.config import LogConfig
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.log.results import AbortedTxn, Appended, AppendRefused, TimestampOffset
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import read_records
from tidelog.runtime.files.disk import RealDisk
from tidelog.sim.machines.dice import SeededDice

DATA = Path(__file__).parent / "data"
ORDERS = TopicPartition("orders", 0)
EXPECTED = json.loads((DATA / "expected.json").read_text())
CONFIG = LogConfig(
    segment_ms=10_000, segment_index_bytes=1_200, index_interval_bytes=200, retention_ms=-1
)


@pytest.fixture(params=["stopped", "killed"])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def directory(how: str, tmp_path: Path) -> LogDirectory:
    shutil.copytree(DATA / how, tmp_path / how)
    return LogDirectory(RealDisk(tmp_path / how), SeededDice(0))


@pytest.fixture
def log(directory: LogDirectory) -> PartitionLog:
    topic_id = directory.topic_id(ORDERS)
    assert topic_id is not None
    return directory.open(ORDERS, topic_id, CONFIG, NOW)


def records(log: PartitionLog) -> list[list[object]]:
    found: list[list[object]] = []
    content = memoryview(raw(log))
    for position, header in iterate(content):
        if not header.is_control:
            for record in read_records(content[position : position + header.size]):
                assert record.key is not None
                assert record.value is not None
                found.append(
                    [record.offset, record.timestamp, record.key.decode(), record.value.decode()]
                )
    return found


def test_the_directory_says_whose_it_is(directory: LogDirectory, how: str) -> None:
    assert directory.partitions() == [ORDERS]
    assert directory.meta is not None
    assert directory.meta.node_id == 1
    assert directory.clean_shutdown == (how == "stopped")
    # Kafka was killed before it wrote these two files for the first time.
    assert len(directory.notes) == (0 if how == "stopped" else 2)


def test_every_record_is_there(log: PartitionLog) -> None:
    assert records(log) == EXPECTED["read_uncommitted"]
    assert log.log_end_offset == 68
    assert log.recovery.damages == ()
    assert log.recovery.truncated_bytes == 0
    assert {header.compression for header in headers(log)} == {0, 1, 2, 3, 4}


def test_only_a_killed_broker_costs_a_scan(log: PartitionLog, how: str) -> None:
    assert (log.recovery.scanned_bytes > 0) == (how == "killed")


def test_transactions_are_known(log: PartitionLog) -> None:
    assert log.last_stable_offset(68) == 68
    (aborted,) = log.aborted_transactions(0, 68)
    committed = {record[0] for record in EXPECTED["read_committed"]}
    missing = {record[0] for record in EXPECTED["read_uncommitted"]} - committed
    assert aborted == AbortedTxn(
        aborted.producer_id, min(missing), max(missing) + 1, max(missing) + 2
    )


def test_kafkas_transaction_index_matches_the_batches(log: PartitionLog) -> None:
    verify(log)
    assert log.take_notes() == []


def test_idempotent_producers_are_known(log: PartitionLog) -> None:
    last = [header for header in headers(log) if header.base_sequence >= 0][-1]
    again = batch(
        last.record_count,
        producer=last.producer_id,
        epoch=last.producer_epoch,
        sequence=last.base_sequence,
        transactional=True,
    )
    result = log.append_as_leader(again, 9, NOW)
    if isinstance(result, Appended):
        assert result.duplicate
        assert result.base_offset == last.base_offset
    else:
        # The coordinator raised the producer's epoch when it wrote the marker (KIP-890).
        assert isinstance(result, AppendRefused)
        assert result.error is ErrorCode.invalid_producer_epoch


def test_look_ups_by_time_match_the_records(log: PartitionLog) -> None:
    for timestamp in sorted({record[1] for record in EXPECTED["read_uncommitted"]}):
        first = next(r for r in EXPECTED["read_uncommitted"] if r[1] >= timestamp)
        found = offset_for_timestamp(log, timestamp, 68)
        assert isinstance(found, TimestampOffset)
        assert (found.offset, found.timestamp) == (first[0], first[1])


def test_it_is_written_on_and_read_again(
    directory: LogDirectory, log: PartitionLog, how: str, tmp_path: Path
) -> None:
    assert append(log, batch(2), epoch=9).base_offset == 68
    directory.close({ORDERS: 70})
    again = LogDirectory(RealDisk(tmp_path / how), SeededDice(0))
    assert again.clean_shutdown
    topic_id = again.topic_id(ORDERS)
    assert topic_id is not None
    log = again.open(ORDERS, topic_id, CONFIG, NOW)
    assert records(log)[:-2] == EXPECTED["read_uncommitted"]
    assert log.log_end_offset == 70
