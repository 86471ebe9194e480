"""After a crash the log is a prefix of the written log, and has all synced records."""

from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.log.support import (
    DIRECTORY,
    NOW,
    SMALL,
    append,
    base_offsets,
    batch,
    flush,
    headers,
    offset_for_timestamp,
    open_log,
    raw,
    replicated,
)

from tidelog.log.partition import PartitionLog
from tidelog.log.results import ReadResult
from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.batch import iterate
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

FIRST = f"{DIRECTORY}/{0:020d}.log"
ONE_SEGMENT = replace(SMALL, segment_bytes=1 << 20)


class Step(NamedTuple):
    kind: str
    size: int


steps = st.lists(
    st.builds(
        Step,
        st.sampled_from(
            ["append", "append", "append", "append", "flush", "checkpoint", "truncate"]
        ),
        st.integers(0, 3_500),
    ),
    max_size=40,
)


class Broker:
    """A log with the recovery point that a broker stores for it."""

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.checkpoint = 0
        self.epoch = 1
        self.log: PartitionLog = open_log(disk, lower_recovery_point=self._lower)

    def _lower(self, offset: int) -> None:
        self.checkpoint = min(self.checkpoint, offset)

    def take(self, step: Step) -> None:
        match step.kind:
            case "append":
                append(self.log, batch(1 + step.size % 3, size=step.size // 3), self.epoch)
            case "flush":
                flush(self.log)
            case "checkpoint":
                self.checkpoint = self.log.recovery_point
            case "truncate":
                self.log.truncate_to(step.size % (self.log.log_end_offset + 1), NOW)
                self.epoch += 1

    def crash(self, seed: int) -> None:
        self.disk.crash(SeededDice(seed))
        self.log = open_log(
            self.disk, recovery_point=self.checkpoint, lower_recovery_point=self._lower
        )


def check_sound(log: PartitionLog) -> None:
    """Check that offsets have no gaps, epochs match the batches, and every offset is readable."""
    found = headers(log)
    following = log.log_start_offset
    for header in found:
        assert header.base_offset == following
        following = header.next_offset
        assert log.epoch_at(header.base_offset) == header.leader_epoch
    assert following == log.log_end_offset
    for header in found:
        result = log.read(header.last_offset, 1, log.log_end_offset, at_least_one=True)
        assert isinstance(result, ReadResult)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(steps, st.integers(0, 1 << 30)), min_size=1, max_size=3))
def test_f47_power_loss_at_any_moment(lives: list[tuple[list[Step], int]]) -> None:
    broker = Broker(SimDisk())
    for life, seed in lives:
        for step in life:
            broker.take(step)
        written, synced = raw(broker.log), broker.log.recovery_point
        broker.crash(seed)
        log = broker.log
        assert log.recovery.damages == ()
        assert log.log_end_offset >= synced
        assert written.startswith(raw(log))
        check_sound(log)


@settings(deadline=None, max_examples=100)
@given(steps, st.integers(0, 1 << 30), st.integers(0, 1 << 30))
def test_f11_what_recovery_lets_be_read_does_not_vanish(
    life: list[Step], first: int, second: int
) -> None:
    broker = Broker(SimDisk())
    for step in life:
        broker.take(step)
    broker.crash(first)
    readable = raw(broker.log)
    broker.crash(second)
    assert raw(broker.log) == readable


def test_f11_pages_that_survived_only_the_process_are_synced_before_they_are_read() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for _ in range(100):
        append(log, batch(size=100))
    written = raw(log)
    disk.sync_directory("")
    # After a kill the page cache still has every unsynced byte.
    disk.kill()
    assert raw(open_log(disk)) == written
    for seed in range(20):
        disk.crash(SeededDice(seed))
        assert raw(open_log(disk)) == written


@settings(deadline=None, max_examples=80)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=12), st.integers(0, 4_000))
def test_a_file_cut_at_any_byte_ends_at_the_last_whole_batch(sizes: list[int], cut: int) -> None:
    disk = SimDisk()
    log = open_log(disk, ONE_SEGMENT)
    ends = [0]
    for size in sizes:
        append(log, batch(size=size))
        ends.append(log.size)
    cut = min(cut, log.size)
    disk.open(FIRST).truncate(cut)

    log = open_log(disk, ONE_SEGMENT)
    assert log.size == max(end for end in ends if end <= cut)
    assert log.log_end_offset == sum(end <= cut for end in ends) - 1
    check_sound(log)


