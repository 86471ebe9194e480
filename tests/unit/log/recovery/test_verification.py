"""The background verification finds batches that were damaged at rest, anywhere in a log."""

from collections.abc import Iterator

from tests.unit.log.support import DIRECTORY, append, batch, flush, open_log, run, verify

from tidelog.log.partition import PartitionLog
from tidelog.log.recovery.verification import SLICE_BATCHES
from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.disk import SimDisk

BATCHES = 120


def reopened(flipped: int | None = None) -> PartitionLog:
    """A log of many segments after a clean shutdown, with one flipped bit in its second segment."""
    disk = SimDisk()
    log = open_log(disk)
    for number in range(BATCHES):
        append(log, batch(2), epoch=1 + number // 50)
    flush(log)
    log.close()
    second = sorted(name for name in disk.list(DIRECTORY) if name.endswith(".log"))[1]
    if flipped is not None:
        disk.flip_bit(f"{DIRECTORY}/{second}", 8 * flipped)
    return open_log(disk, clean=True, recovery_point=2 * BATCHES)


def test_a_sound_log_is_read_once_and_nothing_is_found() -> None:
    log = reopened()
    assert verify(log) >= BATCHES // SLICE_BATCHES
    assert log.begin_verification() is None
    assert log.damages == ()
    assert log.take_notes() == []


def test_f54_a_bit_that_flipped_in_the_middle_of_an_old_segment_is_found() -> None:
    log = reopened(flipped=1_000)
    assert log.damages == (), "opening the log does not read that far"
    verify(log)
    [damage] = log.damages
    assert any("cannot be read" in note for note in log.take_notes())
    assert log.read(damage.first_offset, 1 << 20, 999, at_least_one=True) is (
        ErrorCode.corrupt_message
    )


def test_f54_a_leader_epoch_that_no_checksum_covers_is_found() -> None:
    for epoch_byte in epoch_bytes():
        log = reopened(flipped=epoch_byte)
        verify(log)
        assert log.damages, epoch_byte


def epoch_bytes() -> Iterator[int]:
    """The positions of the leader epochs in the first batches of a segment."""
    size = len(batch(2))
    for number in range(3):
        yield from range(number * size + 12, number * size + 16)


def test_what_was_cut_meanwhile_is_not_reported() -> None:
    log = reopened(flipped=1_000)
    verification = log.begin_verification()
    assert verification is not None
    job = verification.next_slice()
    log.truncate_to(5, 0)
    assert job is not None
    verification.take(run(job))
    while (following := verification.next_slice()) is not None:
        verification.take(run(following))
    log.found_broken(60)
    assert log.damages == ()


def test_what_this_run_wrote_is_not_read_again() -> None:
    log = open_log(SimDisk())
    append(log, batch(2))
    assert log.begin_verification() is None
