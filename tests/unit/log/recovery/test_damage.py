"""If a log was damaged while it was closed, it is complete after opening or reports the damage.

A reader never gets a record that was not written (F54 to F56).
"""

from itertools import permutations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.unit.log.damage import (
    CONFIG,
    KINDS,
    Damage,
    Written,
    consume,
    is_reported,
    strike,
    written,
)
from tests.unit.log.support import (
    DIRECTORY,
    NOW,
    append,
    batch,
    flush,
    max_timestamp_offset,
    offset_for_timestamp,
    open_log,
)

from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, TimestampOffset
from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.batch import iterate
from tidelog.sim.machines.disk import SimDisk

BATCHES = 40

damages = st.builds(
    Damage,
    st.sampled_from(list(KINDS)),
    st.integers(0, 100),
    st.integers(0, 100),
    st.integers(0, 1 << 20),
)


def opened(wrote: Written, *, clean: bool) -> PartitionLog:
    return open_log(wrote.disk, CONFIG, clean=clean, recovery_point=wrote.end)


@pytest.mark.parametrize("clean", [True, False])
def test_f54_a_sound_log_is_opened_without_a_word(clean: bool) -> None:
    for count in (0, 1, 5, 60):
        wrote = written(count, clean=clean)
        log = opened(wrote, clean=clean)
        assert log.recovery.notes == ()
        assert log.recovery.is_proven
        assert consume(log, wrote) == (set(wrote.batches), set())
        assert log.take_notes() == []


@settings(deadline=None, max_examples=300)
@given(st.lists(damages, min_size=1, max_size=3), st.booleans())
@example([Damage("later segment", 0, 0, 0)], True)
@example([Damage("garbage behind", 32, 0, 0), Damage("later segment", 0, 0, 0)], True)
@example([Damage("flip", 33, 0, 0), Damage("directory", 1, 0, 0)], False)  # epochs, then log
@example([Damage("flip", 57, 0, 148_968)], True)  # the offset becomes too large for an index
def test_f54_a_damaged_log_is_whole_or_says_so(struck: list[Damage], clean: bool) -> None:
    wrote = written(clean=clean)
    done = [strike(wrote, one) for one in struck]
    log = opened(wrote, clean=clean)
    assert log.log_end_offset <= wrote.end, done
    consumed = consume(log, wrote)
    for _ in range(100):
        if log.repair_indexes():
            break
    else:
        raise AssertionError("the indexes are never repaired")
    reported = is_reported(log) or log.take_notes()
    lost = set(wrote.batches) - consumed.batches
    assert not lost or reported or lost <= consumed.errors, (done, lost)
    ranges = [(one.first_offset, one.end_offset) for one in (*log.recovery.damages, *log.damages)]
    assert not (lost - consumed.errors) or not log.recovery.is_proven, done
    for base in lost - consumed.errors:
        assert any(first <= base < end for first, end in ranges), (base, ranges, done)
    assert consume(log, wrote).batches >= consumed.batches
    end = log.log_end_offset
    assert append(log, epoch=9).base_offset == end


def last_batches(wrote: Written) -> list[tuple[str, int]]:
    """The file of each segment, and the position of its last batch."""
    logs = [name for name in wrote.disk.list(DIRECTORY) if name.endswith(".log")]
    paths = [f"{DIRECTORY}/{name}" for name in logs]
    return [(path, max(at for at, _ in iterate(wrote.disk.read_file(path)))) for path in paths]


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("bits", [range(24), range(24, 64)])
def test_f54_a_wrong_offset_at_the_end_of_a_segment_does_not_condemn_the_next_ones(
    clean: bool, bits: range
) -> None:
    """The last batch of a segment claims offsets of the next segment, which is intact."""
    found = last_batches(written(clean=clean))
    for number, (path, last) in enumerate(found):
        for bit in bits:
            wrote = written(clean=clean)
            wrote.disk.flip_bit(path, last * 8 + bit)
            behind = found[min(number + 1, len(found) - 1)][0]
            recovery_point = int(behind[-24:-4]) if not clean and bit % 2 else wrote.end
            log = open_log(wrote.disk, CONFIG, clean=clean, recovery_point=recovery_point)

            assert log.log_end_offset <= wrote.end, (path, bit, log.recovery)
            assert log.log_end_offset == wrote.end or path == behind
            consumed = consume(log, wrote)
            assert len(consumed.batches) == len(wrote.batches) - 1
            assert is_reported(log) or log.take_notes()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("is_swap", [True, False])
