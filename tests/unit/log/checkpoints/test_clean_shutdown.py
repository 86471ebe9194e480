"""The clean-shutdown mark is removed right before the first change to a log (F17)."""

from collections.abc import Callable
from uuid import UUID

import pytest
from tests.unit.log.support import NOW, SMALL, append, batch, replicated

from tidelog.log.checkpoints.clean_shutdown import CleanShutdown, CleanShutdownMark
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.model.ids import METADATA_TOPIC, METADATA_TOPIC_ID, TopicPartition
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
METADATA = TopicPartition(METADATA_TOPIC, 0)
ID, RUN = UUID(int=5), UUID(int=8)
MARK = ".kafka_cleanshutdown"


def opened(disk: SimDisk) -> LogDirectory:
    return LogDirectory(disk, SeededDice(1))


def stopped(epoch: int = 9) -> SimDisk:
    """The directory of a broker that has shut down cleanly."""
    disk = SimDisk()
    directory = opened(disk)
    for partition in (A, B):
        log = directory.open(partition, ID, SMALL, NOW)
        for _ in range(30):
            append(log, batch(size=100))
    directory.close({A: 30, B: 30}, epoch)
    return disk


def by_time(log: PartitionLog) -> None:
    """Apply retention by time, which deletes only after batch headers confirm the time index."""
    log.apply_retention(NOW + 10**12, log.log_end_offset)
    log.repair_indexes()
    log.apply_retention(NOW + 10**12, log.log_end_offset)


def as_follower(log: PartitionLog) -> None:
    log.append_as_follower(replicated(log.log_end_offset, 1))


CHANGES: dict[str, Callable[[PartitionLog], object]] = {
    "append": append,
    "append as follower": as_follower,
    "truncate": lambda log: log.truncate_to(12, NOW),
    "truncate fully": lambda log: log.truncate_fully_and_start_at(99, NOW),
    "delete records": lambda log: log.advance_log_start(7),
    "retention": by_time,
}


def test_the_mark_is_kafkas() -> None:
    disk = SimDisk()
    mark = CleanShutdownMark(disk)
    assert mark.found == CleanShutdown(False)
    mark.set(77)
    assert disk.read_file(MARK) == b'{"version":0,"brokerEpoch":77}'
    assert CleanShutdownMark(disk).found == CleanShutdown(True, 77)
    assert CleanShutdownMark(disk).found == CleanShutdown(True, 77), "to look at it takes nothing"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"7",
        b"null",
        b"\xff\xfe",
        b'{"version":0}',
        b'{"brokerEpoch":true}',
        b'{"brokerEpoch":-3}',
        b'{"brokerEpoch":1e99}',
        b'{"brokerEpoch":9223372036854775808}',
    ],
)
def test_a_mark_that_names_no_epoch_proves_none(content: bytes) -> None:
    disk = SimDisk()
    disk.write_file(MARK, content)
    assert CleanShutdownMark(disk).found == CleanShutdown(True, -1)


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("seed", range(5))
def test_f17_the_mark_is_durably_gone_before_a_log_changes(change: str, seed: int) -> None:
    disk = stopped()
    log = opened(disk).open(A, ID, SMALL, NOW)
    CHANGES[change](log)
    disk.crash(SeededDice(seed))
    assert opened(disk).clean_mark.found == CleanShutdown(False)


@pytest.mark.parametrize("seed", range(5))
def test_f17_the_mark_goes_before_a_partition_is_deleted(seed: int) -> None:
    disk = stopped()
    opened(disk).delete(A, NOW, 0)
    disk.crash(SeededDice(seed))
    assert not opened(disk).clean_shutdown


@pytest.mark.parametrize("seed", range(5))
def test_f17_the_mark_goes_before_a_damaged_log_is_cut(seed: int) -> None:
    disk = stopped()
    name = [name for name in disk.list(str(A)) if name.endswith(".log")][-1]
    file = disk.open(f"{A}/{name}")
    file.truncate(file.size - 10)
    file.sync()
    log = opened(disk).open(A, ID, SMALL, NOW)
    assert log.recovery.notes
    disk.crash(SeededDice(seed))
    assert not opened(disk).clean_shutdown


@pytest.mark.parametrize("seed", range(5))
def test_a_start_that_changes_no_data_leaves_the_mark(seed: int) -> None:
    disk = stopped()
    directory = opened(disk)
    for partition in (A, B):
        directory.open(partition, ID, SMALL, NOW).assign_epoch(7, 30)
    append(directory.open(METADATA, METADATA_TOPIC_ID, SMALL, NOW))
    directory.write_checkpoints({A: 30})
    disk.crash(SeededDice(seed))
    again = opened(disk)
    assert again.clean_mark.found == CleanShutdown(True, 9)
    assert [again.open(p, ID, SMALL, NOW).log_end_offset for p in (A, B)] == [30, 30]


def test_the_metadata_log_is_checked_even_after_a_clean_stop() -> None:
    disk = SimDisk()
    directory = opened(disk)
    append(directory.open(METADATA, METADATA_TOPIC_ID, SMALL, NOW))
    directory.close({})
    log = opened(disk).open(METADATA, METADATA_TOPIC_ID, SMALL, NOW)
    assert log.recovery.scanned_bytes == log.size > 0


def test_a_run_that_was_never_registered_leaves_the_mark_that_it_found() -> None:
    disk = stopped(epoch=9)
    directory = opened(disk)
    directory.clean_mark.note_registration(9, RUN)
    directory.close({})
    assert opened(disk).clean_mark.found == CleanShutdown(True, 9, RUN)


def test_a_run_that_was_registered_and_changed_nothing_stops_in_its_own_epoch() -> None:
    disk = stopped(epoch=9)
    directory = opened(disk)
    directory.clean_mark.note_registration(9, RUN)
    directory.close({}, 12)
    assert opened(disk).clean_mark.found == CleanShutdown(True, 12)


def test_f11_a_stop_before_every_log_was_checked_is_not_clean() -> None:
    """A log that was not opened after the kill may be damaged, so the next start must check it."""
    disk = SimDisk()
    directory = opened(disk)
    for partition in (A, B):
        append(directory.open(partition, ID, SMALL, NOW))
    disk.kill()

    directory = opened(disk)
    directory.open(A, ID, SMALL, NOW)
    directory.close({}, 12)
    directory = opened(disk)
    assert not directory.clean_shutdown
    assert directory.open(B, ID, SMALL, NOW).recovery.scanned_bytes > 0

    directory.open(A, ID, SMALL, NOW)
    directory.close({}, 13)
    assert opened(disk).clean_mark.found == CleanShutdown(True, 13)
