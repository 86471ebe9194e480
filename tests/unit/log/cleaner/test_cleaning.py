"""Compaction of one log: which records stay, which batches stay, and what readers find."""

from dataclasses import replace

import pytest
from tests.unit.log.cleaner.compacting import (
    COMPACTED,
    DAY,
    MIXED,
    batches,
    begin,
    clean,
    committed,
    end_transaction,
    opened,
    put,
    seal,
    steps,
    uncommitted,
    values,
    write,
)
from tests.unit.log.support import (
    DIRECTORY,
    NOW,
    flush,
    max_timestamp_offset,
    offset_for_timestamp,
    run,
)

from tidelog.log.partition import PartitionLog
from tidelog.log.results import Appended, AppendRefused, ReadResult, TimestampOffset
from tidelog.protocol.records.batch import read_header
from tidelog.protocol.records.records import Header, Record, build_batch, read_records
from tidelog.sim.machines.disk import SimDisk


def new_log() -> PartitionLog:
    return opened(SimDisk())[1]


def offsets(log: PartitionLog) -> list[int]:
    return [one.offset for one in uncommitted(log) if one.key != b"filler"]


def test_the_last_record_of_each_key_stays_at_its_offset() -> None:
    log = new_log()
    for number in range(30):
        put(log, f"key {number % 3}", f"value {number}")
    seal(log)
    end = log.log_end_offset

    cleaned_to = clean(log)

    assert offsets(log) == [27, 28, 29]
    assert values(uncommitted(log)) == {
        "key 0": "value 27",
        "key 1": "value 28",
        "key 2": "value 29",
    }
    assert 30 < cleaned_to < end == log.log_end_offset


def test_a_pass_without_a_change_copies_every_batch_whole() -> None:
    log = new_log()
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        write(
            log,
            [Record(f"{codec} {n}".encode(), b"v" * 40, NOW + n) for n in range(3)],
            compression=codec,
        )
    seal(log)
    before = [bytes(batch) for header, batch in batches(log) if header.last_offset < 15]

    clean(log)

    assert [bytes(batch) for header, batch in batches(log) if header.last_offset < 15] == before


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_keeps_its_offsets_producer_and_records_when_some_are_dropped(codec: str) -> None:
    log = new_log()
    headers = (Header("h", b"1"), Header("none", None))
    records = [
        Record(f"key {n}".encode(), f"old {n}".encode(), NOW + 10 * n, headers) for n in range(4)
    ]
    write(log, records, producer=7, sequence=5, compression=codec)
    put(log, "key 0", "new")
    put(log, "key 2", "new")
    seal(log)
    original = read_header(batches(log)[0][1])

    clean(log)

    header, batch = batches(log)[0]
    assert [record.offset for record in read_records(batch)] == [1, 3]
    assert [record[:4] for record in read_records(batch)] == [records[1][:4], records[3][:4]]
    assert header.compression == original.compression
    kept = ("base_offset", "last_offset_delta", "producer_id", "base_sequence", "leader_epoch")
    for name in kept:
        assert getattr(header, name) == getattr(original, name)
    assert (header.base_timestamp, header.max_timestamp) == (NOW + 10, NOW + 30)


def test_records_without_a_key_are_removed() -> None:
    _, log = opened(SimDisk(), MIXED)
    write(log, [Record(None, b"no key", NOW)])
    put(log, "key", "value")
    log.update_config(COMPACTED)
    seal(log)

    clean(log)

    assert offsets(log) == [1]


def test_a_compacted_topic_refuses_records_without_a_key() -> None:
    log = new_log()
    batch = memoryview(bytearray(build_batch([Record(None, b"value", NOW)])))
    refused = log.append_as_leader(batch, 1, NOW)
    assert isinstance(refused, AppendRefused)
    assert refused.error.name == "invalid_record"
    assert refused.record_errors[0][1] == "Compacted topic cannot accept message without key"


# -- tombstones and delete horizons ----------------------------------------------------------------


def test_f78_a_tombstone_stays_until_its_horizon_and_then_goes() -> None:
    log = new_log()
    put(log, "key", "value")
    tombstone = put(log, "key", None)
    seal(log)

    cleaned_to = clean(log, 0, NOW)
    header = next(header for header, _ in batches(log) if header.base_offset == tombstone)
    assert header.attributes & 0x40
    assert header.base_timestamp == NOW + DAY  # the horizon: now + delete.retention.ms
    [record] = read_records({h.base_offset: b for h, b in batches(log)}[tombstone])
    assert (record.value, record.timestamp) == (None, NOW)

    seal(log)
    cleaned_to = clean(log, cleaned_to, NOW + DAY - 1)
    assert offsets(log) == [tombstone]
    seal(log)
    clean(log, cleaned_to, NOW + DAY)
    assert offsets(log) == []


