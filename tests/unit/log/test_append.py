"""Appending: assigned offsets, refused batches, and rolled segments."""

import struct
from dataclasses import replace

import pytest
from crc32c import crc32c
from tests.unit.log.support import (
    DIRECTORY,
    NOW,
    SMALL,
    append,
    base_offsets,
    batch,
    headers,
    new_log,
    open_log,
    raw,
    replicated,
)

from tidelog.log.config import LOG_APPEND_TIME, LogConfig
from tidelog.log.results import Appended, AppendOrigin, AppendRefused
from tidelog.model.effects import EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.batch import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    BatchHeader,
    check,
    read_header,
    stamp_append_time,
)
from tidelog.protocol.records.records import Record, build_batch, read_records
from tidelog.sim.machines.disk import SimDisk


def refused(records: bytes | memoryview, config: LogConfig = SMALL) -> ErrorCode:
    log = new_log(config)
    result = log.append_as_leader(memoryview(bytearray(records)), 1, NOW)
    assert isinstance(result, AppendRefused), result
    assert result.message
    assert log.log_end_offset == 0
    assert log.size == 0
    return result.error


def test_a_leader_assigns_offsets_and_its_epoch_in_place() -> None:
    log = new_log()
    assert append(log, batch(3), epoch=4) == Appended(0, 2, -1)
    assert append(log, batch(2), epoch=5) == Appended(3, 4, -1)

    assert [(h.base_offset, h.leader_epoch) for h in headers(log)] == [(0, 4), (3, 5)]
    assert log.log_end_offset == 5


def test_records_are_kept_byte_for_byte_behind_the_header() -> None:
    log = new_log()
    records = batch(3)
    body = bytes(records[21:])
    append(log, records)
    assert raw(log)[21:] == body


def test_log_append_time_stamps_the_batch_and_its_checksum() -> None:
    log = new_log(LogConfig(message_timestamp_type=LOG_APPEND_TIME))
    assert log.append_as_leader(batch(2, timestamp=5), 1, NOW) == Appended(0, 1, NOW)

    stored = memoryview(raw(log))
    header = check(stored)
    assert not isinstance(header, ErrorCode)
    assert header.uses_log_append_time
    assert header.max_timestamp == NOW
    assert [record.timestamp for record in read_records(stored)] == [NOW, NOW]


@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_are_refused(magic: int) -> None:
    records = batch()
    records[16] = magic
    assert refused(records) is ErrorCode.invalid_record


def test_a_magic_that_nobody_knows_is_corrupt() -> None:
    records = batch()
    records[16] = 3
    assert refused(records) is ErrorCode.corrupt_message


def test_a_flipped_bit_is_corrupt() -> None:
    records = batch()
    records[-1] ^= 1
    assert refused(records) is ErrorCode.corrupt_message


@pytest.mark.parametrize("size", [1, 12, 60, 61, 80])
def test_half_a_batch_is_none(size: int) -> None:
    assert refused(batch()[:size]) is ErrorCode.invalid_record


@pytest.mark.parametrize("tail", [bytes(12), bytes(61), b"\xff" * 61])
def test_garbage_behind_a_batch_is_corrupt(tail: bytes) -> None:
    assert refused(bytes(batch()) + tail) is ErrorCode.corrupt_message


@pytest.mark.parametrize("tail", [b"\0", batch()[:30]])
def test_half_a_batch_behind_a_batch_is_refused(tail: bytes) -> None:
    assert refused(bytes(batch()) + bytes(tail)) is ErrorCode.invalid_record


def test_no_batch_at_all_is_refused() -> None:
    assert refused(b"") is ErrorCode.invalid_record


def test_two_batches_in_one_produce_are_refused() -> None:
    assert refused(bytes(batch()) + bytes(batch())) is ErrorCode.invalid_record


def test_a_count_that_does_not_match_the_offsets_is_refused() -> None:
    records = [Record(None, b"v", NOW)]
    assert refused(build_batch(records, last_offset_delta=5)) is ErrorCode.invalid_record


def lying(count: int = 1, body: bytes | None = None, attributes: int = 0) -> bytes:
    """A batch of one record with wrong header fields and a valid checksum."""
    made = bytearray(batch())
    if body is not None:
        made[HEADER_SIZE:] = body
    struct.pack_into(">i", made, 8, len(made) - LOG_OVERHEAD)
    struct.pack_into(">h", made, 21, attributes)
    struct.pack_into(">i", made, 23, count - 1)
    struct.pack_into(">i", made, 57, count)
    struct.pack_into(">I", made, 17, crc32c(bytes(made[21:])))
    return bytes(made)


