"""Tidelog and Apache Kafka compact the same files to the same records, one after the other."""

import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import TopicPartition as AssignedPartition
from tests.clients.librdkafka import (
    consumer_of,
    create,
    poll,
    producer_of,
    read_messages,
    send,
)
from tests.clients.samples import Sample
from tests.clients.schema import Schemas
from tests.clients.systems import PATIENCE, ApacheKafka, Tidelog

from tidelog.log.cleaner.cleaning_pass import CleanerLimits
from tidelog.log.config import LogConfig
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, AppendOrigin, ReadResult
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import (
    ControlType,
    Record,
    build_batch,
    control_key,
    read_records,
)
from tidelog.protocol.records.unpacking import CODECS
from tidelog.runtime.files.disk import RealDisk
from tidelog.sim.machines.dice import SeededDice

STATES = TopicPartition("states", 0)
WRITING = LogConfig(
    segment_bytes=4_000, index_interval_bytes=500, cleanup_policy=frozenset({"compact"})
)
CLEANING = LogConfig(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_millionths=10_000)
DELETE_HORIZON = 0x40


class Kept(NamedTuple):
    """A batch as compaction leaves it. The delete horizon depends on the time of the pass."""

    base_offset: int
    last_offset: int
    attributes: int
    producer: tuple[int, int, int]
    leader_epoch: int
    max_timestamp: int
    records: list[Record]


def opened(root: Path, now: int) -> tuple[LogDirectory, PartitionLog]:
    directory = LogDirectory(RealDisk(root), SeededDice(0))
    topic_id = directory.topic_id(STATES)
    assert topic_id is not None
    return directory, directory.open(STATES, topic_id, WRITING, now)


def write(log: PartitionLog, now: int, records: list[Record], **options: Any) -> None:
    is_control = options.get("is_control", False)
    origin = AppendOrigin.COORDINATOR if is_control else AppendOrigin.CLIENT
    batch = memoryview(bytearray(build_batch(records, **options)))
    assert isinstance(log.append_as_leader(batch, 0, now, origin), Appended)