@settings(deadline=None, max_examples=80)
@given(st.lists(st.integers(0, 300), min_size=1, max_size=12), st.integers(0, 1 << 20))
@example([64, 105, 28], 767_614)  # the base offset becomes larger than an index can hold
def test_a_flipped_bit_past_the_recovery_point_ends_the_log_before_it(
    sizes: list[int], bit: int
) -> None:
    disk = SimDisk()
    log = open_log(disk, ONE_SEGMENT)
    starts = []
    for size in sizes:
        starts.append(log.size)
        append(log, batch(size=size))
    written = raw(log)
    bit %= log.size * 8
    disk.flip_bit(FIRST, bit)

    log = open_log(disk, ONE_SEGMENT)
    struck = max(number for number, start in enumerate(starts) if start <= bit // 8)
    field = bit // 8 - starts[struck]
    if field < 8 or 12 <= field < 16:
        # The checksum does not cover offset and epoch, so a wrong value may look valid.
        assert log.log_end_offset >= struck
    else:
        assert log.log_end_offset == struck
        assert written.startswith(raw(log))


def strike(byte: int, *, number: int = 5, count: int = 12) -> tuple[SimDisk, bytes]:
    """Flip a bit in one batch of a flushed log."""
    disk = SimDisk()
    log = open_log(disk, ONE_SEGMENT)
    for _ in range(count):
        append(log, batch(size=50))
    flush(log)
    written = raw(log)
    disk.flip_bit(FIRST, (number * len(batch(size=50)) + byte) * 8)
    return disk, written


@pytest.mark.parametrize("byte", [8, 16, 20, 25, 60, 90])
def test_f47_a_flipped_bit_in_synced_data_deletes_nothing_behind_it(byte: int) -> None:
    """The bits are in the length, magic, checksum, last offset delta, record count or a record."""
    disk, written = strike(byte)
    log = open_log(disk, ONE_SEGMENT, recovery_point=12)

    assert log.log_end_offset == 12
    assert [(d.first_offset, d.end_offset) for d in log.recovery.damages] == [(5, 6)]
    size = len(written) // 12
    assert raw(log, 0, 5) == written[: 5 * size]
    assert log.read(5, 1_000, 12, at_least_one=True) is ErrorCode.corrupt_message
    assert raw(log, 6) == written[6 * size :]
    # If a read starts before the damaged batch, the result ends right before that batch.
    result = log.read(3, 1 << 20, 12, at_least_one=True)
    assert isinstance(result, ReadResult)
    assert result.slice is not None
    assert result.slice.length == 2 * size
    assert append(log).base_offset == 12


def test_f47_sound_batches_are_found_behind_damage_where_offsets_roll_over() -> None:
    """The batch after the damage is at offset 2**24, so the high bytes of the offset change."""
    disk, start = SimDisk(), 2**24 - 3
    log = open_log(disk, ONE_SEGMENT)
    log.truncate_fully_and_start_at(start, NOW)
    for _ in range(10):
        append(log, batch(size=50))
    flush(log)
    size, file = len(batch(size=50)), f"{DIRECTORY}/{start:020}.log"
    disk.flip_bit(file, (2 * size + 90) * 8)

    log = open_log(disk, ONE_SEGMENT, recovery_point=start + 10)

    assert log.log_end_offset == start + 10
    damages = [(d.first_offset, d.end_offset) for d in log.recovery.damages]
    assert damages == [(start + 2, start + 3)]


def test_f47_the_damaged_part_can_be_cut_and_fetched_again() -> None:
    disk, _ = strike(60)
    log = open_log(disk, ONE_SEGMENT, recovery_point=12)
    log.truncate_to(5, NOW)
    assert log.log_end_offset == 5
    for offset in range(5, 12):
        log.append_as_follower(replicated(offset, 1))
    assert base_offsets(log) == list(range(12))


def test_f47_damage_in_the_last_batches_is_reported_as_loss() -> None:
    disk, written = strike(60, number=11)
    log = open_log(disk, ONE_SEGMENT, recovery_point=12)
    assert log.log_end_offset == 11
    assert [(d.first_offset, d.end_offset) for d in log.recovery.damages] == [(11, 12)]
    assert written.startswith(raw(log))


@pytest.mark.parametrize("clean", [True, False])
def test_f47_a_truncated_file_is_reported_as_loss(clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk, ONE_SEGMENT)
    for _ in range(10):
        append(log, batch(size=50))
    log.close()
    disk.open(FIRST).truncate(len(batch(size=50)) * 7)
    log = open_log(disk, ONE_SEGMENT, clean=clean, recovery_point=10)
    assert log.log_end_offset == 7
    assert [(d.first_offset, d.end_offset) for d in log.recovery.damages] == [(7, 10)]
    assert log.recovery.notes


def test_f47_a_short_segment_among_synced_ones_is_damage_and_not_a_gap() -> None:
    disk = SimDisk()
    log = open_log(disk, replace(SMALL, segment_bytes=1_000))
    for _ in range(40):
        append(log, batch(size=200))
    flush(log)
    size = len(batch(size=200))
    disk.open(FIRST).truncate(2 * size)
    disk.remove(f"{DIRECTORY}/{0:020d}.index")

    log = open_log(disk, replace(SMALL, segment_bytes=1_000), recovery_point=40)
    assert log.log_end_offset == 40
    assert [(d.first_offset, d.end_offset) for d in log.recovery.damages] == [(2, 3)]
    assert log.read(2, 1_000, 40, at_least_one=True) is ErrorCode.corrupt_message
    assert [header.base_offset for _, header in iterate(raw(log, 3))] == list(range(3, 40))


def test_a_clean_shutdown_is_opened_without_a_scan() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for _ in range(100):
        append(log, batch(size=100))
    log.close()
    again = open_log(disk, clean=True, recovery_point=100)
    assert again.recovery.scanned_bytes == 0
    assert raw(again) == raw(log)


def test_a_clean_shutdown_survives_power_loss() -> None:
    for seed in range(30):
        disk = SimDisk()
        log = open_log(disk)
        for number in range(60):
            append(log, batch(size=100), epoch=1 + number // 20)
        written = raw(log)
        log.close()
        disk.crash(SeededDice(seed))
        log = open_log(disk, clean=True, recovery_point=60)
        assert raw(log) == written
        check_sound(log)


def test_only_the_tail_is_scanned() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for _ in range(100):
        append(log, batch(size=100))
    flush(log)
    again = open_log(disk, recovery_point=100)
    assert 0 < again.recovery.scanned_bytes <= SMALL.segment_bytes
    assert raw(again) == raw(log)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "torn", "garbage", "of another file"])