def test_a_batch_that_tells_the_truth_is_taken() -> None:
    assert append(new_log(SMALL), memoryview(bytearray(lying()))).last_offset == 0


@pytest.mark.parametrize(
    "records",
    [
        lying(count=3),
        lying(count=1_000_000, body=b""),
        lying(count=2**31 - 1, body=b""),
        lying(count=1_000, body=bytes(3_000)),
        lying(body=b"\xff" * 20),
        lying(body=bytes(batch()[HEADER_SIZE:]) + b"\0"),
        lying(body=bytes(batch()[HEADER_SIZE:-1])),
        lying(count=30, body=b"\x02\0" * 200),
    ],
)
def test_a_count_of_records_that_are_not_there_is_refused(records: bytes) -> None:
    """Otherwise consumers would stop at this batch, or offsets would have gaps."""
    assert refused(records) is ErrorCode.invalid_record


@pytest.mark.parametrize("codec", [1, 3, 4])
@pytest.mark.parametrize("body", [None, b"", b"\x1f", bytes(30)])
def test_what_is_not_compressed_as_it_says_is_corrupt(codec: int, body: bytes | None) -> None:
    assert refused(lying(body=body, attributes=codec)) is ErrorCode.corrupt_message


def test_an_empty_batch_is_refused() -> None:
    assert refused(build_batch([])) is ErrorCode.invalid_record


def test_a_base_offset_other_than_zero_is_refused() -> None:
    assert refused(build_batch([Record(None, b"v", NOW)], 7)) is ErrorCode.invalid_record


def test_control_records_from_a_client_are_refused() -> None:
    records = build_batch([Record(b"\0\0\0\0", b"", NOW)], is_control=True)
    assert refused(records) is ErrorCode.invalid_record


def test_a_producer_without_a_sequence_is_refused() -> None:
    assert refused(batch(producer=7, epoch=0, sequence=-1)) is ErrorCode.invalid_record


def test_a_batch_larger_than_max_message_bytes_is_refused() -> None:
    config = LogConfig(max_message_bytes=200)
    assert refused(batch(size=500), config) is ErrorCode.message_too_large


def test_a_batch_larger_than_a_segment_is_refused() -> None:
    config = LogConfig(segment_bytes=200)
    assert refused(batch(size=500), config) is ErrorCode.record_list_too_large


def test_a_client_that_claims_log_append_time_gets_create_time() -> None:
    log = new_log()
    claimed = batch(2)
    stamp_append_time(claimed, 0, read_header(claimed), NOW)

    assert append(log, claimed) == Appended(0, 1, -1)
    header = check(claimed)
    assert isinstance(header, BatchHeader)
    assert not header.uses_log_append_time


def test_log_append_time_is_the_brokers_to_claim() -> None:
    claimed = batch()
    stamp_append_time(claimed, 0, read_header(claimed), NOW)
    config = LogConfig(message_timestamp_type=LOG_APPEND_TIME)
    assert refused(claimed, config) is ErrorCode.invalid_timestamp


def test_records_that_are_to_blame_are_named() -> None:
    records = [Record(b"k", b"", NOW), Record(None, b"", NOW), Record(b"k", b"", NOW + 10**9)]
    log = new_log(LogConfig(cleanup_policy=frozenset({"compact"})))

    result = log.append_as_leader(memoryview(bytearray(build_batch(records))), 1, NOW)

    assert isinstance(result, AppendRefused)
    assert result.error is ErrorCode.invalid_timestamp
    assert [index for index, _ in result.record_errors] == [1, 2]


def test_a_timestamp_too_far_ahead_is_refused() -> None:
    assert refused(batch(timestamp=NOW + 3_600_001)) is ErrorCode.invalid_timestamp


def test_one_record_too_old_is_refused_where_the_topic_bounds_it() -> None:
    config = LogConfig(message_timestamp_before_max_ms=1_000)
    records = [Record(b"k", b"v", NOW), Record(b"k", b"v", NOW - 1_001)]
    assert refused(build_batch(records), config) is ErrorCode.invalid_timestamp


