"""A killed process loses no write, so recovery does not truncate a log at a damaged batch (F47)."""

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.damage import CONFIG, Written, consume, is_reported, written
from tests.unit.log.support import DIRECTORY, NOW, SMALL, append, batch, open_log

from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.batch import iterate
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

PARTITION = TopicPartition("orders", 0)
ID = UUID(int=5)
BATCHES = 30


def places(disk: SimDisk) -> list[tuple[str, int, int]]:
    """The file, the position and the size of every batch."""
    logs = [f"{DIRECTORY}/{name}" for name in disk.list(DIRECTORY) if name.endswith(".log")]
    return [
        (path, at, header.size) for path in logs for at, header in iterate(disk.read_file(path))
    ]


def lost_of(log: PartitionLog, wrote: Written) -> set[int]:
    return set(wrote.batches) - consume(log, wrote).batches


@settings(deadline=None)
@given(st.integers(0, 39), st.integers(0, 1 << 20), st.integers(0, 100))
def test_f47_a_flipped_bit_past_the_recovery_point_costs_one_batch(
    number: int, bit: int, percent: int
) -> None:
    wrote = written(clean=False)
    path, at, size = places(wrote.disk)[number]
    wrote.disk.flip_bit(path, 8 * at + bit % (8 * size))

    recovery_point = sorted(wrote.batches)[number] * percent // 100
    log = open_log(wrote.disk, CONFIG, killed=True, recovery_point=recovery_point)

    lost = lost_of(log, wrote)
    assert len(lost) <= 1
    assert is_reported(log) or not lost


def test_after_a_power_loss_a_log_ends_at_invalid_bytes_past_its_recovery_point() -> None:
    wrote = written(clean=False)
    path, at, _ = places(wrote.disk)[20]
    wrote.disk.flip_bit(path, 8 * (at + 70))

    log = open_log(wrote.disk, CONFIG, recovery_point=0)

    assert len(lost_of(log, wrote)) == 20
    assert log.recovery.truncated_bytes


def test_an_append_that_a_kill_has_torn_is_cut_off() -> None:
    wrote = written(clean=False)
    path, at, size = places(wrote.disk)[-1]
    wrote.disk.rot(path, wrote.disk.read_file(path)[: at + size // 2])

    log = open_log(wrote.disk, CONFIG, killed=True, recovery_point=0)

    assert log.recovery.damages == ()
    assert log.log_end_offset == max(wrote.batches)
    assert append(log, epoch=9).base_offset == max(wrote.batches)


def test_f47_leader_epochs_that_are_missing_after_a_kill_are_reported() -> None:
    wrote = written(clean=False)
    wrote.disk.remove(f"{DIRECTORY}/leader-epoch-checkpoint")

    log = open_log(wrote.disk, CONFIG, killed=True, recovery_point=0)

    assert any("leader epochs are missing" in note for note in log.recovery.notes)


# -- how a log directory knows whether the process was killed or the machine rebooted


def started(disk: SimDisk, *, is_all_open: bool = True) -> PartitionLog:
    """Open the directory and its partition as a node does."""
    directory = LogDirectory(disk, SeededDice(1))
    log = directory.open(PARTITION, ID, SMALL, NOW)
    if is_all_open:
        directory.opened_all()
    return log


def filled(log: PartitionLog) -> None:
    for _ in range(BATCHES):
        append(log, batch(size=100))


def end_after_damage(disk: SimDisk) -> int:
    """Damage a batch in the middle, open the log again, and return its end offset."""
    disk.kill()
    path, at, _ = places(disk)[BATCHES // 2]
    disk.flip_bit(path, 8 * (at + 70))
    return started(disk).log_end_offset


def crash(disk: SimDisk) -> None:
    disk.sync_all()
    disk.crash(SeededDice(1))


def test_f47_a_node_that_was_killed_keeps_what_lies_behind_the_damage() -> None:
    disk = SimDisk()
    filled(started(disk))

    assert end_after_damage(disk) == BATCHES


def test_a_machine_that_has_booted_may_have_lost_writes() -> None:
    disk = SimDisk()
    filled(started(disk))
    crash(disk)

    assert end_after_damage(disk) == BATCHES // 2


@pytest.mark.parametrize("is_all_open", [False, True])
def test_a_boot_counts_once_every_log_has_been_recovered_in_it(is_all_open: bool) -> None:
    disk = SimDisk()
    filled(started(disk))
    crash(disk)
    started(disk, is_all_open=is_all_open)

    assert end_after_damage(disk) == (BATCHES if is_all_open else BATCHES // 2)


def test_a_clean_stop_before_a_boot_counts_as_whole() -> None:
    disk = SimDisk()
    directory = LogDirectory(disk, SeededDice(1))
    filled(directory.open(PARTITION, ID, SMALL, NOW))
    directory.close({})
    crash(disk)
    append(started(disk, is_all_open=False), batch(size=100))

    assert end_after_damage(disk) == BATCHES + 1


def test_a_machine_without_a_boot_id_counts_as_one_that_has_booted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SimDisk, "boot_id", lambda _: None)
    disk = SimDisk()
    filled(started(disk))

    assert end_after_damage(disk) == BATCHES // 2
