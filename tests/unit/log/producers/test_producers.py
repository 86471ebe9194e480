"""Idempotent producers: order, duplicates, fencing, and their state after restarts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.support import DIRECTORY, NOW, append, batch, new_log, open_log

from tidelog.log.config import LOG_APPEND_TIME, LogConfig
from tidelog.log.partition import PartitionLog
from tidelog.log.producers import producer_snapshots
from tidelog.log.producers.producers import BatchSpan, ProducerEntry
from tidelog.log.results import Appended, AppendRefused
from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.batch import iterate
from tidelog.sim.machines.disk import SimDisk

MAX_SEQUENCE = (1 << 31) - 1


def produce(
    log: PartitionLog, sequence: int, count: int = 1, epoch: int = 0, producer: int = 7
) -> Appended | ErrorCode:
    records = batch(count, producer=producer, epoch=epoch, sequence=sequence)
    result = log.append_as_leader(records, 1, NOW)
    return result.error if isinstance(result, AppendRefused) else result


def repeated(first: int, last: int) -> Appended:
    """The result for a duplicate batch; as in Kafka, it has the timestamp of the stored batch."""
    return Appended(first, last, NOW + last - first, duplicate=True)


def test_sequences_follow_each_other() -> None:
    log = new_log()
    assert produce(log, 0, 3) == Appended(0, 2, -1)
    assert produce(log, 3, 2) == Appended(3, 4, -1)
    assert produce(log, 6) is ErrorCode.out_of_order_sequence_number
    assert produce(log, 5) == Appended(5, 5, -1)


def test_f44_a_repeated_batch_gets_its_first_offsets() -> None:
    log = new_log()
    for sequence in range(0, 50, 10):
        produce(log, sequence, 10)
    for sequence in range(0, 50, 10):
        assert produce(log, sequence, 10) == repeated(sequence, sequence + 9)
    assert log.log_end_offset == 50


def test_f44_the_window_is_five_batches() -> None:
    log = new_log()
    for sequence in range(6):
        produce(log, sequence)
    assert produce(log, 0) is ErrorCode.out_of_order_sequence_number
    assert produce(log, 1) == repeated(1, 1)


def test_half_of_a_batch_is_not_a_duplicate() -> None:
    log = new_log()
    produce(log, 0, 10)
    assert produce(log, 0, 5) is ErrorCode.out_of_order_sequence_number


def test_a_duplicate_reports_the_append_time_of_the_first() -> None:
    log = new_log(LogConfig(message_timestamp_type=LOG_APPEND_TIME))
    records = bytes(batch(producer=7, epoch=0, sequence=0))
    log.append_as_leader(memoryview(bytearray(records)), 1, NOW)
    again = log.append_as_leader(memoryview(bytearray(records)), 1, NOW + 5_000)
    assert again == repeated(0, 0)


def test_an_old_epoch_is_fenced() -> None:
    log = new_log()
    produce(log, 0, epoch=3)
    assert produce(log, 1, epoch=2) is ErrorCode.invalid_producer_epoch


def test_a_new_epoch_begins_at_zero() -> None:
    log = new_log()
    produce(log, 0, epoch=0)
    assert produce(log, 5, epoch=1) is ErrorCode.out_of_order_sequence_number
    assert isinstance(produce(log, 0, epoch=1), Appended)
    # A batch of the old epoch is refused, and is not treated as a duplicate.
    assert produce(log, 0, epoch=0) is ErrorCode.invalid_producer_epoch


def test_a_producer_without_state_may_begin_anywhere() -> None:
    assert produce(new_log(), 1_234) == Appended(0, 0, -1)


def test_producers_do_not_mix() -> None:
    log = new_log()
    produce(log, 0, producer=1)
    assert produce(log, 0, producer=2) == Appended(1, 1, -1)


def test_the_sequence_wraps_after_the_largest_int() -> None:
    log = new_log()
    produce(log, MAX_SEQUENCE - 1, 2)
    assert produce(log, 1) is ErrorCode.out_of_order_sequence_number
    assert produce(log, 0) == Appended(2, 2, -1)


def test_the_sequence_wraps_inside_a_batch() -> None:
    log = new_log()
    produce(log, MAX_SEQUENCE - 1, 5)  # its sequences are max - 1, max, 0, 1 and 2
    assert produce(log, MAX_SEQUENCE - 1, 5) == repeated(0, 4)
    assert produce(log, 3) == Appended(5, 5, -1)


def test_f44_the_cache_does_not_outlive_truncated_offsets() -> None:
    log = new_log()
    for sequence in range(10):
        produce(log, sequence)
    log.truncate_to(4, NOW)
    # The last sequence is now 3, so the truncated sequences 4 to 9 count as new.
    assert produce(log, 9) is ErrorCode.out_of_order_sequence_number
    assert produce(log, 4) == Appended(4, 4, -1)
    assert produce(log, 3) == repeated(3, 3)


def test_f44_truncation_to_nothing_forgets_all() -> None:
    log = new_log()
    produce(log, 0)
    log.truncate_fully_and_start_at(100, NOW)
    assert produce(log, 0) == Appended(100, 100, -1)


@pytest.mark.parametrize("clean", [True, False])
def test_state_survives_a_restart(clean: bool) -> None:
    disk = SimDisk()
    log = open_log(disk)
    for sequence in range(60):
        produce(log, sequence // 3, producer=sequence % 3)
        produce(log, sequence * 2, 2, producer=9)
    if clean:
        log.close()
    log = open_log(disk, clean=clean)
    last = log.log_end_offset
    assert produce(log, 118, 2, producer=9) == repeated(last - 2, last - 1)
    assert produce(log, 120, producer=9) == Appended(last, last, -1)
    assert produce(log, 19, producer=2) == repeated(last - 3, last - 3)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("since_roll", [0, 1, 2, 3, 4, 5])
def test_f44_the_window_of_five_outlives_a_restart(clean: bool, since_roll: int) -> None:
    """A snapshot has each producer's last batch, but a client may retry any of its last five."""
    disk = SimDisk()
    log = open_log(disk)
    sequence = 0
    while not log.needs_flush(NOW):  # until a segment is rolled
        produce(log, sequence)
        sequence += 1
    for _ in range(since_roll):
        produce(log, sequence)
        sequence += 1
    if clean:
        log.close()
    log = open_log(disk, clean=clean)
    for offset in range(sequence - 5, sequence):
        assert produce(log, offset) == repeated(offset, offset)
    assert produce(log, sequence) == Appended(sequence, sequence, -1)


