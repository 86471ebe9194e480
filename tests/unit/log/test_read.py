"""Reading by offset, compared with a plain list of batches."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.support import (
    DIRECTORY,
    NOW,
    SMALL,
    append,
    base_offsets,
    batch,
    new_log,
    open_log,
    raw,
    replicated,
)

from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, ReadResult
from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.batch import HEADER_SIZE, iterate, read_header
from tidelog.sim.machines.disk import SimDisk


class Stored(NamedTuple):
    base: int
    end: int
    content: bytes


def read(log: PartitionLog, offset: int, max_bytes: int, limit: int, at_least_one: bool) -> bytes:
    result = log.read(offset, max_bytes, limit, at_least_one=at_least_one)
    assert isinstance(result, ReadResult), result
    if result.slice is None:
        return b""
    file, position, length = result.slice
    assert length > 0
    return file.read(position, length)


shapes = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 400)), min_size=1, max_size=60)


def fill(log: PartitionLog, shape: list[tuple[int, int]]) -> list[Stored]:
    stored = []
    for count, size in shape:
        records = batch(count, size=size)
        base = append(log, records).base_offset
        stored.append(Stored(base, base + count, bytes(records)))
    return stored


@settings(deadline=None, max_examples=60)
@given(
    shapes, st.integers(1, 6_000), st.floats(0, 1), st.floats(0, 1), st.booleans(), st.booleans()
)
def test_a_read_gives_what_a_list_of_batches_gives(
    shape: list[tuple[int, int]],
    max_bytes: int,
    where: float,
    how_far: float,
    at_least_one: bool,
    reopen: bool,
) -> None:
    disk = SimDisk()
    log = open_log(disk)
    model = fill(log, shape)
    if reopen:
        log.close()
        log = open_log(disk, clean=True)
    end = log.log_end_offset
    offset, limit = int(where * end), int(how_far * (end + 1))

    found = read(log, offset, max_bytes, limit, at_least_one)

    wanted = b"".join(b.content for b in model if b.end > offset and b.end <= limit)
    first = len(next((b.content for b in model if b.end > offset and b.end <= limit), b""))
    assert wanted.startswith(found)
    if not found:
        # No batch is below the limit, or the first batch is larger than the requested size.
        assert not wanted or (first > max_bytes and not at_least_one)
    else:
        assert len(found) >= first
        assert len(found) <= max(max_bytes, first)
        # The read stops at the requested size, at the limit, or at the end of the segment.
        whole = sum(h.size for _, h in iterate(found))
        following = offset if not whole else list(iterate(found))[-1][1].next_offset
        if len(found) < min(len(wanted), max_bytes):
            assert whole == len(found)
            assert SimDiskSegment(disk).starts_at(following)


class SimDiskSegment:
    def __init__(self, disk: SimDisk) -> None:
        self._names = disk.list(DIRECTORY)

    def starts_at(self, offset: int) -> bool:
        return f"{offset:020d}.log" in self._names


@settings(deadline=None, max_examples=25)
@given(shapes)
def test_every_offset_leads_to_its_own_batch(shape: list[tuple[int, int]]) -> None:
    disk = SimDisk()
    log = open_log(disk)
    model = fill(log, shape)
    log.close()
    for reader in (log, open_log(disk, clean=True)):
        for stored in model:
            for offset in range(stored.base, stored.end):
                found = read(reader, offset, HEADER_SIZE, reader.log_end_offset, True)
                assert read_header(found).base_offset == stored.base


def test_an_offset_out_of_range_is_an_error() -> None:
    log = new_log()
    append(log, batch(5))
    log.advance_log_start(2)
    assert log.read(1, 100, 5, at_least_one=True) is ErrorCode.offset_out_of_range
    assert log.read(6, 100, 5, at_least_one=True) is ErrorCode.offset_out_of_range
    assert log.read(5, 100, 5, at_least_one=True) == ReadResult(None, 5)


def test_nothing_at_or_past_the_limit_is_given() -> None:
    log = new_log()
    for _ in range(4):
        append(log, batch(2))
    assert len(list(iterate(read(log, 0, 10_000, 4, True)))) == 2
    assert read(log, 4, 10_000, 4, True) == b""
    # A batch that crosses the limit is not returned.
    assert len(list(iterate(read(log, 0, 10_000, 5, True)))) == 2
    assert read(log, 4, 10_000, 5, True) == b""


def test_the_end_offset_bounds_what_the_slice_holds() -> None:
    log = new_log()
    for _ in range(100):
        append(log)
    offset = 0
    while offset < 100:
        result = log.read(offset, 1 << 20, 100, at_least_one=True)
        assert isinstance(result, ReadResult)
        assert result.slice is not None
        chunk = result.slice.file.read(result.slice.position, result.slice.length)
        assert list(iterate(chunk))[-1][1].next_offset == result.end_offset
        offset = result.end_offset


def test_gaps_between_batches_lead_to_the_next_one() -> None:
    """A log has gaps if the leader has compacted it."""
    log = new_log()
    for base in range(0, 400, 10):
        assert isinstance(log.append_as_follower(replicated(base, 1, 2, size=100)), Appended)
    for offset in range(390):
        found = read(log, offset, HEADER_SIZE, log.log_end_offset, True)
        wanted = offset // 10 * 10 if offset % 10 < 2 else offset // 10 * 10 + 10
        assert read_header(found).base_offset == wanted


def test_a_slice_stays_good_when_its_segment_is_deleted() -> None:
    log = new_log()
    for _ in range(60):
        append(log, batch(size=100))
    result = log.read(0, 1 << 20, 60, at_least_one=True)
    assert isinstance(result, ReadResult)
    assert result.slice is not None
    before = result.slice.file.read(result.slice.position, result.slice.length)

    log.advance_log_start(50)
    assert 0 in log.apply_retention(NOW, 60)
    log.purge(NOW + SMALL.file_delete_delay_ms)
    assert result.slice.file.read(result.slice.position, result.slice.length) == before


@pytest.mark.parametrize("byte", [9, 16])
def test_a_broken_header_in_an_old_segment_is_an_error_and_not_served(byte: int) -> None:
    disk = SimDisk()
    log = open_log(disk)
    for _ in range(100):
        append(log, batch(size=40))
    log.close()
    position = len(batch(size=40)) * 2  # before the first index entry, so reads scan past it
    disk.flip_bit(f"{DIRECTORY}/{0:020d}.log", (position + byte) * 8 + 7)

    log = open_log(disk, clean=True)
    assert log.read(2, 1_000, 100, at_least_one=True) is ErrorCode.corrupt_message
    assert isinstance(log.read(0, 100, 100, at_least_one=True), ReadResult)
    assert read_header(raw(log, 90)).base_offset == 90
    append(log)
    assert base_offsets_from(log, 90) == list(range(90, 101))


def base_offsets_from(log: PartitionLog, offset: int) -> list[int]:
    return [header.base_offset for _, header in iterate(raw(log, offset))]


def test_a_log_of_many_segments_reads_whole() -> None:
    log = new_log()
    for _ in range(300):
        append(log, batch(size=60))
    assert base_offsets(log) == list(range(300))