def test_a_compacted_topic_wants_keys() -> None:
    config = LogConfig(cleanup_policy=frozenset({"compact"}))
    assert refused(build_batch([Record(None, b"v", NOW)]), config) is ErrorCode.invalid_record
    append(new_log(config), batch())


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_passes_through(compression: str) -> None:
    log = new_log()
    append(log, batch(5, compression=compression))
    assert len(read_records(raw(log))) == 5


def test_a_segment_is_rolled_when_the_next_batch_would_not_fit() -> None:
    disk = SimDisk()
    log = open_log(disk, LogConfig(segment_bytes=1_000, max_message_bytes=1_000))
    for _ in range(6):
        append(log, batch(size=300))
    logs = [name for name in disk.list(DIRECTORY) if name.endswith(".log")]
    assert logs == [f"{base:020d}.log" for base in (0, 2, 4)]
    assert all(disk.size(f"{DIRECTORY}/{name}") <= 1_000 for name in logs)
    assert base_offsets(log) == list(range(6))


def test_a_segment_is_rolled_by_the_age_of_its_first_record() -> None:
    log = new_log(LogConfig(segment_ms=1_000))
    append(log, batch(timestamp=NOW - 1_500))
    append(log, batch(timestamp=NOW - 500))
    assert log.first_segment_offset == 0
    append(log, batch(timestamp=NOW - 499))
    assert log.apply_retention(NOW + (8 << 30), 2) == [0]
    assert log.first_segment_offset == 2


def test_jitter_rolls_a_segment_earlier_and_always_at_the_same_age() -> None:
    def first_roll() -> int:
        log = new_log(LogConfig(segment_ms=10_000, segment_jitter_ms=9_000))
        append(log, batch(timestamp=NOW - 10_000))
        for age in range(0, 10_000, 50):
            append(log, batch(timestamp=NOW - 10_000 + age))
            if log.needs_flush(NOW):
                return age
        return 10_000

    assert 1_000 <= first_roll() < 10_000
    assert first_roll() == first_roll()


def test_a_segment_is_rolled_when_its_index_is_full() -> None:
    disk = SimDisk()
    log = open_log(disk, LogConfig(segment_index_bytes=24, index_interval_bytes=10))
    for _ in range(10):
        append(log)
    assert len([name for name in disk.list(DIRECTORY) if name.endswith(".log")]) > 2
    assert base_offsets(log) == list(range(10))


def test_a_segment_is_rolled_before_a_relative_offset_overflows() -> None:
    log = new_log()
    assert isinstance(log.append_as_follower(replicated(0, 1)), Appended)
    far = 1 << 31
    assert isinstance(log.append_as_follower(replicated(far, 1)), Appended)
    assert base_offsets(log) == [0, far]
    assert log.log_end_offset == far + 1


