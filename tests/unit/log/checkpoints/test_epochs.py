"""Leader epochs: their start and end offsets, and their state after a restart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.log.support import DIRECTORY, NOW, append, batch, flush, new_log, open_log

from tidelog.log.checkpoints.checkpoints import encode_epochs, read_epochs
from tidelog.log.checkpoints.epochs import LeaderEpochs
from tidelog.model.effects import EpochEnd
from tidelog.sim.machines.disk import SimDisk

PATH = f"{DIRECTORY}/leader-epoch-checkpoint"
UNKNOWN = EpochEnd(-1, -1)


def epochs(*starts: tuple[int, int]) -> LeaderEpochs:
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    cache = LeaderEpochs(disk, DIRECTORY, is_on_disk=True)
    for epoch, start in starts:
        cache.assign(epoch, start)
    return cache


def test_an_epoch_ends_where_the_next_begins() -> None:
    cache = epochs((2, 0), (5, 10), (6, 30))
    assert cache.end(2, 50) == EpochEnd(2, 10)
    assert cache.end(5, 50) == EpochEnd(5, 30)
    assert cache.end(6, 50) == EpochEnd(6, 50)


def test_an_epoch_between_two_known_ones_answers_with_the_older() -> None:
    cache = epochs((2, 0), (5, 10))
    assert cache.end(3, 50) == EpochEnd(2, 10)


def test_an_epoch_before_all_known_ones_ends_where_they_begin() -> None:
    assert epochs((2, 7)).end(1, 50) == EpochEnd(1, 7)


def test_unknown_epochs_say_so() -> None:
    assert epochs((2, 7)).end(3, 50) == UNKNOWN
    assert epochs((2, 7)).end(-1, 50) == UNKNOWN
    assert epochs().end(0, 50) == UNKNOWN


def test_f06_an_epoch_without_records_is_kept() -> None:
    log = new_log()
    append(log, batch(10), epoch=1)
    log.assign_epoch(2, 10)
    assert log.latest_epoch == 2
    assert log.epoch_end(1) == EpochEnd(1, 10)
    assert log.epoch_end(2) == EpochEnd(2, 10)
    # Epoch 3 begins at the same offset, so it replaces the empty epoch 2.
    log.assign_epoch(3, 10)
    assert log.epoch_end(2) == EpochEnd(1, 10)
    assert log.epoch_end(3) == EpochEnd(3, 10)


def test_the_epoch_of_an_offset() -> None:
    cache = epochs((2, 5), (5, 10))
    assert [cache.at(offset) for offset in (4, 5, 9, 10, 99)] == [-1, 2, 2, 5, 5]


def test_the_epoch_of_an_offset_is_never_one_without_records_that_the_file_has_dropped() -> None:
    cache = epochs((2, 5), (5, 10))
    cache.close(10)
    assert cache.at(9) == 2
    assert cache.at(10) == 2


def test_truncation_from_the_end_forgets_epochs_that_begin_there() -> None:
    cache = epochs((2, 0), (5, 10), (6, 30))
    cache.truncate_from_end(30)
    assert cache.entries == ((2, 0), (5, 10))
    assert cache.latest == 5
    cache.truncate_from_end(0)
    assert not cache.entries
    assert cache.latest == -1


def test_truncation_from_the_start_moves_the_epoch_in_force() -> None:
    cache = epochs((2, 0), (5, 10), (6, 30))
    cache.truncate_from_start(20)
    assert cache.entries == ((5, 20), (6, 30))
    cache.truncate_from_start(20)
    cache.truncate_from_start(3)
    assert cache.entries == ((5, 20), (6, 30))


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 100)), max_size=40))
def test_whatever_is_assigned_epochs_and_starts_grow(starts: list[tuple[int, int]]) -> None:
    cache = epochs(*starts)
    assert list(cache.entries) == sorted(set(cache.entries))
    assert len({start for _, start in cache.entries}) == len(cache.entries)
    assert len({epoch for epoch, _ in cache.entries}) == len(cache.entries)


def test_the_file_is_kafkas() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, batch(3), epoch=4)
    append(log, batch(3), epoch=7)
    assert disk.read_file(PATH) == b"0\n2\n4 0\n7 3\n"


@given(st.binary(max_size=60))
def test_f08_no_bytes_keep_the_epochs_from_loading(garbage: bytes) -> None:
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    disk.write_file(PATH, garbage)
    LeaderEpochs(disk, DIRECTORY, is_on_disk=True)


@given(st.integers(0, 100))
def test_f08_a_torn_file_is_believed_up_to_the_tear(cut: int) -> None:
    whole = encode_epochs([(1, 0), (4, 100), (9, 250)])
    disk = SimDisk()
    disk.write_file(PATH.rpartition("/")[2], whole[:cut])
    starts, was_sound = read_epochs(disk, PATH.rpartition("/")[2])
    assert starts == [(1, 0), (4, 100), (9, 250)][: len(starts)]
    assert was_sound == (cut >= len(whole))


@pytest.mark.parametrize("content", [b"", b"\0\0\0\0", b"0\n3\n1 0\n", b"0\n1\n1 0", b"rubbish"])
@pytest.mark.parametrize("clean", [False, True])
def test_f08_a_torn_epoch_file_is_read_anew_from_the_batches(content: bytes, clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk)
    for epoch in (1, 4, 9):
        for _ in range(40):
            append(log, batch(size=100), epoch=epoch)
    log.close()
    disk.write_file(PATH, content)

    log = open_log(disk, clean=clean, recovery_point=log.log_end_offset)
    assert [log.epoch_end(epoch) for epoch in (1, 4, 9)] == [
        EpochEnd(1, 40),
        EpochEnd(4, 80),
        EpochEnd(9, 120),
    ]
    assert any("epochs" in note for note in log.recovery.notes)
    assert read_epochs(disk, PATH).starts == [(1, 0), (4, 40), (9, 80)]


def test_an_epoch_file_that_is_only_old_is_completed_after_a_crash() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for epoch in (1, 4, 9):
        for _ in range(40):
            append(log, batch(size=100), epoch=epoch)
    flush(log)
    disk.write_file(PATH, b"0\n1\n1 0\n")

    log = open_log(disk, recovery_point=log.log_end_offset)
    assert [log.epoch_end(epoch).end_offset for epoch in (1, 4, 9)] == [40, 80, 120]


def test_epochs_past_the_log_end_are_forgotten_at_load() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log, batch(5), epoch=1)
    log.assign_epoch(6, 5)
    log.close()
    # An epoch without records could make this log look newer in an election.
    assert open_log(disk, clean=True).latest_epoch == 1


def test_the_log_start_takes_older_epochs_with_it() -> None:
    log = new_log()
    append(log, batch(10), epoch=1)
    append(log, batch(10), epoch=2)
    log.advance_log_start(12)
    assert log.epoch_at(12) == 2
    assert log.epoch_end(1) == EpochEnd(1, 12)


def test_a_truncated_epoch_is_gone() -> None:
    log = new_log()
    append(log, batch(10), epoch=1)
    append(log, batch(10), epoch=2)
    log.truncate_to(10, NOW)
    assert log.latest_epoch == 1
    assert log.epoch_end(2) == UNKNOWN


def test_an_epoch_is_written_with_its_first_record_and_not_before() -> None:
    """Loading drops an epoch without records, so writing it before its first record is useless."""
    disk = SimDisk()
    log = open_log(disk)

    log.assign_epoch(3, 0)
    assert log.latest_epoch == 3
    assert not disk.exists(PATH)
    append(log, epoch=3)

    assert disk.read_file(PATH) == b"0\n1\n3 0\n"
