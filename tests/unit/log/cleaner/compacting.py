"""Support for tests of the cleaner: passes, and reads as the two isolation levels see a log."""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from tests.unit.log.support import NOW, flush, raw

from tidelog.log.cleaner.cleaning_pass import CleanerLimits, CleaningPass, SliceDone
from tidelog.log.config import LogConfig
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.log.producers.markers import read_marker
from tidelog.log.results import Appended, AppendOrigin
from tidelog.model.disk import Disk
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.batch import BatchHeader, iterate
from tidelog.protocol.records.records import (
    ControlType,
    Record,
    build_batch,
    control_key,
    iterate_records,
)
from tidelog.sim.machines.dice import SeededDice

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = UUID(int=1)
DAY = 24 * 3_600_000
COMPACTED = LogConfig(
    segment_bytes=1_500,
    index_interval_bytes=200,
    cleanup_policy=frozenset({"compact"}),
    producer_id_expiration_ms=1 << 60,
)
MIXED = replace(COMPACTED, cleanup_policy=frozenset({"delete"}), retention_ms=-1)
"""The policy of a topic before it becomes compacted. It accepts records without keys."""


LIMITS = CleanerLimits()
"""The limits of a pass; `conftest.py` selects the engine with them."""


class Stored(NamedTuple):
    """A record as a consumer sees it."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


def opened(disk: Disk, config: LogConfig = COMPACTED) -> tuple[LogDirectory, PartitionLog]:
    directory = LogDirectory(disk, SeededDice(0))
    log = directory.open(ORDERS, TOPIC_ID, config, NOW)
    return directory, log


def write(
    log: PartitionLog,
    records: list[Record],
    *,
    producer: int = -1,
    epoch: int = 0,
    sequence: int = 0,
    transactional: bool = False,
    compression: str = "none",
    leader_epoch: int = 1,
) -> Appended:
    batch = build_batch(
        records,
        producer_id=producer,
        producer_epoch=epoch if producer >= 0 else -1,
        base_sequence=sequence if producer >= 0 else -1,
        is_transactional=transactional,
        compression=compression,
    )
    if transactional:
        log.transaction_verified(producer, log.marker_offset(producer))
    appended = log.append_as_leader(
        memoryview(bytearray(batch)), leader_epoch, NOW, AppendOrigin.CLIENT
    )
    assert isinstance(appended, Appended), appended
    return appended


def put(log: PartitionLog, key: str, value: str | None, timestamp: int = NOW) -> int:
    """Append one record; returns its offset."""
    record = Record(key.encode(), None if value is None else value.encode(), timestamp)
    return write(log, [record]).base_offset


def end_transaction(log: PartitionLog, producer: int, epoch: int, *, abort: bool) -> int:
    """Append a marker; returns its offset."""
    kind = ControlType.ABORT if abort else ControlType.COMMIT
    batch = build_batch(
        [Record(control_key(kind), bytes(6), NOW)],
        producer_id=producer,
        producer_epoch=epoch,
        is_transactional=True,
        is_control=True,
    )
    appended = log.append_as_leader(memoryview(bytearray(batch)), 1, NOW, AppendOrigin.COORDINATOR)
    assert isinstance(appended, Appended), appended
    return appended.base_offset


def seal(log: PartitionLog) -> None:
    """Fill the active segment, so that the cleaner may clean what is in it, and flush."""
    for _ in range(2 * COMPACTED.segment_bytes // 270):
        write(log, [Record(b"filler", bytes(200), NOW)], leader_epoch=max(1, log.latest_epoch))
    flush(log)


def begin(
    log: PartitionLog,
    cleaned_to: int = 0,
    wall: int = NOW,
    buffer_bytes: int | None = None,
) -> CleaningPass:
    cleanable = log.find_cleanable(cleaned_to, log.log_end_offset, wall)
    limits = LIMITS
    if buffer_bytes is not None:
        limits = limits._replace(dedupe_buffer_bytes=buffer_bytes)
    return log.begin_cleaning(cleanable, limits, wall)


def steps(cleaning: CleaningPass) -> Iterator[None]:
    """Run a pass; yields after each step of a job and after each result that was applied."""
    while (job := cleaning.next_job()) is not None:
        running = job.run()
        while True:
            try:
                next(running)
            except StopIteration as done:
                result: SliceDone = done.value
                break
            yield
        assert result.problem is None, result.problem
        cleaning.take(result, NOW)
        yield


def clean(log: PartitionLog, cleaned_to: int = 0, wall: int = NOW) -> int:
    """Run a whole pass; returns the first dirty offset after it."""
    cleaning = begin(log, cleaned_to, wall)
    for _ in steps(cleaning):
        pass
    assert not cleaning.is_cancelled
    return cleaning.cleaned_to


def batches(log: PartitionLog) -> list[tuple[BatchHeader, memoryview]]:
    content = memoryview(raw(log))
    return [(header, content[at : at + header.size]) for at, header in iterate(content)]


def uncommitted(log: PartitionLog) -> list[Stored]:
    """What a consumer with isolation.level=read_uncommitted reads."""
    return [
        Stored(record.offset, record.key, record.value, record.timestamp)
        for header, batch in batches(log)
        if not header.is_control
        for record in iterate_records(batch)
    ]


def committed(log: PartitionLog) -> list[Stored]:
    """What a consumer with isolation.level=read_committed reads, by the rules of Kafka's client."""
    stable = log.last_stable_offset(log.log_end_offset)
    coming = sorted(log.aborted_transactions(0, stable), key=lambda one: one.first_offset)
    aborted: set[int] = set()
    found = []
    for header, batch in batches(log):
        if header.base_offset >= stable:
            break
        while coming and coming[0].first_offset <= header.last_offset:
            aborted.add(coming.pop(0).producer_id)
        if header.is_control:
            marker = read_marker(batch)
            if marker is not None and marker.is_abort:
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            found += [
                Stored(record.offset, record.key, record.value, record.timestamp)
                for record in iterate_records(batch)
            ]
    return found


def values(records: list[Stored]) -> dict[str, str]:
    """The last value of each key; a key whose last record is a tombstone is absent."""
    last = {one.key: one.value for one in records if one.key is not None}
    return {
        key.decode(): value.decode(errors="replace")
        for key, value in last.items()
        if value is not None and key != b"filler"
    }
