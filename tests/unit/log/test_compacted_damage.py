"""A log may have gaps only if a cleaner has processed it, whatever the topic's policy is (F54)."""

from dataclasses import replace
from uuid import UUID

import pytest
from tests.unit.log.damage import CONFIG, consume, is_reported, written
from tests.unit.log.support import DIRECTORY, NOW, append, base_offsets, batch, replicated

from tidelog.log.checkpoints.last_stop import LastStop
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended
from tidelog.model.ids import TopicPartition
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

COMPACTED = replace(CONFIG, cleanup_policy=frozenset({"compact"}))
ORDERS = TopicPartition("orders", 0)
TOPIC_ID = UUID(int=1)
CLEANER = "cleaner-offset-checkpoint"


def directory_on(disk: SimDisk) -> LogDirectory:
    return LogDirectory(disk, SeededDice(0))


def opened(disk: SimDisk) -> tuple[LogDirectory, PartitionLog]:
    directory = directory_on(disk)
    return directory, directory.open(ORDERS, TOPIC_ID, COMPACTED, NOW)


def segments_of(disk: SimDisk) -> list[str]:
    return [name for name in disk.list(DIRECTORY) if name.endswith(".log")]


def end(disk: SimDisk, directory: LogDirectory, log: PartitionLog, *, clean: bool) -> None:
    """Shut down cleanly, or kill a process whose log was flushed and checkpointed."""
    if clean:
        directory.close({}, 1)
    else:
        log.close()
        directory.write_checkpoints({}, durable=True)
    disk.sync_all()
    disk.kill()


def filled(*, clean: bool) -> SimDisk:
    disk = SimDisk()
    directory, log = opened(disk)
    for number in range(40):
        append(log, batch(2, size=100), epoch=1 + number // 20)
    end(disk, directory, log, clean=clean)
    return disk


def cleaned(*, clean: bool) -> SimDisk:
    """The log of a follower that has fetched all records from a leader with a compacted log."""
    disk = SimDisk()
    directory, log = opened(disk)
    for base in range(30, 400, 10):
        assert isinstance(log.append_as_follower(replicated(base, 1, 2, size=100)), Appended)
    end(disk, directory, log, clean=clean)
    return disk


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("suffixes", [(".log",), (".log", ".index", ".timeindex", ".snapshot")])
def test_f54_a_segment_that_is_missing_from_a_compacted_log_is_damage(
    clean: bool, which: int, suffixes: tuple[str, ...]
) -> None:
    disk = filled(clean=clean)
    lost = segments_of(disk)[which].removesuffix(".log")
    for suffix in suffixes:
        disk.remove(f"{DIRECTORY}/{lost}{suffix}")

    _, log = opened(disk)

    assert any(one.first_offset == int(lost) for one in log.recovery.damages), log.recovery
    assert not log.recovery.is_proven


@pytest.mark.parametrize("clean", [True, False])
def test_f54_an_emptied_segment_of_a_compacted_log_is_damage(clean: bool) -> None:
    disk = filled(clean=clean)
    disk.open(f"{DIRECTORY}/{segments_of(disk)[1]}").truncate(0)

    _, log = opened(disk)

    assert is_reported(log)
    assert not log.recovery.is_proven


@pytest.mark.parametrize("clean", [True, False])
def test_gaps_that_a_cleaner_made_are_no_damage(clean: bool) -> None:
    _, log = opened(cleaned(clean=clean))

    assert log.recovery.damages == ()
    assert log.recovery.is_proven or not clean
    assert base_offsets(log) == list(range(30, 400, 10))


def test_gaps_that_were_copied_since_the_last_checkpoint_are_no_damage() -> None:
    disk = SimDisk()
    _, log = opened(disk)
    for base in range(0, 400, 10):
        assert isinstance(log.append_as_follower(replicated(base, 1, 2, size=100)), Appended)
    disk.kill()

    _, log = opened(disk)

    assert base_offsets(log) == list(range(0, 400, 10))


def test_gaps_are_expected_where_the_record_of_the_cleaner_is_damaged() -> None:
    disk = cleaned(clean=True)
    disk.write_file(CLEANER, b"garbage")

    directory, log = opened(disk)

    assert any(CLEANER in note for note in directory.notes)
    assert log.recovery.damages == ()
    assert base_offsets(log) == list(range(30, 400, 10))


def test_a_cleaned_log_that_moves_to_another_directory_keeps_its_gaps() -> None:
    disk = SimDisk()
    directory = directory_on(disk)
    future = directory.open_future(ORDERS, COMPACTED, 0, NOW)
    for base in range(0, 400, 10):
        assert isinstance(future.append_as_follower(replicated(base, 1, 2, size=100)), Appended)

    log = directory.adopt(ORDERS, future, TOPIC_ID, NOW)

    assert log.recovery.damages == ()
    assert base_offsets(log) == list(range(0, 400, 10))


def test_f54_a_damaged_log_of_a_topic_that_became_compacted_says_so() -> None:
    wrote = written()
    wrote.disk.remove(f"{DIRECTORY}/{segments_of(wrote.disk)[2]}")

    log = PartitionLog.open(
        wrote.disk, DIRECTORY, COMPACTED, NOW, last_stop=LastStop.CLEAN, recovery_point=wrote.end
    )

    found = consume(log, wrote)
    assert set(wrote.batches) - found.batches <= found.errors


def test_a_compaction_that_is_completed_at_a_start_is_no_damage_at_the_next() -> None:
    disk = filled(clean=True)
    first, second = segments_of(disk)[:2]
    kept = replicated(int(first.removesuffix(".log")), 1)
    disk.write_file(f"{DIRECTORY}/{first}.swap", bytes(kept))
    opened(disk)
    disk.kill()

    _, log = opened(disk)

    assert log.recovery.damages == ()
    assert base_offsets(log)[:2] == [0, int(second.removesuffix(".log"))]
