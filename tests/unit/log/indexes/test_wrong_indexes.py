"""If an index is wrong, reads scan the batches, and the index is rebuilt and reported."""

from dataclasses import replace

import pytest
from tests.unit.log.damage import CONFIG, Written, consume, written
from tests.unit.log.support import DIRECTORY, NOW, append, batch, open_log

from tidelog.log.partition import PartitionLog
from tidelog.sim.machines.disk import SimDisk

DAY = 24 * 3_600_000


def indexes(disk: SimDisk, suffix: str) -> list[str]:
    names = [name for name in disk.list(DIRECTORY) if name.endswith(suffix)]
    return [f"{DIRECTORY}/{name}" for name in names if disk.size(f"{DIRECTORY}/{name}")]


def opened(wrote: Written) -> PartitionLog:
    return open_log(wrote.disk, CONFIG, clean=True, recovery_point=wrote.end)


def repaired(log: PartitionLog) -> list[str]:
    while not log.repair_indexes():
        pass
    return [*log.recovery.notes, *log.take_notes()]


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("bit", [0, 7, 24, 31, 32, 39, 63])
def test_f55_no_bit_of_an_index_makes_a_record_unreadable(suffix: str, bit: int) -> None:
    """Bit 7 is the first key's sign; in an offset index, bit 39 is the sign of the position."""
    for number, _ in enumerate(indexes(written().disk, suffix)):
        wrote = written()
        path = indexes(wrote.disk, suffix)[number]
        wrote.disk.flip_bit(path, bit)
        wrote.disk.kill()
        assert consume(opened(wrote), wrote) == (set(wrote.batches), set())


@pytest.mark.parametrize("damage", ["garbage", "empty", "absent", "directory", "cut"])
def test_f55_a_wrong_offset_index_is_rebuilt_as_it_was_and_reported(damage: str) -> None:
    wrote = written(200)
    path = indexes(wrote.disk, ".index")[1]
    was = wrote.disk.read_file(path)
    if damage == "garbage":
        wrote.disk.write_file(path, b"\xff\x01" * (len(was) // 2))
    elif damage == "cut":
        wrote.disk.write_file(path, was[: len(was) // 2 + 3])
    else:
        wrote.disk.remove(path)
    if damage == "empty":
        wrote.disk.write_file(path, b"")
    if damage == "directory":
        wrote.disk.make_directory(path)
    log = opened(wrote)
    assert consume(log, wrote) == (set(wrote.batches), set())
    reported = repaired(log)
    assert consume(log, wrote) == (set(wrote.batches), set())
    if damage != "cut":
        assert any("index" in note for note in reported), reported
        assert wrote.disk.read_file(path) == was


def test_f55_a_log_with_a_wrong_index_takes_records_and_cuts_as_before() -> None:
    wrote = written(200)
    for path in indexes(wrote.disk, ".index"):
        wrote.disk.write_file(path, b"\x80" * wrote.disk.size(path))
    log = opened(wrote)
    log.truncate_to(wrote.end // 2, NOW)
    assert wrote.end // 2 - 3 <= log.log_end_offset <= wrote.end // 2
    end = log.log_end_offset
    assert append(log, epoch=9).base_offset == end
    log.close()
    again = open_log(wrote.disk, CONFIG, clean=True, recovery_point=end + 1)
    assert again.log_end_offset == end + 1


@pytest.mark.parametrize("damage", ["flip", "garbage", "absent", "older"])
def test_f56_a_wrong_time_index_does_not_let_live_records_be_deleted(damage: str) -> None:
    config = replace(CONFIG, retention_ms=DAY)
    wrote = written()
    for path in indexes(wrote.disk, ".timeindex"):
        was = wrote.disk.read_file(path)
        if damage == "flip":
            wrote.disk.flip_bit(path, 8 * (len(was) - 12 + 2))  # makes the last timestamp older
        elif damage == "garbage":
            wrote.disk.write_file(path, b"\0\0\0\0\0\0\0\1\0\0\0\1" * (len(was) // 12))
        elif damage == "absent":
            wrote.disk.remove(path)
        else:
            wrote.disk.write_file(path, was[:12])
    wrote.disk.kill()
    log = open_log(wrote.disk, config, clean=True, recovery_point=wrote.end)
    for _ in range(3):
        assert log.apply_retention(NOW + DAY // 2, log.log_end_offset) == []
        while not log.repair_indexes():
            pass
    assert consume(log, wrote).batches == set(wrote.batches)
    assert damage in ("older", "absent") or any("time index" in note for note in log.take_notes())


def test_f56_retention_by_time_goes_on_once_the_headers_have_confirmed_it() -> None:
    config = replace(CONFIG, retention_ms=DAY)
    wrote = written()
    log = open_log(wrote.disk, config, clean=True, recovery_point=wrote.end)
    later = NOW + 2 * DAY
    assert log.apply_retention(later, log.log_end_offset) == []
    deleted: list[int] = []
    while log.retention_waits:
        while not log.repair_indexes():
            pass
        deleted += log.apply_retention(later, log.log_end_offset)
    assert len(deleted) > 3
    assert log.log_start_offset == log.log_end_offset == wrote.end


def test_f56_timestamps_from_the_future_delete_nothing() -> None:
    log = open_log(
        SimDisk(), replace(CONFIG, retention_ms=DAY, message_timestamp_after_max_ms=1 << 60)
    )
    for _ in range(30):
        append(log, batch(timestamp=NOW + 1_000 * DAY, size=200))
    assert log.apply_retention(NOW + 900 * DAY, 30) == []