@pytest.mark.parametrize("clean", [True, False])
def test_indexes_that_are_missing_or_wrong_are_rebuilt(
    suffix: str, damage: str, clean: bool
) -> None:
    disk = SimDisk()
    log = open_log(disk)
    for number in range(200):
        append(log, batch(size=60, timestamp=NOW + number))
    log.close()
    bases = [int(name[:20]) for name in disk.list(DIRECTORY) if name.endswith(".log")]
    path = f"{DIRECTORY}/{bases[1]:020d}{suffix}"
    sound = disk.read_file(path)
    match damage:
        case "missing":
            disk.remove(path)
        case "torn":
            disk.write_file(path, sound[:-5])
        case "garbage":
            disk.write_file(path, b"\x7f\xff\xff\xf0" * (len(sound) // 4))
        case _:
            disk.write_file(path, disk.read_file(f"{DIRECTORY}/{bases[2]:020d}{suffix}"))
    if clean and damage != "missing":
        return  # as in Kafka, indexes are trusted after a clean shutdown
    log = open_log(disk, clean=clean, recovery_point=200)
    assert log.recovery.notes or damage in ("torn", "of another file") or suffix == ".timeindex"
    check_sound(log)
    for number in range(0, 200, 7):
        found = offset_for_timestamp(log, NOW + number, 200)
        assert found is not None
        assert not isinstance(found, ErrorCode)
        assert found.offset == number


def test_an_index_that_kafka_preallocated_is_taken_as_it_is() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for _ in range(100):
        append(log, batch(size=60))
    log.close()
    last = max(name[:20] for name in disk.list(DIRECTORY) if name.endswith(".log"))
    for suffix, size in ((".index", 10_485_760), (".timeindex", 10_485_756)):
        file = disk.open(f"{DIRECTORY}/{last}{suffix}")
        file.append((bytes(size - file.size),))
    for clean in (True, False):
        log = open_log(disk, clean=clean, recovery_point=100)
        check_sound(log)
        append(log)
        log.close()
        log.truncate_to(100, NOW)
        log.close()


def test_an_index_without_its_log_is_removed() -> None:
    disk = SimDisk()
    append(open_log(disk))
    disk.write_file(f"{DIRECTORY}/{77:020d}.index", b"")
    open_log(disk)
    assert not disk.exists(f"{DIRECTORY}/{77:020d}.index")


def test_files_of_others_are_left_alone() -> None:
    disk = SimDisk()
    append(open_log(disk))
    disk.write_file(f"{DIRECTORY}/{0:020d}-{3:010d}.checkpoint", b"snapshot")
    disk.write_file(f"{DIRECTORY}/{0:020d}-{3:010d}.checkpoint.deleted", b"snapshot")
    open_log(disk)
    assert disk.exists(f"{DIRECTORY}/{0:020d}-{3:010d}.checkpoint")
    assert disk.exists(f"{DIRECTORY}/{0:020d}-{3:010d}.checkpoint.deleted")


def test_a_gap_between_unsynced_segments_ends_the_log() -> None:
    disk = SimDisk()
    log = open_log(disk, replace(SMALL, segment_bytes=1_000))
    for _ in range(20):
        append(log, batch(size=200))
    disk.open(FIRST).truncate(2 * len(batch(size=200)))
    log = open_log(disk, replace(SMALL, segment_bytes=1_000))
    assert base_offsets(log) == [0, 1]
    assert append(log).base_offset == 2


def test_old_bytes_behind_new_ones_end_the_log() -> None:
    """The log looks like a log whose truncation was never synced."""
    disk = SimDisk()
    file = open_log(disk, ONE_SEGMENT)
    append(file, epoch=3)
    disk.open(FIRST).append((replicated(1, 2),))
    log = open_log(disk, ONE_SEGMENT)
    assert base_offsets(log) == [0]


def test_an_empty_directory_is_an_empty_log() -> None:
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    for clean in (True, False):
        log = open_log(disk, clean=clean)
        assert (log.log_start_offset, log.log_end_offset, log.size) == (0, 0, 0)
