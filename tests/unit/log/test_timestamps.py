"""From timestamps to offsets, against a plain list of records."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.support import NOW, SMALL, append, new_log, open_log

from tidelog.log.config import LOG_APPEND_TIME, LogConfig
from tidelog.log.partition import PartitionLog
from tidelog.log.results import TimestampOffset
from tidelog.protocol.records import Record, build_batch
from tidelog.sim.disk import SimDisk

batches = st.lists(
    st.tuples(
        st.lists(st.integers(1_000, 1_300), min_size=1, max_size=5),
        st.sampled_from(["none", "gzip", "lz4"]),
        st.integers(0, 200),
    ),
    min_size=1,
    max_size=40,
)


def fill(log: PartitionLog, shape: list[tuple[list[int], str, int]]) -> list[tuple[int, int, bool]]:
    """Append these; (offset, timestamp, is last of its batch) of each record."""
    records = []
    for times, compression, size in shape:
        made = build_batch([Record(b"k", bytes(size), t) for t in times], compression=compression)
        base = append(log, memoryview(bytearray(made))).base_offset
        for number, time in enumerate(times):
            records.append((base + number, time, number + 1 == len(times)))
    return records


@settings(deadline=None, max_examples=60)
@given(batches, st.integers(990, 1_310), st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_the_first_record_that_is_not_older(
    shape: list[tuple[list[int], str, int]],
    timestamp: int,
    start_at: float,
    limit_at: float,
    reopen: bool,
) -> None:
    disk = SimDisk()
    log = open_log(disk)
    records = fill(log, shape)
    if reopen:
        log.close()
        log = open_log(disk, clean=True)
    start, limit = int(start_at * len(records)), int(limit_at * (len(records) + 1))
    log.advance_log_start(start)
    wanted = next((r for r in records if r[0] >= start and r[1] >= timestamp), None)
    expected = (
        None if wanted is None or wanted[0] >= limit else TimestampOffset(wanted[0], wanted[1], 1)
    )
    assert log.offset_for_timestamp(timestamp, limit) == expected


@settings(deadline=None, max_examples=60)
@given(batches, st.floats(0, 1), st.booleans())
def test_the_newest_record(
    shape: list[tuple[list[int], str, int]], limit_at: float, reopen: bool
) -> None:
    disk = SimDisk()
    log = open_log(disk)
    records = fill(log, shape)
    if reopen:
        log.close()
        log = open_log(disk, clean=True)
    ends = [offset + 1 for offset, _, is_last in records if is_last]
    limit = max((end for end in ends if end <= int(limit_at * len(records))), default=0)
    below = [record for record in records if record[0] < limit]
    best = max(below, key=lambda record: (record[1], -record[0]), default=None)
    expected = None if best is None else TimestampOffset(best[0], best[1], 1)
    assert log.max_timestamp_offset(limit) == expected


def test_log_append_time_answers_with_the_batch() -> None:
    log = new_log(LogConfig(message_timestamp_type=LOG_APPEND_TIME))
    fill(log, [([1_000, 2_000, 3_000], "none", 5)])
    assert log.offset_for_timestamp(5_000, 3) == TimestampOffset(0, NOW, 1)
    assert log.max_timestamp_offset(3) == TimestampOffset(0, NOW, 1)


def test_an_empty_log_has_no_timestamps() -> None:
    log = new_log()
    assert log.offset_for_timestamp(0, 0) is None
    assert log.max_timestamp_offset(0) is None


@pytest.mark.parametrize("timestamp", [-1])
def test_records_without_timestamps_are_found_by_none(timestamp: int) -> None:
    log = new_log(SMALL)
    fill(log, [([timestamp], "none", 5)] * 3)
    assert log.offset_for_timestamp(0, 3) is None
    assert log.max_timestamp_offset(3) is None
