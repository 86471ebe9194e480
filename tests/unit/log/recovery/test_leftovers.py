"""Files that an interrupted deletion or compaction left behind."""

from dataclasses import replace

import pytest
from tests.unit.log.support import DIRECTORY, NOW, SMALL, append, base_offsets, batch, open_log

from tidelog.log.recovery import leftovers
from tidelog.protocol.records.records import Record, build_batch
from tidelog.sim.machines.disk import SimDisk

COMPACTED = replace(SMALL, cleanup_policy=frozenset({"compact"}))


def filled() -> tuple[SimDisk, list[int]]:
    """A closed log with several segments, and their base offsets."""
    disk = SimDisk()
    log = open_log(disk)
    for _ in range(90):
        append(log, batch(size=100))
    log.close()
    return disk, [int(name[:20]) for name in disk.list(DIRECTORY) if name.endswith(".log")]


def compacted(disk: SimDisk, base: int, end: int, suffix: str) -> None:
    """Write a range as compaction does: only its first and last record remain."""
    kept = [base, end - 1]
    content = b"".join(
        build_batch([Record(b"k", b"v", NOW)], offset, leader_epoch=1) for offset in kept
    )
    for kind, data in ((".log", content), (".index", b""), (".timeindex", b"")):
        disk.write_file(f"{DIRECTORY}/{base:020d}{kind}{suffix}", data)


def never() -> None:
    raise AssertionError("nothing of the log itself changes")


def test_nothing_to_clear() -> None:
    disk, _ = filled()
    before = disk.list(DIRECTORY)
    cleared = leftovers.clear(disk, DIRECTORY, never, is_compacted=True)
    assert cleared.names == before == disk.list(DIRECTORY)


def test_deleted_files_are_removed() -> None:
    disk, _ = filled()
    disk.write_file(f"{DIRECTORY}/{7:020d}.log.deleted", b"x")
    disk.write_file(f"{DIRECTORY}/{7:020d}.snapshot.deleted", b"x")
    found = leftovers.clear(disk, DIRECTORY, never, is_compacted=True)
    assert not any(name.endswith(".deleted") for name in found.names)


def test_a_finished_compaction_takes_its_place() -> None:
    disk, bases = filled()
    compacted(disk, bases[0], bases[2], ".swap")
    log = open_log(disk, COMPACTED)
    assert base_offsets(log)[:3] == [0, bases[2] - 1, bases[2]]
    assert log.log_end_offset == 90
    assert not any(name.endswith(".swap") for name in disk.list(DIRECTORY))
    assert not disk.exists(f"{DIRECTORY}/{bases[1]:020d}.log")


def test_an_unfinished_compaction_is_dropped() -> None:
    disk, bases = filled()
    compacted(disk, bases[0], bases[2], ".cleaned")
    log = open_log(disk, COMPACTED)
    assert base_offsets(log) == list(range(90))


def test_a_swap_beside_an_unfinished_compaction_is_dropped_too() -> None:
    disk, bases = filled()
    compacted(disk, bases[0], bases[1], ".cleaned")
    compacted(disk, bases[1], bases[2], ".swap")
    log = open_log(disk, COMPACTED)
    assert base_offsets(log) == list(range(90))
    assert not any(name.endswith((".swap", ".cleaned")) for name in disk.list(DIRECTORY))


@pytest.mark.parametrize("content", [b"", b"garbage" * 40, bytes(400)])
def test_f54_a_damaged_swap_does_not_take_the_place_of_sound_records(content: bytes) -> None:
    disk, bases = filled()
    compacted(disk, bases[0], bases[1], ".swap")
    disk.write_file(f"{DIRECTORY}/{bases[0]:020d}.log.swap", content)
    log = open_log(disk, COMPACTED)
    assert base_offsets(log) == list(range(90))
    assert any(".swap" in note for note in log.recovery.notes)
    assert disk.exists(f"{DIRECTORY}/{bases[0]:020d}.log.swap.set-aside")
