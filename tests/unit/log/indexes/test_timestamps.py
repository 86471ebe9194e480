"""Offsets by timestamp, compared with a plain list of records."""

import tracemalloc

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.support import (
    NOW,
    SMALL,
    append,
    max_timestamp_offset,
    new_log,
    offset_for_timestamp,
    open_log,
)

from tidelog.log.config import LOG_APPEND_TIME, LogConfig
from tidelog.log.indexes import timestamps
from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, TimestampOffset
from tidelog.protocol.records.compression import CODECS
from tidelog.protocol.records.records import Record, build_batch
from tidelog.protocol.varint import varint
from tidelog.sim.machines.disk import SimDisk

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
    """Append these batches; return (offset, timestamp, is last in its batch) of each record."""
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
    assert offset_for_timestamp(log, timestamp, limit) == expected


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
    assert max_timestamp_offset(log, limit) == expected


def test_log_append_time_answers_with_the_batch() -> None:
    log = new_log(LogConfig(message_timestamp_type=LOG_APPEND_TIME))
    fill(log, [([1_000, 2_000, 3_000], "none", 5)])
    assert offset_for_timestamp(log, 5_000, 3) == TimestampOffset(0, NOW, 1)
    assert max_timestamp_offset(log, 3) == TimestampOffset(0, NOW, 1)


def test_an_empty_log_has_no_timestamps() -> None:
    log = new_log()
    assert offset_for_timestamp(log, 0, 0) is None
    assert max_timestamp_offset(log, 0) is None


@pytest.mark.parametrize("timestamp", [-1])
def test_records_without_timestamps_are_found_by_none(timestamp: int) -> None:
    log = new_log(SMALL)
    fill(log, [([timestamp], "none", 5)] * 3)
    assert offset_for_timestamp(log, 0, 3) is None
    assert max_timestamp_offset(log, 3) is None


# -- batches of a hostile client (F64) -------------------------------------------------------------


def planted(log: PartitionLog, batch: bytes) -> None:
    """Append a batch without checks, as if its leader had not checked it."""
    assert isinstance(log.append_as_follower(memoryview(bytearray(batch))), Appended)


def bomb(codec: str, count: int, claimed: int | None = None, newest: int = 9_000) -> bytes:
    """A batch of small records with the timestamp 1000; only the last record is newer."""
    records = [Record(None, None, 1_000)] * count + [Record(None, None, newest)]
    made = bytearray(build_batch(records, leader_epoch=1, compression=codec))
    if claimed is not None:
        made[23:27] = (claimed - 1).to_bytes(4, "big")
        made[57:61] = claimed.to_bytes(4, "big")
        made[17:21] = crc32c(bytes(made[21:])).to_bytes(4, "big")
    return bytes(made)


@pytest.mark.parametrize("codec", CODECS)
def test_f64_a_search_ends_at_its_budget_of_records_and_skips_nothing(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timestamps, "SEARCHED_RECORDS", 10_000)
    log = new_log(LogConfig())
    planted(log, bomb(codec, 50_000))
    for found in (offset_for_timestamp(log, 5_000, 50_001), max_timestamp_offset(log, 50_001)):
        assert isinstance(found, TimestampOffset)
        assert 10_000 <= found.offset < 20_000, "the first that it did not look at"
        assert found.timestamp == 9_000
    assert offset_for_timestamp(log, 1_000, 50_001) == TimestampOffset(0, 1_000, 1)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_f64_a_search_ends_at_its_budget_of_bytes(
    codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timestamps, "SEARCHED_BYTES", 1_000_000)
    log = new_log(LogConfig())
    records = [Record(None, bytes(100_000), 1_000)] * 100 + [Record(None, None, 9_000)]
    planted(log, build_batch(records, leader_epoch=1, compression=codec))
    tracemalloc.start()
    try:
        found = offset_for_timestamp(log, 5_000, 101)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(found, TimestampOffset)
    assert found.offset < 12
    assert peak < 1_000_000


@pytest.mark.parametrize("codec", CODECS[1:])
@pytest.mark.parametrize("claimed", [5, 2_000, 2**31 - 1])
def test_f64_a_batch_that_lies_about_its_count_is_searched_as_far_as_it_goes(
    codec: str, claimed: int
) -> None:
    log = new_log(LogConfig())
    planted(log, bomb(codec, 1_000, claimed))
    end = log.log_end_offset
    found = offset_for_timestamp(log, 5_000, end)
    assert isinstance(found, TimestampOffset)
    assert found.offset == min(claimed - 1, 1_000)
    assert offset_for_timestamp(log, 500, end) == TimestampOffset(0, 1_000, 1)


def test_f64_headers_that_promise_what_no_record_keeps_are_not_followed_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timestamps, "_SEARCHED_BATCHES", 5)
    log = new_log(LogConfig())
    for number in range(20):
        made = bytearray(build_batch([Record(None, None, 1_000)], number, leader_epoch=1))
        made[35:43] = (9_000).to_bytes(8, "big")
        made[17:21] = crc32c(bytes(made[21:])).to_bytes(4, "big")
        planted(log, bytes(made))
    assert offset_for_timestamp(log, 5_000, 20) == TimestampOffset(5, 9_000, 1)


def test_f64_offsets_outside_of_their_batch_are_not_believed() -> None:
    body = bytes((0, 0)) + varint(2**30) + bytes((1, 1, 0))
    made = bytearray(build_batch([Record(None, None, 9_000)], leader_epoch=1)[:61])
    made += varint(len(body)) + body
    made[8:12] = (len(made) - 12).to_bytes(4, "big")
    made[17:21] = crc32c(bytes(made[21:])).to_bytes(4, "big")
    log = new_log(LogConfig())
    planted(log, bytes(made))
    assert offset_for_timestamp(log, 5_000, 1) == TimestampOffset(0, 9_000, 1)
