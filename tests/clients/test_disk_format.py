"""The log files have Kafka's format: Kafka reads our files, and we read Kafka's files."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from tests.clients import kafka_directory
from tests.clients.java import run_tool
from tests.clients.librdkafka import create, producer_of, read, send_values
from tests.clients.samples import BASE_TIME, CODECS
from tests.clients.schema import Schemas
from tests.clients.systems import ApacheKafka

from tidelog.log.config import LogConfig
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, AppendOrigin
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.records import ControlType, Record, build_batch, control_key
from tidelog.runtime.files.disk import RealDisk
from tidelog.sim.machines.dice import SeededDice

ORDERS = TopicPartition("orders", 0)
CONFIG = LogConfig(segment_bytes=4_000, index_interval_bytes=500)
NOW = BASE_TIME + 100_000


def write(log: PartitionLog, batch: bytes, origin: AppendOrigin = AppendOrigin.CLIENT) -> None:
    result = log.append_as_leader(memoryview(bytearray(batch)), 3, NOW, origin)
    assert isinstance(result, Appended), result


def fill(log: PartitionLog) -> list[bytes]:
    """Append batches with every codec, and an aborted transaction; return the values."""
    values = []
    for number in range(60):
        records = []
        for n in range(3):
            values.append(f"value {number} {n} ".encode() * 9)
            records.append(Record(b"key", values[-1], BASE_TIME + number * 10 + n))
        codec = CODECS[number % len(CODECS)]
        write(
            log,
            build_batch(
                records,
                compression=codec,
                producer_id=7,
                producer_epoch=0,
                base_sequence=number * 3,
            ),
        )
    aborted = [Record(b"key", b"aborted", BASE_TIME + 5_000)]
    write(
        log,
        build_batch(
            aborted, producer_id=8, producer_epoch=0, base_sequence=0, is_transactional=True
        ),
    )
    marker = Record(control_key(ControlType.ABORT), bytes(6), BASE_TIME + 5_001)
    write(
        log,
        build_batch(
            [marker], producer_id=8, producer_epoch=0, is_transactional=True, is_control=True
        ),
        AppendOrigin.COORDINATOR,
    )
    return values


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A log directory that our log engine has written and closed."""
    directory = LogDirectory(RealDisk(tmp_path / "ours"), SeededDice(0))
    log = directory.open(ORDERS, UUID(int=77), CONFIG, NOW)
    fill(log)
    directory.close({ORDERS: log.log_end_offset})
    return tmp_path / "ours"


def dump(libs: Path, files: list[Path], *options: str) -> str:
    return run_tool(libs, "kafka-dump-log", "--files", ",".join(map(str, files)), *options)


def files(directory: Path, suffix: str) -> list[Path]:
    found = sorted((directory / str(ORDERS)).glob(f"*{suffix}"))
    assert found
    return found


def test_kafkas_tool_reads_every_batch_and_record(kafka_libs: Path, ours: Path) -> None:
    output = dump(kafka_libs, files(ours, ".log"), "--deep-iteration", "--print-data-log")
    assert len(files(ours, ".log")) > 2
    bases = [int(n) for n in re.findall(r"^baseOffset: (\d+) ", output, re.M)]
    assert bases == [*range(0, 180, 3), 180, 181]
    assert "isvalid: false" not in output
    assert output.count("isvalid: true") == 62
    assert set(re.findall(r"compresscodec: (\w+)", output)) == set(CODECS)
    assert set(re.findall(r"partitionLeaderEpoch: (\d+)", output)) == {"3"}
    assert re.findall(r"payload: (value 59 2)", output) == ["value 59 2"]
    assert "endTxnMarker: ABORT coordinatorEpoch: 0" in output


def test_kafkas_tool_finds_the_indexes_right(kafka_libs: Path, ours: Path) -> None:
    output = dump(
        kafka_libs, [*files(ours, ".index"), *files(ours, ".timeindex")], "--verify-index-only"
    )
    for complaint in ("Mismatches", "Found timestamp mismatch", "not found", "out of order"):
        assert complaint not in output
    sane = dump(
        kafka_libs, [*files(ours, ".index"), *files(ours, ".timeindex")], "--index-sanity-check"
    )
    assert sane.count("passed sanity check") == len(files(ours, ".index")) * 2


def test_kafkas_tool_reads_producers_and_transactions(kafka_libs: Path, ours: Path) -> None:
    output = dump(kafka_libs, [files(ours, ".snapshot")[-1], *files(ours, ".txnindex")])
    assert re.search(r"producerId: 7 producerEpoch: 0 .*lastSequence: 179 lastOffset: 179", output)
    assert re.search(
        r"producerId: 8 firstOffset: 180 lastOffset: 181 lastStableOffset: 182", output
    )


@pytest.fixture
def kafka(schemas: Schemas, tmp_path: Path) -> Iterator[ApacheKafka]:
    broker = ApacheKafka(tmp_path / "kafka", schemas)
    broker.format()
    broker.start()
    yield broker
    broker.kill()


@pytest.mark.parametrize("clean", [True, False])
def test_apache_kafka_serves_what_our_engine_wrote(
    kafka: ApacheKafka, tmp_path: Path, clean: bool
) -> None:
    create(kafka, ORDERS.topic, retention_ms=-1)
    send_values(producer_of(kafka), ORDERS.topic, [b"by kafka"])
    assert kafka.stop() in (0, 143)

    directory = LogDirectory(RealDisk(kafka.data), SeededDice(0))
    topic_id = directory.topic_id(ORDERS)
    assert topic_id is not None
    log = directory.open(ORDERS, topic_id, CONFIG, NOW)
    values = fill(log)
    if clean:
        directory.close({ORDERS: log.log_end_offset})

    kafka.start()
    found = [sample.value for sample in read(kafka, ORDERS.topic, len(values) + 1)]
    assert found == [b"by kafka", *values]
    assert send_values(producer_of(kafka), ORDERS.topic, [b"and on"]) == [log.log_end_offset]


def test_our_engine_opens_what_apache_kafka_wrote(kafka: ApacheKafka, tmp_path: Path) -> None:
    kafka_directory.make(kafka, tmp_path / "made")
    for how in ("stopped", "killed"):
        # tests/unit/log/test_kafka_data.py checks directories of Apache Kafka in detail.
        root = tmp_path / "made" / how
        directory = LogDirectory(RealDisk(root), SeededDice(0))
        topic_id = directory.topic_id(ORDERS)
        assert topic_id is not None
        log = directory.open(ORDERS, topic_id, LogConfig(), NOW)
        assert log.log_end_offset == len(CODECS) * kafka_directory.PER_CODEC + 8
        assert log.recovery.damages == ()
        assert log.recovery.truncated_bytes == 0
        shutil.rmtree(root)