def test_a_follower_takes_many_batches_as_they_are() -> None:
    leader, follower = new_log(), new_log()
    for number in range(40):
        append(leader, batch(1 + number % 3, size=number * 7), epoch=1 + number // 10)
    while follower.log_end_offset < leader.log_end_offset:
        found = leader.read(
            follower.log_end_offset, 2_000, leader.log_end_offset, at_least_one=True
        )
        assert not isinstance(found, ErrorCode)
        assert found.slice is not None
        chunk = found.slice.file.read(found.slice.position, found.slice.length)
        assert isinstance(follower.append_as_follower(memoryview(chunk)), Appended)
    assert raw(follower) == raw(leader)
    assert [follower.epoch_end(e) for e in range(5)] == [leader.epoch_end(e) for e in range(5)]


def test_f06_who_led_without_a_record_and_follows_again_forgets_its_epoch() -> None:
    """The simulator found this fault: the log kept epoch 3, so it truncated records of epoch 2."""
    log = new_log()
    log.append_as_follower(replicated(0, 1, 5))
    log.append_as_follower(replicated(5, 2, 5))
    log.assign_epoch(3, 10)

    log.append_as_follower(replicated(10, 2, 4))

    assert log.epoch_at(13) == 2
    assert log.latest_epoch == 2
    assert log.epoch_end(1) == EpochEnd(1, 5)
    assert log.epoch_end(2) == EpochEnd(2, 14)
    log.append_as_follower(replicated(14, 4, 1))
    assert log.epoch_end(3) == EpochEnd(2, 14)


def test_a_follower_refuses_a_corrupt_batch_and_all_with_it() -> None:
    log = new_log()
    good, bad = replicated(0, 1), replicated(1, 1)
    bad[-1] ^= 1
    result = log.append_as_follower(memoryview(bytes(good) + bytes(bad)))
    assert isinstance(result, AppendRefused)
    assert result.error is ErrorCode.corrupt_message
    assert log.log_end_offset == 0


def test_a_follower_refuses_offsets_that_it_has() -> None:
    log = new_log()
    log.append_as_follower(replicated(0, 1, 5))
    result = log.append_as_follower(replicated(3, 1, 5))
    assert isinstance(result, AppendRefused)
    assert log.log_end_offset == 5


def test_an_empty_follower_may_start_inside_the_leaders_first_batch() -> None:
    log = new_log()
    log.truncate_fully_and_start_at(7, NOW)
    result = log.append_as_follower(replicated(5, 1, 5))
    assert result == Appended(5, 9, -1)
    assert (log.log_start_offset, log.log_end_offset) == (7, 10)
    assert base_offsets(log) == [5]


def test_our_own_logs_take_many_batches_and_control_records() -> None:
    log = new_log()
    control = build_batch([Record(b"\0\0\0\2", b"", NOW)], is_control=True)
    records = memoryview(bytearray(control + bytes(batch(3))))
    assert log.append_as_leader(records, 9, NOW, AppendOrigin.RAFT_LEADER) == Appended(0, 3, -1)
    assert [(h.base_offset, h.leader_epoch) for h in headers(log)] == [(0, 9), (1, 9)]


def test_a_full_disk_leaves_the_log_as_it_was() -> None:
    disk = SimDisk()
    log = open_log(disk)
    append(log)
    before = (log.log_end_offset, raw(log), log.size)
    disk.faults.capacity = disk.used + 10
    with pytest.raises(OSError, match="No space"):
        log.append_as_leader(batch(), 1, NOW)
    assert (log.log_end_offset, raw(log), log.size) == before

    disk.faults.capacity = None
    assert append(log) == Appended(1, 1, -1)
    assert base_offsets(log) == [0, 1]


def test_a_full_disk_at_a_roll_is_no_different() -> None:
    disk = SimDisk()
    log = open_log(disk, LogConfig(segment_bytes=150, max_message_bytes=150))
    append(log)
    disk.faults.capacity = disk.used + 10
    for _ in range(3):
        with pytest.raises(OSError, match="No space"):
            log.append_as_leader(batch(), 1, NOW)
    disk.faults.capacity = None
    append(log)
    assert base_offsets(log) == [0, 1]
    assert base_offsets(open_log(disk)) == [0, 1]


def test_the_patched_header_is_the_stored_one() -> None:
    records = batch()
    log = new_log()
    append(log)
    append(log, records, epoch=6)
    assert read_header(records).base_offset == 1
    assert bytes(records) == raw(log, 1)


@pytest.mark.parametrize("limit", ["max_message_bytes", "segment_bytes"])
def test_f61_a_coordinators_batch_is_bounded_as_a_clients_is(limit: str) -> None:
    log = new_log(replace(SMALL, **{limit: 500}))
    by = AppendOrigin.COORDINATOR
    too_large = memoryview(bytearray(build_batch([Record(b"k", bytes(600), NOW)])))

    outcome = log.append_as_leader(too_large, 1, NOW, by)

    assert isinstance(outcome, AppendRefused)
    assert outcome.error is ErrorCode.message_too_large
    assert log.log_end_offset == 0
    assert log.append_as_leader(batch(1), 1, NOW, by) == Appended(0, 0, -1)


def test_f54_a_follower_takes_nothing_behind_a_gap_before_it_has_asked_for_it() -> None:
    log = new_log()
    gap = bytes(replicated(0, 1)) + bytes(replicated(5, 1)) + bytes(replicated(6, 1))
    assert log.append_as_follower(memoryview(bytearray(gap))) == Appended(0, 0, -1)
    assert log.log_end_offset == 1
    # The leader has no batch at offset 1, because its cleaner removed it.
    assert isinstance(log.append_as_follower(replicated(5, 1)), Appended)
    assert log.was_cleaned
    assert base_offsets(log) == [0, 5]


def test_f54_a_follower_refuses_an_epoch_that_its_leader_cannot_know() -> None:
    log = new_log()
    refused = log.append_as_follower(replicated(0, 9), 8)
    assert isinstance(refused, AppendRefused)
    assert refused.error is ErrorCode.corrupt_message
    assert log.log_end_offset == 0
