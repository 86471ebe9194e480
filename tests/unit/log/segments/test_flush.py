"""When a log requests an fsync, and how far its recovery point moves."""

from dataclasses import replace

from tests.unit.log.support import NOW, SMALL, append, batch, flush, new_log, open_log

from tidelog.sim.machines.disk import SimDisk


def test_by_default_only_a_roll_asks_for_a_flush() -> None:
    log = new_log()
    append(log, batch(size=3_000))
    assert not log.needs_flush(NOW + (1 << 40))
    append(log, batch(size=3_000))
    assert log.needs_flush(NOW)
    flush(log)
    assert log.recovery_point == 2
    assert not log.needs_flush(NOW)


def test_flush_messages_counts_records() -> None:
    log = new_log(replace(SMALL, flush_messages=5))
    append(log, batch(4))
    assert not log.needs_flush(NOW)
    append(log, batch(1))
    assert log.needs_flush(NOW)


def test_flush_ms_counts_from_the_last_flush() -> None:
    log = new_log(replace(SMALL, flush_ms=1_000))
    assert not log.needs_flush(NOW + 5_000)
    assert log.next_deadline() is None
    append(log)
    assert log.next_deadline() == NOW + 1_000
    assert not log.needs_flush(NOW + 999)
    assert log.needs_flush(NOW + 1_000)


def test_one_flush_in_flight_is_not_asked_for_twice() -> None:
    log = new_log(replace(SMALL, flush_messages=1))
    append(log)
    _, up_to = log.begin_flush(NOW)
    assert not log.needs_flush(NOW)
    append(log)
    assert log.needs_flush(NOW)
    log.flushed(up_to)
    assert log.recovery_point == 1
    assert log.needs_flush(NOW)


def test_flushes_may_end_in_any_order() -> None:
    log = new_log()
    append(log)
    _, first = log.begin_flush(NOW)
    append(log)
    _, second = log.begin_flush(NOW)
    log.flushed(second)
    assert log.recovery_point == 2
    log.flushed(first)
    assert log.recovery_point == 2


def test_a_cut_during_a_flush_holds_the_recovery_point_back() -> None:
    log = new_log()
    for _ in range(10):
        append(log)
    _, up_to = log.begin_flush(NOW)
    log.truncate_to(4, NOW)
    for _ in range(10):
        append(log, epoch=2)
    log.flushed(up_to)
    assert log.recovery_point == 4


def test_a_cut_and_the_same_length_again_is_not_taken_for_synced() -> None:
    log = new_log()
    for _ in range(10):
        append(log)
    _, up_to = log.begin_flush(NOW)
    log.truncate_to(4, NOW)
    for _ in range(6):
        append(log, epoch=2)
    _, again = log.begin_flush(NOW)
    assert again == up_to
    log.flushed(up_to)  # the first flush ends; it began before the truncation
    assert log.recovery_point == 4


def test_a_flush_covers_every_segment_since_the_recovery_point() -> None:
    disk = SimDisk()
    log = open_log(disk)
    for _ in range(60):
        append(log, batch(size=150))
    files, up_to = log.begin_flush(NOW)
    rolled = len([name for name in disk.list("orders-0") if name.endswith(".log")]) - 1
    assert rolled > 1
    assert len(files) == 3 * rolled + 1
    assert up_to == 60


def test_nothing_to_flush() -> None:
    log = new_log()
    assert log.begin_flush(NOW) == ((), 0)
    log.flushed(0)
    assert log.recovery_point == 0


def test_a_file_that_is_owed_goes_with_the_first_flush() -> None:
    disk = SimDisk()
    log = open_log(disk)
    log.write_before_first_record("orders-0/partition.metadata", b"x")
    append(log)
    files, _ = log.begin_flush(NOW)
    assert disk.open("orders-0/partition.metadata") in files
    append(log)
    assert len(log.begin_flush(NOW)[0]) == 1