def test_f54_a_producer_snapshot_of_another_offset_is_not_used(clean: bool, is_swap: bool) -> None:
    """The snapshot is intact, but belongs to another offset, so it has a wrong last sequence."""
    names = [name for name in _idempotent(clean).list(DIRECTORY) if name.endswith(".snapshot")]
    for one, other in permutations(names, 2):
        disk = _idempotent(clean)
        paths = [f"{DIRECTORY}/{name}" for name in (one, other)]
        contents = [disk.read_file(path) for path in paths]
        disk.write_file(paths[0], contents[1])
        if is_swap:
            disk.write_file(paths[1], contents[0])
        log = open_log(disk, CONFIG, clean=clean, recovery_point=BATCHES)
        assert [one.last_sequence for one in log.active_producers()] == [BATCHES - 1]

        log.truncate_to(BATCHES // 2, NOW)
        assert [one.last_sequence for one in log.active_producers()] == [BATCHES // 2 - 1]


def _idempotent(clean: bool) -> SimDisk:
    """A log in several segments; all but the first batches come from one idempotent producer."""
    disk = SimDisk()
    log = open_log(disk, CONFIG)
    for number in range(BATCHES):
        if number < BATCHES // 4:
            append(log, batch(size=150, timestamp=NOW))
        else:
            append(log, batch(size=150, timestamp=NOW, producer=7, epoch=0, sequence=number))
    if clean:
        log.close()
    else:
        flush(log)
    disk.sync_all()
    disk.kill()
    return disk


@pytest.mark.parametrize("garbage", [b"\x00" * 70, b"\xff" * 70, b"garbage", b"\x00"])
@pytest.mark.parametrize("known", ["clean", "end", "middle", "nothing"])
def test_f54_garbage_behind_a_segment_costs_no_record(known: str, garbage: bytes) -> None:
    """The next segment begins where the valid batches end, so no record is missing."""
    count = len(last_batches(written(clean=known == "clean")))
    for number in range(count):
        wrote = written(clean=known == "clean")
        path = last_batches(wrote)[number][0]
        wrote.disk.open(path).append([garbage])
        points = {"clean": wrote.end, "end": wrote.end, "middle": wrote.end // 2, "nothing": 0}
        log = open_log(wrote.disk, CONFIG, clean=known == "clean", recovery_point=points[known])

        assert log.log_end_offset == wrote.end
        for _ in range(100):
            log.repair_indexes()
        assert consume(log, wrote) == (set(wrote.batches), set())
        assert log.recovery.notes or log.take_notes()
        assert not log.recovery.damages
        assert append(log, epoch=9).base_offset == wrote.end


@settings(deadline=None, max_examples=150)
@given(damages, st.booleans(), st.integers(0, 450))
def test_f56_a_look_up_by_time_is_right_or_an_error(
    damage: Damage, clean: bool, after: int
) -> None:
    wrote = written(clean=clean)
    sound = opened(written(clean=clean), clean=clean)
    right = offset_for_timestamp(sound, NOW + after, wrote.end)
    newest = max_timestamp_offset(sound, wrote.end)
    names = wrote.disk.list(DIRECTORY)
    indexes = [number for number, name in enumerate(names) if name.endswith("index")]
    strike(wrote, damage._replace(file=indexes[damage.file % len(indexes)]))
    log = opened(wrote, clean=clean)
    if (
        any(
            log.read(offset, 1, wrote.end, at_least_one=True) is ErrorCode.corrupt_message
            for offset in range(wrote.end)
        )
        or log.log_end_offset < wrote.end
    ):
        return  # the damage swapped an index file with a .log file
    assert offset_for_timestamp(log, NOW + after, wrote.end) == right
    assert max_timestamp_offset(log, wrote.end) == newest
    assert isinstance(right, TimestampOffset | None)
    assert isinstance(append(log, epoch=9), Appended)
