"""Support for tests of the log: batches, a log on a simulated disk, and simple reads."""

from collections.abc import Callable
from typing import TypeVar, cast

from tidelog.log.checkpoints.last_stop import LastStop
from tidelog.log.config import LogConfig
from tidelog.log.indexes.timestamps import Found
from tidelog.log.partition import PartitionLog
from tidelog.log.recovery import wrong_file_types
from tidelog.log.results import Appended, ReadResult
from tidelog.model.disk import Disk
from tidelog.model.errors import ErrorCode
from tidelog.model.jobs import Job
from tidelog.protocol.records.batch import BatchHeader, iterate
from tidelog.protocol.records.records import ControlType, Record, build_batch, control_key
from tidelog.sim.machines.disk import SimDisk

T = TypeVar("T")

DIRECTORY = "orders-0"
NOW = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=4_000, index_interval_bytes=300, max_message_bytes=4_000)
"""A configuration with which little data makes many segments and index entries."""


def batch(
    count: int = 1,
    *,
    size: int = 20,
    timestamp: int = NOW,
    producer: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    compression: str = "none",
) -> memoryview:
    """A client's batch of `count` records with values of `size` bytes."""
    records = [Record(b"key", bytes(size), timestamp + n) for n in range(count)]
    return memoryview(
        bytearray(
            build_batch(
                records,
                producer_id=producer,
                producer_epoch=epoch,
                base_sequence=sequence,
                is_transactional=transactional,
                compression=compression,
            )
        )
    )


def marker(producer: int, epoch: int, *, abort: bool, coordinator_epoch: int = 0) -> memoryview:
    """The control batch that ends a transaction."""
    kind = ControlType.ABORT if abort else ControlType.COMMIT
    value = (0).to_bytes(2, "big") + coordinator_epoch.to_bytes(4, "big")
    return memoryview(
        bytearray(
            build_batch(
                [Record(control_key(kind), value, NOW)],
                producer_id=producer,
                producer_epoch=epoch,
                is_transactional=True,
                is_control=True,
            )
        )
    )


def replicated(
    base_offset: int, epoch: int, count: int = 1, *, size: int = 20, timestamp: int = NOW
) -> memoryview:
    """A batch as a follower receives it, with assigned offsets and epoch."""
    records = [Record(b"key", bytes(size), timestamp + n) for n in range(count)]
    return memoryview(bytearray(build_batch(records, base_offset, leader_epoch=epoch)))


def open_log(
    disk: Disk,
    config: LogConfig = SMALL,
    *,
    clean: bool = False,
    killed: bool = False,
    recovery_point: int = 0,
    log_start: int = 0,
    lower_recovery_point: Callable[[int], None] = lambda offset: None,
) -> PartitionLog:
    """Open a log as its log directory does."""
    wrong_file_types.clear(disk)
    last_stop = LastStop.KILLED if killed else LastStop.UNKNOWN
    return PartitionLog.open(
        disk,
        DIRECTORY,
        config,
        NOW,
        last_stop=LastStop.CLEAN if clean else last_stop,
        recovery_point=recovery_point,
        log_start_offset=log_start,
        lower_recovery_point=lower_recovery_point,
    )


def new_log(config: LogConfig = SMALL) -> PartitionLog:
    return open_log(SimDisk(), config)


def append(log: PartitionLog, records: memoryview | None = None, epoch: int = 1) -> Appended:
    """Append records as leader, and assert that the log accepts them."""
    appended = log.append_as_leader(batch() if records is None else records, epoch, NOW)
    assert isinstance(appended, Appended), appended
    return appended


def flush(log: PartitionLog) -> None:
    files, up_to = log.begin_flush(NOW)
    for file in files:
        file.sync()
    log.flushed(up_to)


def raw(log: PartitionLog, offset: int | None = None, limit: int | None = None) -> bytes:
    """All bytes from `offset` to `limit`, read as a consumer does."""
    offset = log.log_start_offset if offset is None else offset
    limit = log.log_end_offset if limit is None else limit
    found = bytearray()
    while offset < limit:
        result = log.read(offset, 1 << 20, limit, at_least_one=True)
        assert isinstance(result, ReadResult), result
        if result.slice is None:
            break
        file, position, length = result.slice
        chunk = file.read(position, length)
        assert len(chunk) == length
        found += chunk
        offset = list(iterate(chunk))[-1][1].next_offset
    return bytes(found)


def headers(log: PartitionLog) -> list[BatchHeader]:
    return [header for _, header in iterate(raw(log))]


def base_offsets(log: PartitionLog) -> list[int]:
    return [header.base_offset for header in headers(log)]


def run(job: Job[T]) -> T:
    """Run a job at once, and return its result."""
    steps = job.run()
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return cast(T, done.value)


def verify(log: PartitionLog) -> int:
    """Run the background verification; return the number of its slices."""
    verification = log.begin_verification()
    assert verification is not None
    slices = 0
    while (job := verification.next_slice()) is not None:
        result = run(job)
        verification.take(result)
        if result.is_broken:
            log.found_broken(result.offset)
        slices += 1
    return slices


def offset_for_timestamp(log: PartitionLog, timestamp: int, limit: int) -> Found:
    """Search by time as the node does, segment by segment."""
    search = log.search_by_time(timestamp, limit)
    while search is not None:
        if isinstance(search, ErrorCode):
            return search
        found = run(search)
        if found is not None or search.next_offset >= limit:
            return found
        search = log.search_by_time(timestamp, limit, search.next_offset)
    return None


def max_timestamp_offset(log: PartitionLog, limit: int) -> Found:
    search = log.search_newest(limit)
    return search if search is None or isinstance(search, ErrorCode) else run(search)