def fill(log: PartitionLog, now: int, turn: int) -> dict[bytes, bytes]:
    """Write every kind of batch; returns the values that a reader of committed records finds."""
    last: dict[bytes, bytes] = {}

    def key_and_value(number: int) -> Record:
        key, value = b"key %d" % (number % 10), b"value %d of turn %d " % (number, turn) * 4
        return Record(key, value, now + number)

    producer = 100 * turn
    for number in range(0, 90, 3):
        records = [key_and_value(number + n) for n in range(3)]
        codec = CODECS[number // 3 % len(CODECS)]
        sequence: dict[str, Any] = {}
        if number % 2:
            sequence = {"producer_id": producer + 7, "producer_epoch": 0, "base_sequence": number}
            records[0] = records[0]._replace(key=b"of producer", value=b"%d" % number)
        last.update((one.key, one.value) for one in records if one.key and one.value)
        write(log, now, records, compression=codec, **_in_order(log, sequence))
    for is_abort, number in ((True, 8), (False, 9)):
        ids = {"producer_id": producer + number, "producer_epoch": 0, "is_transactional": True}
        record = Record(b"key 1", b"of transaction %d" % number, now)
        write(log, now, [record], base_sequence=0, **ids)
        kind = ControlType.ABORT if is_abort else ControlType.COMMIT
        marker = Record(control_key(kind), bytes(6), now)
        write(log, now, [marker], is_control=True, **ids)
        if not is_abort:
            last[b"key 1"] = b"of transaction 9"
    write(log, now, [Record(b"key 2", None, now), Record(b"key 3", None, now)])
    last.pop(b"key 2")
    last.pop(b"key 3")
    for number in range(40):
        write(log, now, [Record(b"filler", b"." * 200 + b"%d" % number, now)])
        last[b"filler"] = b"." * 200 + b"%d" % number
    return last


def _in_order(log: PartitionLog, ids: dict[str, Any]) -> dict[str, Any]:
    known = {one.producer_id: one.last_sequence for one in log.active_producers()}
    if ids:
        ids["base_sequence"] = known.get(ids["producer_id"], -1) + 1
    return ids


def clean(directory: LogDirectory, log: PartitionLog, now: int) -> int:
    log.update_config(CLEANING)
    files, up_to = log.begin_flush(now)
    for file in files:
        file.sync()
    log.flushed(up_to)
    cleaned_to = directory.checkpoints.cleaned_to(STATES)
    cleanable = log.find_cleanable(cleaned_to, log.log_end_offset, now)
    assert cleanable.is_due(CLEANING)
    cleaning = log.begin_cleaning(cleanable, CleanerLimits(large_bytes=0), now)
    while (job := cleaning.next_job()) is not None:
        steps = job.run()
        while True:
            try:
                next(steps)
            except StopIteration as done:
                cleaning.take(done.value, now)
                break
    directory.checkpoints.note_cleaned_to(STATES, cleaning.cleaned_to)
    log.update_config(WRITING)
    return cleaning.cleaned_to


def kept(log: PartitionLog, end: int) -> list[Kept]:
    found: list[Kept] = []
    offset = log.log_start_offset
    while offset < end:
        result = log.read(offset, 1 << 20, end, at_least_one=True)
        assert isinstance(result, ReadResult)
        if result.slice is None:
            break
        chunk = memoryview(result.slice.file.read(result.slice.position, result.slice.length))
        for at, header in iterate(chunk):
            offset = header.next_offset
            found.append(
                Kept(
                    header.base_offset,
                    header.last_offset,
                    header.attributes,
                    (header.producer_id, header.producer_epoch, header.base_sequence),
                    header.leader_epoch,
                    header.max_timestamp,
                    read_records(chunk[at : at + header.size]),
                )
            )
    return found


@pytest.fixture
def kafka(schemas: Schemas, tmp_path: Path) -> Iterator[ApacheKafka]:
    eager = {"log.cleaner.backoff.ms": 100, "log.cleaner.threads": 1}
    broker = ApacheKafka(tmp_path / "kafka", schemas, eager)
    broker.format()
    broker.start()
    yield broker
    broker.kill()


def await_cleaned(kafka: ApacheKafka, offset: int) -> None:
    """Wait until Kafka's cleaner has passed this offset."""
    checkpoint = kafka.data / "cleaner-offset-checkpoint"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
        found = [line.split() for line in lines if line.startswith(STATES.topic)]
        if found and int(found[0][2]) >= offset:
            return
        time.sleep(0.1)
    raise AssertionError(f"not cleaned up to {offset}:\n{kafka.log_text()[-3000:]}")


def last_values(kafka: ApacheKafka, count: int) -> dict[bytes, bytes]:
    found = read_messages(kafka, STATES.topic, count, isolation_level="read_committed")
    last = {message.key(): message.value() for message in found}
    return {key: value for key, value in last.items() if value is not None}


def data_records(batches: list[Kept]) -> int:
    return sum(len(batch.records) for batch in batches if not batch.attributes & 0x20)


def test_apache_kafka_and_tidelog_compact_the_same_files_to_the_same_batches(
    kafka: ApacheKafka, tmp_path: Path
) -> None:
    create(kafka, STATES.topic, cleanup_policy="compact", min_cleanable_dirty_ratio=0.01)
    assert kafka.stop() in (0, 143)
    now = int(time.time() * 1_000)
    directory, log = opened(kafka.data, now)
    first = fill(log, now, turn=1)
    end = log.log_end_offset
    directory.close({STATES: end})
    shutil.copytree(kafka.data, tmp_path / "ours")

    ours, our_log = opened(tmp_path / "ours", now)
    cleaned_to = clean(ours, our_log, now)
    our_batches = kept(our_log, end)

    kafka.start()
    await_cleaned(kafka, cleaned_to)
    assert last_values(kafka, data_records(our_batches)) == first
    assert kafka.stop() in (0, 143)
    theirs, their_log = opened(kafka.data, now)
    assert their_log.recovery.is_proven
    assert theirs.checkpoints.cleaned_to(STATES) == cleaned_to
    assert kept(their_log, end) == our_batches

    # Tidelog compacts further what Kafka has compacted, and Kafka reads the result.
    second = {**first, **fill(their_log, now, turn=2)}
    for key in (b"key 2", b"key 3"):
        second.pop(key, None)
    clean(theirs, their_log, now)
    left = kept(their_log, their_log.log_end_offset)
    third_from = their_log.log_end_offset
    theirs.close({STATES: third_from})
    kafka.start()
    assert last_values(kafka, data_records(left)) == second
    assert kafka.stop() in (0, 143)

    # Kafka compacts further what Tidelog has compacted.
    again, again_log = opened(kafka.data, now)
    third = {**second, **fill(again_log, now, turn=3)}
    for key in (b"key 2", b"key 3"):
        third.pop(key, None)
    again.close({STATES: again_log.log_end_offset})
    kafka.start()
    await_cleaned(kafka, third_from)
    assert kafka.stop() in (0, 143)
    final, final_log = opened(kafka.data, now)
    assert final_log.recovery.is_proven
    found = {
        record.key: record.value
        for batch in kept(final_log, final_log.log_end_offset)
        if not batch.attributes & 0x20
        for record in batch.records
    }
    # The aborted record of the third turn is still in the active segment.
    assert {key: found[key] for key in third if key != b"key 1"} == {
        key: value for key, value in third.items() if key != b"key 1"
    }
    final.close({STATES: final_log.log_end_offset})


def bytes_of_segments(directory: Path) -> int:
    """The size of all segments. The cleaner may delete one between the listing and the look."""
    size = 0
    for file in directory.glob("*.log"):
        with suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


def test_a_broker_compacts_a_topic_that_is_written_and_reads_it_after_a_restart(
    schemas: Schemas, tmp_path: Path
) -> None:
    broker = Tidelog(tmp_path / "tidelog", schemas, {"log.cleaner.backoff.ms": 100})
    broker.format()
    broker.start()
    try:
        create(
            broker,
            STATES.topic,
            cleanup_policy="compact",
            internal_segment_bytes=100_000,
            min_cleanable_dirty_ratio=0.01,
        )
        now, keys, rounds = int(time.time() * 1_000), 50, 40
        producer = producer_of(broker)
        for turn in range(rounds):
            values = [b"value %d " % (turn * 500 + n) * 5 for n in range(500)]
            samples = [Sample(b"%d" % (n % keys), one, (), now) for n, one in enumerate(values)]
            send(producer, STATES.topic, samples)
        last = {b"%d" % (n % keys): value for n, value in enumerate(values)}
        directory, deadline = broker.data / str(STATES), time.monotonic() + PATIENCE
        while bytes_of_segments(directory) > 200_000:
            assert time.monotonic() < deadline, broker.log_text()[-3000:]
            time.sleep(0.05)
        broker.restart()
        send(producer_of(broker), STATES.topic, [Sample(b"end", b"end", (), now)])
        found: dict[bytes | None, bytes | None] = {}
        with consumer_of(broker) as consumer:
            consumer.assign([AssignedPartition(STATES.topic, 0, 0)])
            while b"end" not in found:
                found.update((one.key(), one.value()) for one in poll(consumer, 1))
        assert found == {**last, b"end": b"end"}
    finally:
        broker.kill()
