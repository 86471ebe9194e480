"""A log that is not in the page cache: a read waits, or stops with NotCached and changes nothing.

Each test repeats a read that does not wait, and reads the missing bytes in between. The result must
be that of a log whose files are all cached.
"""

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.support import (
    DIRECTORY,
    NOW,
    append,
    batch,
    flush,
    marker,
    open_log,
    raw,
    run,
)

from tidelog.log.indexes.index import OffsetIndex, SparseIndex
from tidelog.log.partition import PartitionLog
from tidelog.log.results import AppendOrigin, ReadResult
from tidelog.model.disk import NotCached
from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.batch import iterate
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

T = TypeVar("T")

BATCHES = 150
EPOCHS = 5


def filled() -> SimDisk:
    """The disk of a log with several segments, epochs and aborted transactions, cleanly closed."""
    disk = SimDisk()
    log = open_log(disk)
    for number in range(BATCHES):
        epoch, producer = 1 + number * EPOCHS // BATCHES, 7 + number
        records = batch(
            3,
            size=number * 7 % 300,
            timestamp=NOW + number,
            producer=producer,
            epoch=0,
            sequence=0,
            transactional=True,
        )
        append(log, records, epoch)
        log.append_as_leader(
            marker(producer, 0, abort=number % 3 == 0), epoch, NOW, AppendOrigin.COORDINATOR
        )
    flush(log)
    log.close()
    return disk


def eventually(read: Callable[[], T]) -> tuple[T, int]:
    """The result of a read that does not wait, and the number of cold reads before it."""
    for cold_reads in range(1_000):
        try:
            return read(), cold_reads
        except NotCached as cold:
            file, position, length = cold.part
            assert length > 0
            assert file.read(position, 1), "the bytes exist"
    raise AssertionError("the read makes no progress")


def opened(disk: SimDisk) -> PartitionLog:
    return open_log(disk, clean=True, recovery_point=1 << 40)


def described(log: PartitionLog, found: ReadResult | ErrorCode) -> object:
    if isinstance(found, ErrorCode) or found.slice is None:
        return found
    file, position, length = found.slice
    return position, file.read(position, length), found.end_offset


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    offset=st.integers(0, 4 * BATCHES),
    max_bytes=st.sampled_from([1, 500, 5_000]),
    checks_sums=st.booleans(),
)
def test_a_read_finds_the_same_however_much_is_cached(
    seed: int, offset: int, max_bytes: int, checks_sums: bool
) -> None:
    results, waits = [], []
    for is_cold in (False, True):
        disk = filled()
        log = opened(disk)
        if is_cold:
            disk.evict(SeededDice(seed))
        before = disk.pages_loaded

        def read(log: PartitionLog = log) -> ReadResult | ErrorCode:
            return log.read(
                offset,
                max_bytes,
                log.log_end_offset,
                at_least_one=True,
                checks_sums=checks_sums,
                waits=False,
            )

        found, cold_reads = eventually(read)
        waits.append((cold_reads, disk.pages_loaded - before))
        results.append(described(log, found))
    assert results[0] == results[1]
    assert waits[0] == (0, 0)
    assert waits[1][1] == waits[1][0], "each page was loaded by a cold read, none by the log"


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), number=st.integers(0, BATCHES), epoch=st.integers(0, EPOCHS))
def test_look_ups_find_the_same_however_much_is_cached(seed: int, number: int, epoch: int) -> None:
    results = []
    for is_cold in (False, True):
        disk = filled()
        log = opened(disk)
        if is_cold:
            disk.evict(SeededDice(seed))
        results.append(look_ups(disk, log, number, epoch))
    assert results[0] == results[1]


def look_ups(disk: SimDisk, log: PartitionLog, number: int, epoch: int) -> object:
    end, before = log.log_end_offset, disk.pages_loaded
    by_time, first = eventually(lambda: log.search_by_time(NOW + number, end, waits=False))
    newest, second = eventually(lambda: log.search_newest(end, waits=False))
    aborted, third = eventually(lambda: log.aborted_transactions(number, end, waits=False))
    ends, fourth = eventually(lambda: log.epoch_end(epoch, waits=False))
    assert disk.pages_loaded - before == first + second + third + fourth, "the log waited"
    assert not isinstance(by_time, ErrorCode)
    assert not isinstance(newest, ErrorCode)
    found = [one and run(one) for one in (by_time, newest)]
    return found, aborted, ends, log.epoch_starts


def test_an_index_that_could_not_be_loaded_is_loaded_later() -> None:
    disk = filled()
    path = next(path for path in disk.files() if path.endswith(".index") and disk.size(path))
    entries = disk.size(path) // OffsetIndex.ENTRY.size
    disk.evict_all(".index")
    index = SparseIndex(disk, path, OffsetIndex.ENTRY)
    disk.only_cached = True
    with pytest.raises(NotCached):
        index.floor(1)
    disk.only_cached = False
    assert len(index.entries()) == entries > 1


def test_a_read_that_waits_loads_what_it_needs() -> None:
    disk = filled()
    log = opened(disk)
    disk.evict_all()
    found = log.read(40, 500, log.log_end_offset, at_least_one=True)
    assert isinstance(found, ReadResult)
    assert found.slice is not None
    assert disk.pages_loaded > 0
    assert not disk.only_cached


@pytest.mark.parametrize("kind", ["index", "log"])
def test_after_a_read_that_did_not_wait_the_log_reads_and_appends_as_before(kind: str) -> None:
    disk = filled()
    log = opened(disk)
    disk.evict_all(kind)
    with pytest.raises(NotCached):
        log.read(40, 500, log.log_end_offset, at_least_one=True, waits=False)
    assert not disk.only_cached
    end = log.log_end_offset
    append(log, batch(2), EPOCHS)
    assert log.log_end_offset == end + 2
    assert log.take_notes() == [], "no index was called wrong"


def test_wrong_indexes_are_rebuilt_from_a_segment_that_is_not_cached() -> None:
    disk = filled()
    for path in disk.files():
        if path.endswith(".index") and disk.size(path):
            disk.rot(path, bytes(b ^ 0x15 for b in disk.read_file(path)))
    log = opened(disk)
    disk.evict(SeededDice(3))
    expected = raw(opened(filled()))
    found, offset = bytearray(), 0
    while offset < log.log_end_offset:
        at = offset

        def read(log: PartitionLog = log, at: int = at) -> ReadResult | ErrorCode:
            return log.read(at, 700, log.log_end_offset, at_least_one=True, waits=False)

        result, _ = eventually(read)
        assert isinstance(result, ReadResult)
        assert result.slice is not None
        file, position, length = result.slice
        chunk = file.read(position, length)
        last_at, last = list(iterate(chunk))[-1]
        found += chunk[: last_at + last.size]
        offset = last.next_offset
    assert bytes(found) == expected


def test_epochs_that_do_not_fit_are_rebuilt_whole_although_nothing_is_cached() -> None:
    disk = filled()
    path = f"{DIRECTORY}/leader-epoch-checkpoint"
    good = opened(filled()).epoch_starts
    disk.rot(path, b"0\n1\n4 3\n")
    log = opened(disk)
    disk.evict_all()
    eventually(lambda: log.epoch_end(2, waits=False))
    assert log.epoch_starts == good