@pytest.mark.parametrize("damaged", range(0, 30, 3))
@pytest.mark.parametrize("has_snapshot", [True, False])
def test_f44_a_damaged_header_does_not_hide_the_batches_behind_it(
    damaged: int, has_snapshot: bool
) -> None:
    disk = SimDisk()
    log = open_log(disk)
    for sequence in range(31):
        produce(log, sequence)
    log.close()
    end = log.log_end_offset
    logs = [f"{DIRECTORY}/{one}" for one in disk.list(DIRECTORY) if one.endswith(".log")]
    places = [(path, at) for path in logs for at, _ in iterate(disk.read_file(path))]
    path, at = places[damaged]
    disk.flip_bit(path, 8 * (at + 16))  # the magic byte
    if not has_snapshot:
        for name in disk.list(DIRECTORY):
            if name.endswith(".snapshot"):
                disk.remove(f"{DIRECTORY}/{name}")

    again = open_log(disk, clean=True, recovery_point=end)

    assert produce(again, 30) == repeated(30, 30)
    assert produce(again, 31) == Appended(end, end, -1)


def test_idle_producers_are_forgotten() -> None:
    log = new_log()
    produce(log, 0)
    log.apply_retention(NOW + 24 * 3_600_000, 0)
    assert produce(log, 0) == Appended(1, 1, -1)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4), st.integers(0, 200)), max_size=60),
    st.floats(0, 1),
    st.booleans(),
)
def test_f44_after_a_cut_the_state_is_that_of_a_log_that_never_was_longer(
    appends: list[tuple[int, int, int]], where: float, reopen: bool
) -> None:
    disk = SimDisk()
    log, twin = open_log(disk), new_log()
    cut = int(where * sum(count for _, count, _ in appends))
    following = [0, 0, 0]
    for producer, count, size in appends:
        for target in (log, twin):
            if target is log or log.log_end_offset <= cut:
                target.append_as_leader(
                    batch(
                        count,
                        size=size,
                        producer=producer,
                        epoch=0,
                        sequence=following[producer],
                    ),
                    1,
                    NOW,
                )
        following[producer] += count
    log.truncate_to(cut, NOW)
    if reopen:
        log = open_log(disk)
    assert log.log_end_offset == twin.log_end_offset
    # Recovery reads only a part of the log, so it may not know all of the last five batches.
    for producer in range(3):
        for sequence in range(following[producer] + 2):
            found = produce(log, sequence, producer=producer)
            wanted = produce(twin, sequence, producer=producer)
            forgotten = isinstance(wanted, Appended) and wanted.duplicate
            assert found == wanted or (
                forgotten and found is ErrorCode.out_of_order_sequence_number
            )


entries = st.dictionaries(
    st.integers(0, (1 << 63) - 1),
    st.tuples(
        st.integers(0, 32_767),
        st.integers(-1, 1 << 30),
        st.integers(-1, 1 << 40),
        st.integers(0, MAX_SEQUENCE),
        st.integers(0, 1_000),
        st.integers(0, 1 << 50),
    ),
    max_size=20,
)


@given(entries)
def test_a_snapshot_reads_back(table: dict[int, tuple[int, int, int, int, int, int]]) -> None:
    written = {}
    for producer, (epoch, coordinator, first, sequence, delta, offset) in table.items():
        entry = ProducerEntry(epoch)
        entry.coordinator_epoch = coordinator
        entry.transaction_first_offset = first
        entry.last_timestamp = offset
        span = BatchSpan(
            (sequence - delta) & MAX_SEQUENCE, sequence, offset, offset + delta, offset
        )
        entry.batches.append(span)
        written[producer] = entry
    read = producer_snapshots.decode(producer_snapshots.encode(written))
    assert read is not None
    assert list(read) == list(written)
    for producer, entry in written.items():
        for name in ProducerEntry.__slots__:
            assert getattr(read[producer], name) == getattr(entry, name)


@given(st.binary(max_size=200))
def test_f08_garbage_is_no_snapshot(garbage: bytes) -> None:
    assert producer_snapshots.decode(garbage) in (None, {})


def test_f08_a_torn_snapshot_is_passed_over_for_an_older_one() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for sequence in range(100):
        produce(log, sequence)
    log.close()
    snapshots = [name for name in disk.list("orders-0") if name.endswith(".snapshot")]
    for name in snapshots[-2:]:
        disk.write_file(f"orders-0/{name}", disk.read_file(f"orders-0/{name}")[:-3])
    log = open_log(disk, clean=True)
    assert produce(log, 99) == repeated(99, 99)
    assert produce(log, 100) == Appended(100, 100, -1)


def test_an_empty_log_has_no_producers() -> None:
    log = new_log()
    append(log)
    assert log.last_stable_offset(1) == 1
