"""Truncating a log, compared with a plain list of batches."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.support import (
    DIRECTORY,
    NOW,
    SMALL,
    append,
    base_offsets,
    batch,
    flush,
    max_timestamp_offset,
    new_log,
    open_log,
    raw,
)

from tidelog.log.config import LogConfig
from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

PAGES = LogConfig(segment_bytes=5 * 4096)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 4), st.integers(0, 500)),
        st.tuples(st.just("truncate"), st.floats(0, 1), st.booleans()),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=60)
@given(steps)
def test_appends_and_cuts_leave_what_a_list_would(steps: list[tuple[str, float, int]]) -> None:
    disk = SimDisk()
    log = open_log(disk)
    model: list[tuple[int, int, bytes]] = []
    epoch = 1
    for kind, one, two in steps:
        if kind == "append":
            records = batch(int(one), size=two, timestamp=NOW + two)
            base = append(log, records, epoch).base_offset
            model.append((base, base + int(one), bytes(records)))
        else:
            cut = int(one * log.log_end_offset)
            log.truncate_to(cut, NOW)
            model = [entry for entry in model if entry[1] <= cut]
            epoch += 1
            if two:
                log.close()
                log = open_log(disk, clean=True)
        end = model[-1][1] if model else 0
        assert log.log_end_offset == end
        assert raw(log) == b"".join(content for _, _, content in model)
        assert log.log_start_offset <= end
        assert log.recovery_point <= end
        newest = max((records_newest(content) for _, _, content in model), default=None)
        found = max_timestamp_offset(log, end)
        assert not isinstance(found, ErrorCode)
        assert (None if found is None else found.timestamp) == newest
    assert raw(open_log(disk)) == raw(log)


def records_newest(content: bytes) -> int:
    return int.from_bytes(content[35:43], "big")


def test_a_cut_inside_a_batch_takes_the_whole_batch() -> None:
    log = new_log()
    append(log, batch(5))
    append(log, batch(5))
    log.truncate_to(7, NOW)
    assert log.log_end_offset == 5
    assert append(log, batch(1)).base_offset == 5


def test_a_cut_past_the_end_changes_nothing() -> None:
    log = new_log()
    append(log, batch(5))
    log.truncate_to(5, NOW)
    log.truncate_to(99, NOW)
    assert log.log_end_offset == 5


def test_a_cut_below_the_log_start_moves_it_back() -> None:
    log = new_log()
    for _ in range(10):
        append(log)
    log.advance_log_start(6)
    log.truncate_to(3, NOW)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)


def test_starting_anew_at_another_offset() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for _ in range(50):
        append(log, batch(size=100))
    log.truncate_fully_and_start_at(1_000, NOW)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (1_000, 1_000, 0)
    assert append(log).base_offset == 1_000
    logs = [name for name in disk.list(DIRECTORY) if name.endswith(".log")]
    assert logs == [f"{1_000:020d}.log"]
    assert base_offsets(open_log(disk)) == [1_000]


def test_the_recovery_point_is_lowered_before_the_log_is_cut() -> None:
    disk = SimDisk()
    seen = []

    def lower(offset: int) -> None:
        seen.append((offset, disk.size(f"{DIRECTORY}/{0:020d}.log")))

    log = open_log(disk, lower_recovery_point=lower)
    append(log)
    append(log)
    size = log.size
    log.truncate_to(1, NOW)  # nothing was flushed, so the recovery point stays
    append(log)
    flush(log)
    log.truncate_to(1, NOW)
    assert seen == [(1, size)]
    assert log.recovery_point == 1


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(0, 29))
def test_what_was_cut_does_not_come_back_behind_what_came_after(
    seed: int, count: int, cut: int
) -> None:
    """Old and new batches share pages.

    Without a sync, old batches could come back after a crash.
    """
    page = 4096 - 73
    assert len(batch(size=page)) == 4096
    disk = SimDisk()
    log = open_log(disk, PAGES)
    for _ in range(count):
        append(log, batch(size=page), epoch=1)
    flush(log)
    cut = min(cut, count)
    log.truncate_to(cut, NOW)
    checkpoint = log.recovery_point
    for _ in range(count):
        append(log, batch(size=page), epoch=2)
    after = raw(log)

    disk.crash(SeededDice(seed))
    log = open_log(disk, PAGES, recovery_point=checkpoint)
    assert log.log_end_offset >= cut
    assert after.startswith(raw(log))


def test_a_cut_at_a_broken_batch_keeps_what_is_sound_before_it() -> None:
    config = replace(SMALL, segment_bytes=1 << 20)
    disk = SimDisk()
    log = open_log(disk, config)
    for _ in range(20):
        append(log, batch(size=50))
    log.close()
    size = len(batch(size=50))
    disk.flip_bit(f"{DIRECTORY}/{0:020d}.log", (11 * size + 16) * 8)
    log = open_log(disk, config, clean=True, recovery_point=20)
    assert log.recovery.scanned_bytes == 0
    log.truncate_to(11, NOW)
    assert log.log_end_offset == 11
    assert append(log).base_offset == 11
    assert base_offsets(log) == list(range(12))