def test_f78_the_horizon_is_set_once() -> None:
    log = new_log()
    tombstone = put(log, "key", None)
    seal(log)
    cleaned_to = clean(log, 0, NOW)
    seal(log)
    clean(log, cleaned_to, NOW + DAY // 2)
    header = next(header for header, _ in batches(log) if header.base_offset == tombstone)
    assert header.base_timestamp == NOW + DAY


# -- transactions ----------------------------------------------------------------------------------


def transaction(log: PartitionLog, producer: int, key: str, value: str, *, abort: bool) -> int:
    record = Record(key.encode(), value.encode(), NOW)
    write(log, [record], producer=producer, transactional=True)
    return end_transaction(log, producer, 0, abort=abort)


def test_aborted_records_are_removed_and_do_not_remove_others() -> None:
    log = new_log()
    put(log, "key", "kept")
    transaction(log, 7, "key", "aborted", abort=True)
    seal(log)

    clean(log)

    assert values(uncommitted(log)) == values(committed(log)) == {"key": "kept"}


def test_f80_a_marker_stays_while_records_of_its_transaction_stay() -> None:
    log = new_log()
    commit = transaction(log, 7, "key", "value", abort=False)
    seal(log)
    cleaned_to = 0
    for day in range(4):
        cleaned_to = clean(log, cleaned_to, NOW + 2 * day * DAY)
        assert commit in [header.base_offset for header, _ in batches(log)]
        seal(log)
    put(log, "key", "newer")
    seal(log)
    for day in range(4, 8):
        cleaned_to = clean(log, cleaned_to, NOW + 2 * day * DAY)
        seal(log)
    # The last batch of an active producer stays without records, and with it the marker.
    assert [h.record_count for h, _ in batches(log) if h.producer_id == 7] == [0, 1]
    log.update_config(replace(COMPACTED, producer_id_expiration_ms=1))
    log.apply_retention(NOW, log.log_end_offset, DAY)
    for day in range(8, 12):
        cleaned_to = clean(log, cleaned_to, NOW + 2 * day * DAY)
        seal(log)
    assert [h.record_count for h, _ in batches(log) if h.producer_id == 7] == []


def test_f80_an_abort_marker_outlives_the_records_in_every_read() -> None:
    log = new_log()
    put(log, "key", "kept")
    record = [Record(b"other", b"aborted", NOW)]
    write(log, record, producer=7, transactional=True)
    for _ in range(12):
        write(log, [Record(b"filler", bytes(200), NOW)])  # the marker is in a later segment
    marker = end_transaction(log, 7, 0, abort=True)
    put(log, "other", "committed")
    seal(log)
    log.update_config(replace(COMPACTED, producer_id_expiration_ms=1))
    log.apply_retention(NOW, log.log_end_offset, DAY)
    cleaned_to = 0
    for day in range(5):
        cleaned_to = clean(log, cleaned_to, NOW + 2 * day * DAY)
        assert values(committed(log)) == {"key": "kept", "other": "committed"}
        seal(log)
    assert marker not in [header.base_offset for header, _ in batches(log)]


def test_nothing_at_or_past_an_open_transaction_is_cleaned() -> None:
    log = new_log()
    for number in range(40):
        put(log, "key", f"value {number}")
    write(log, [Record(b"open", b"", NOW)], producer=7, transactional=True)
    seal(log)
    assert log.find_cleanable(0, log.log_end_offset, NOW).end <= 40


# -- producers -------------------------------------------------------------------------------------


def test_f81_the_last_sequence_of_a_producer_survives_compaction_and_a_restart() -> None:
    disk = SimDisk()
    directory, log = opened(disk)
    write(log, [Record(b"key", b"first", NOW)], producer=7, sequence=0)
    last = write(log, [Record(b"key", b"second", NOW)], producer=7, sequence=1)
    put(log, "key", "by another")
    seal(log)
    clean(log)
    assert [h.record_count for h, _ in batches(log) if h.producer_id == 7] == [0]
    directory.close({}, 1)
    for name in disk.list(DIRECTORY):
        if name.endswith(".snapshot"):
            disk.remove(f"{DIRECTORY}/{name}")
    disk.kill()

    _, again = opened(disk)
    repeated = build_batch(
        [Record(b"key", b"second", NOW)], producer_id=7, producer_epoch=0, base_sequence=1
    )
    appended = again.append_as_leader(memoryview(bytearray(repeated)), 1, NOW)

    assert isinstance(appended, Appended)
    assert appended.duplicate
    assert appended.base_offset == last.base_offset


# -- what may be cleaned, and in which order -------------------------------------------------------


def test_the_active_segment_and_unflushed_segments_are_not_cleaned() -> None:
    log = new_log()
    for number in range(60):
        put(log, "key", f"value {number}")
    assert log.find_cleanable(0, log.log_end_offset, NOW).dirty_bytes == 0
    flush(log)
    found = log.find_cleanable(0, log.log_end_offset, NOW)
    assert found.dirty_bytes > 0
    assert found.end < log.log_end_offset


def test_the_compaction_lag_keeps_young_segments_dirty_and_makes_old_ones_due() -> None:
    log = new_log()
    for number in range(60):
        put(log, "key", f"value {number}", NOW + number * 1_000)
    flush(log)
    lagging = replace(COMPACTED, min_compaction_lag_ms=10_000)
    log.update_config(lagging)
    wall = NOW + 40_000
    end = log.find_cleanable(0, log.log_end_offset, wall).end
    assert 0 < end <= 31
    log.update_config(replace(COMPACTED, max_compaction_lag_ms=30_000))
    overdue = log.find_cleanable(0, log.log_end_offset, wall)
    assert overdue.overdue_ms == 10_000
    assert overdue.is_due(replace(COMPACTED, min_cleanable_dirty_millionths=1_000_000))


def test_a_log_is_due_when_its_dirty_ratio_is_above_the_minimum() -> None:
    log = new_log()
    for number in range(30):
        put(log, f"key {number}", "x" * 50)
    seal(log)
    assert log.find_cleanable(0, log.log_end_offset, NOW).dirty_millionths == 1_000_000
    cleaned_to = clean(log)
    found = log.find_cleanable(cleaned_to, log.log_end_offset, NOW)
    assert found.dirty_bytes == 0
    assert not found.is_due(COMPACTED)


def test_segments_are_grouped_up_to_the_size_of_a_segment() -> None:
    disk = SimDisk()
    _, log = opened(disk)
    for number in range(200):
        put(log, f"key {number % 5}", f"value {number}")
    seal(log)
    before = len([name for name in disk.list(DIRECTORY) if name.endswith(".log")])
    cleaned_to = clean(log)
    clean(log, cleaned_to - 1)
    after = [name for name in disk.list(DIRECTORY) if name.endswith(".log")]
    assert len(after) < before // 2
    assert not [name for name in disk.list(DIRECTORY) if name.endswith((".cleaned", ".swap"))]


def test_a_small_map_needs_several_passes_and_loses_nothing() -> None:
    log = new_log()
    for number in range(120):
        put(log, f"key {number % 40}", f"value {number}")
    seal(log)
    cleaned_to = passes = 0
    while cleaned_to < 120:
        cleaning = begin(log, cleaned_to, NOW, buffer_bytes=24 * 20)
        for _ in steps(cleaning):
            pass
        assert cleaning.cleaned_to > cleaned_to
        cleaned_to, passes = cleaning.cleaned_to, passes + 1
        assert values(uncommitted(log)) == {f"key {n % 40}": f"value {n}" for n in range(80, 120)}
    assert passes > 3
    assert len(offsets(log)) == 40


# -- readers afterwards ----------------------------------------------------------------------------


def test_a_read_at_a_removed_offset_goes_to_the_next_record() -> None:
    log = new_log()
    for number in range(30):
        put(log, f"key {number % 3}", f"value {number}")
    seal(log)
    clean(log)
    for offset in range(28):
        result = log.read(offset, 1, log.log_end_offset, at_least_one=True)
        assert isinstance(result, ReadResult)
        assert result.slice is not None
        file, position, _ = result.slice
        assert read_header(file.read(position, 61)).base_offset == max(offset, 27)


def test_searches_by_time_and_leader_epochs_are_right_after_compaction() -> None:
    log = new_log()
    for number in range(40):
        record = Record(f"key {number % 4}".encode(), b"v", NOW + number * 10)
        write(log, [record], leader_epoch=1 + number // 10)
    seal(log)
    epochs = log.epoch_starts
    clean(log)

    assert offset_for_timestamp(log, NOW + 55, 40) == TimestampOffset(36, NOW + 360, 4)
    assert offset_for_timestamp(log, NOW + 370, 40) == TimestampOffset(37, NOW + 370, 4)
    newest = max_timestamp_offset(log, log.log_end_offset)
    assert isinstance(newest, TimestampOffset)
    assert newest.offset == 39
    assert log.epoch_starts == epochs
    assert [log.epoch_end(epoch).end_offset for epoch in (1, 2, 3)] == [10, 20, 30]
    assert log.epoch_starts == epochs


def test_a_log_that_was_verified_halfway_is_replaced_without_a_complaint() -> None:
    disk = SimDisk()
    directory, log = opened(disk)
    for number in range(60):
        put(log, f"key {number % 3}", f"value {number}")
    seal(log)
    directory.close({}, 1)
    disk.kill()
    _, again = opened(disk)
    verification = again.begin_verification()
    assert verification is not None
    job = verification.next_slice()
    assert job is not None
    clean(again)
    verification.take(run(job))
    while (job := verification.next_slice()) is not None:
        assert job.offset > 60  # a replaced segment needs no verification
        verification.take(run(job))
    assert again.damages == ()
    assert values(uncommitted(again)) == {f"key {n % 3}": f"value {n}" for n in range(57, 60)}


# -- changes during a pass -------------------------------------------------------------------------


def test_a_truncation_of_the_cleaned_range_cancels_the_pass() -> None:
    disk = SimDisk()
    _, log = opened(disk)
    for number in range(60):
        put(log, f"key {number % 3}", f"value {number}")
    seal(log)
    cleaning = begin(log)
    running = steps(cleaning)
    for _ in range(3):
        next(running)
    log.truncate_to(20, NOW)
    assert cleaning.is_cancelled
    assert len(list(running)) <= 1  # the job that was under way ends
    assert not [name for name in disk.list(DIRECTORY) if name.endswith((".cleaned", ".swap"))]


def test_a_truncation_that_makes_a_cleaned_segment_active_cancels_the_pass() -> None:
    log = new_log()
    for number in range(60):
        put(log, f"key {number % 3}", f"value {number}")
    seal(log)
    cleaning = begin(log)
    running = steps(cleaning)
    next(running)
    # The active segment goes, and the last segment of the pass becomes active.
    log.truncate_to(cleaning.cleanable.end, NOW)
    assert log.log_end_offset == cleaning.cleanable.end
    for _ in running:
        pass
    assert cleaning.is_cancelled
    put(log, "key 0", "new")
    assert values(uncommitted(log))["key 0"] == "new"


def test_a_log_that_starts_again_cancels_the_pass() -> None:
    log = new_log()
    for number in range(60):
        put(log, f"key {number % 3}", f"value {number}")
    seal(log)
    cleaning = begin(log)
    log.truncate_fully_and_start_at(1_000, NOW)
    assert cleaning.is_cancelled


def test_a_segment_that_retention_deletes_during_a_pass_is_not_put_back() -> None:
    log = new_log()
    for number in range(60):
        put(log, f"key {number % 3}", f"value {number}")
    seal(log)
    cleaning = begin(log)
    log.advance_log_start(30)
    log.apply_retention(NOW, log.log_end_offset)
    for _ in steps(cleaning):
        pass
    assert cleaning.is_cancelled
    assert offsets(log)[0] >= 20


def test_a_log_with_both_policies_is_compacted_and_old_segments_are_deleted() -> None:
    log = new_log()
    both = replace(COMPACTED, cleanup_policy=frozenset({"compact", "delete"}), retention_ms=DAY)
    log.update_config(both)
    for number in range(30):
        put(log, f"key {number}", "old", NOW - 2 * DAY)
    for number in range(30, 120):
        put(log, f"key {number % 3}", f"value {number}", NOW)
    seal(log)
    clean(log, 0, NOW)
    assert values(uncommitted(log))["key 3"] == "old"
    log.apply_retention(NOW, log.log_end_offset)
    left = values(uncommitted(log))
    assert "key 3" not in left
    assert {key: left[key] for key in ("key 0", "key 1", "key 2")} == {
        "key 0": "value 117",
        "key 1": "value 118",
        "key 2": "value 119",
    }
