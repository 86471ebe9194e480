"""Sparse indexes, compared with a plain list of entries."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.support import DIRECTORY, append, batch, open_log

from tidelog.log.indexes.index import OffsetIndex, SparseIndex, TimeIndex
from tidelog.log.partition import PartitionLog
from tidelog.protocol.records.batch import iterate
from tidelog.sim.machines.disk import SimDisk

PATH = "00000000000000001000.index"

growing = st.lists(st.integers(1, 50), max_size=1_500).map(
    lambda steps: [sum(steps[: n + 1]) for n in range(len(steps))]
)


def build(keys: list[int], disk: SimDisk | None = None) -> SparseIndex:
    index = SparseIndex(disk or SimDisk(), PATH, OffsetIndex.ENTRY)
    for key in keys:
        index.add(key, key * 10)
    return index


@settings(deadline=None, max_examples=40)
@given(growing, st.integers(0, 80_000), st.booleans())
def test_floor_is_the_last_entry_not_above_the_key(keys: list[int], key: int, reopen: bool) -> None:
    disk = SimDisk()
    index = build(keys, disk)
    if reopen:
        index.write_out()
        index = SparseIndex(disk, PATH, OffsetIndex.ENTRY)
    wanted = max((k for k in keys if k <= key), default=None)
    assert index.floor(key) == (None if wanted is None else (wanted, wanted * 10))
    assert index.floor_of_values(key * 10) == index.floor(key)


@settings(deadline=None, max_examples=40)
@given(growing, st.integers(0, 80_000))
def test_cut_drops_the_entries_from_a_key_on(keys: list[int], key: int) -> None:
    index, twin = build(keys), build(keys)
    index.cut(key)
    twin.cut_values(key * 10)
    kept = [k for k in keys if k < key]
    assert [entry[0] for entry in index.entries()] == kept
    assert twin.entries() == index.entries()
    index.add(100_000, 1)
    assert index.last == (100_000, 1)
    assert [entry[0] for entry in index.entries()] == [*kept, 100_000]


@settings(deadline=None, max_examples=40)
@given(growing, st.integers(0, 3_000))
def test_zeros_behind_the_entries_are_not_entries(keys: list[int], padding: int) -> None:
    """Kafka preallocates its index files, so after a kill they end with unused zeros."""
    disk = SimDisk()
    build(keys, disk).write_out()
    disk.open(PATH).append((bytes(padding),))
    index = SparseIndex(disk, PATH, OffsetIndex.ENTRY)
    assert index.last == ((keys[-1], keys[-1] * 10) if keys else None)
    index.add(100_000, 7)
    assert [entry[0] for entry in index.entries()] == [*keys, 100_000]


def test_a_key_that_does_not_grow_is_left_out() -> None:
    index = build([5])
    index.add(5, 99)
    index.add(4, 99)
    assert index.entries() == [(5, 50)]


def test_entries_are_written_a_page_at_a_time() -> None:
    disk = SimDisk()
    index = build(list(range(1, 511)), disk)
    assert not disk.exists(PATH)
    index.add(600, 1)
    index.add(601, 1)
    assert disk.size(PATH) == 4096
    assert index.size == 4096


def test_offsets_are_relative_to_the_segment() -> None:
    index = OffsetIndex(SimDisk(), PATH, 1_000)
    index.add(1_020, 4_096)
    index.add(1_040, 8_192)
    found = [index.entry_before(o) for o in (1_000, 1_019, 1_020, 1_039, 1_040, 2_000)]
    assert found == [None, None, (1_020, 4_096), (1_020, 4_096), (1_040, 8_192), (1_040, 8_192)]


def test_a_time_look_up_starts_before_the_first_record_that_is_new_enough() -> None:
    index = TimeIndex(SimDisk(), PATH, 1_000)
    index.add(500, 1_010)
    index.add(600, 1_020)
    # The entry (500, 1010) means that no record up to offset 1010 is newer than 500.
    found = [index.entry_before(t) for t in (1, 500, 501, 600, 601)]
    assert found == [None, None, (500, 1_010), (500, 1_010), (600, 1_020)]
    assert index.entry_below(1_020) == (500, 1_010)
    assert index.entry_below(1_010) is None


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 300)), min_size=1, max_size=80))
def test_what_is_indexed_is_what_a_linear_scan_finds(shape: list[tuple[int, int]]) -> None:
    disk = SimDisk()
    log: PartitionLog = open_log(disk)
    for number, (count, size) in enumerate(shape):
        append(log, batch(count, size=size, timestamp=1_000 + number * 7 % 100))
    log.close()
    for name in disk.list(DIRECTORY):
        if not name.endswith(".log"):
            continue
        base = int(name[:20])
        stem = f"{DIRECTORY}/{name[:20]}"
        content = disk.read_file(f"{stem}.log")
        positions = {h.last_offset: position for position, h in iterate(content)}
        newest = max((h.max_timestamp for _, h in iterate(content)), default=-1)
        offsets = list(OffsetIndex.ENTRY.iter_unpack(disk.read_file(f"{stem}.index")))
        assert all(positions[base + relative] == position for relative, position in offsets)
        times = list(TimeIndex.ENTRY.iter_unpack(disk.read_file(f"{stem}.timeindex")))
        assert (times[-1][0] if times else -1) == newest
        for timestamp, relative in times:
            running = max(
                h.max_timestamp for _, h in iterate(content) if h.last_offset <= base + relative
            )
            assert timestamp == running
