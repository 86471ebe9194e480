"""A log directory: partitions, checkpoints, deletion, clean and unclean shutdowns."""

from uuid import UUID

import pytest
from tests.unit.log.support import NOW, SMALL, append, base_offsets, batch, flush, raw

from tidelog.log.directory import MANY, LogDirectory
from tidelog.model.ids import TopicPartition
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
ID = UUID(int=5)


def opened(disk: SimDisk) -> LogDirectory:
    return LogDirectory(disk, SeededDice(1))


def filled(disk: SimDisk, count: int = 30) -> LogDirectory:
    directory = opened(disk)
    for partition in (A, B):
        log = directory.open(partition, ID, SMALL, NOW)
        for _ in range(count):
            append(log, batch(size=100))
    return directory


def test_a_new_directory_is_empty_and_not_clean() -> None:
    directory = opened(SimDisk())
    assert directory.partitions() == []
    assert not directory.clean_shutdown
    assert directory.meta is None


def test_a_partition_is_made_on_first_use_and_opened_once() -> None:
    disk = SimDisk()
    directory = opened(disk)
    assert directory.log(A) is None
    log = directory.open(A, ID, SMALL, NOW)
    assert directory.open(A, ID, SMALL, NOW) is log
    assert directory.log(A) is log
    assert directory.partitions() == [A]
    assert directory.topic_id(A) == ID
    assert opened(disk).partitions() == [A]


def test_a_clean_shutdown_is_remembered_until_a_log_changes() -> None:
    disk = SimDisk()
    directory = filled(disk)
    directory.close({A: 20, B: 30}, broker_epoch=9)

    directory = opened(disk)
    assert directory.clean_shutdown
    assert directory.previous_broker_epoch == 9
    assert directory.high_watermark(A) == 20
    log = directory.open(A, ID, SMALL, NOW)
    assert log.recovery.scanned_bytes == 0
    assert log.log_end_offset == 30
    assert opened(disk).clean_shutdown, "nothing has changed"
    append(log)
    # The broker is killed before it has opened B.
    assert not opened(disk).clean_shutdown


def test_an_unclean_end_scans_from_the_checkpoint() -> None:
    disk = SimDisk()
    directory = filled(disk)
    log = directory.log(A)
    assert log is not None
    flush(log)
    directory.write_checkpoints({A: 10})

    directory = opened(disk)
    assert not directory.clean_shutdown
    scanned = [directory.open(p, ID, SMALL, NOW).recovery.scanned_bytes for p in (A, B)]
    assert scanned[0] < scanned[1]
    assert directory.high_watermark(A) == 10
    assert directory.high_watermark(B) == 0


def test_f11_what_a_killed_broker_left_survives_power_loss_once_it_is_read() -> None:
    for seed in range(20):
        disk = SimDisk()
        filled(disk)
        disk.kill()
        written = raw(opened(disk).open(A, ID, SMALL, NOW))
        assert written
        disk.crash(SeededDice(seed))
        assert raw(opened(disk).open(A, ID, SMALL, NOW)) == written


def test_the_clean_mark_cannot_come_back_after_power_loss() -> None:
    for seed in range(20):
        disk = SimDisk()
        filled(disk).close({})
        directory = opened(disk)
        append(directory.open(A, ID, SMALL, NOW))
        disk.crash(SeededDice(seed))
        assert not opened(disk).clean_shutdown


@pytest.mark.parametrize("content", [b"", b"\0" * 30, b"0\n2\norders 0 5", b"nonsense"])
@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
    ],
)
def test_f08_a_bad_checkpoint_is_noted_and_does_no_harm(name: str, content: bytes) -> None:
    disk = SimDisk()
    directory = filled(disk)
    written = raw(directory.open(A, ID, SMALL, NOW))
    directory.write_checkpoints({A: 10, B: 10})
    disk.write_file(name, content)

    directory = opened(disk)
    assert len(directory.notes) == 1
    assert name in directory.notes[0]
    assert raw(directory.open(A, ID, SMALL, NOW)) == written


def test_checkpoints_keep_what_was_not_opened() -> None:
    disk = SimDisk()
    filled(disk).close({A: 30, B: 30})
    directory = opened(disk)
    directory.open(A, ID, SMALL, NOW)
    directory.write_checkpoints({A: 25})
    text = disk.read_file("replication-offset-checkpoint")
    assert text == b"0\n2\norders 0 25\norders 1 30\n"
    assert disk.read_file("recovery-point-offset-checkpoint") == b"0\n2\norders 0 30\norders 1 30\n"


def test_the_log_start_is_checkpointed_only_where_it_is_not_a_segments() -> None:
    disk = SimDisk()
    directory = filled(disk)
    for partition in (A, B):
        log = directory.open(partition, ID, SMALL, NOW)
        log.advance_log_start(7)
    directory.write_checkpoints({})
    assert disk.read_file("log-start-offset-checkpoint") == b"0\n2\norders 0 7\norders 1 7\n"
    directory = opened(disk)
    assert directory.open(A, ID, SMALL, NOW).log_start_offset == 7


def test_a_deleted_partition_is_renamed_and_later_removed() -> None:
    disk = SimDisk()
    directory = filled(disk)
    directory.delete(A, NOW, 60_000)
    assert directory.partitions() == [B]
    assert directory.log(A) is None
    (gone,) = [name for name in disk.list("") if name.startswith("orders-0")]
    assert gone.endswith("-delete")
    assert directory.next_deadline() == NOW + 60_000

    directory.purge(NOW + 59_999)
    assert disk.exists(gone)
    directory.purge(NOW + 60_000)
    assert not disk.exists(gone)
    assert directory.next_deadline() is None


def test_a_restart_finishes_a_deletion() -> None:
    disk = SimDisk()
    filled(disk).delete(A, NOW, 60_000)
    directory = opened(disk)
    assert directory.partitions() == [B]
    directory.purge(NOW)
    assert any(name.startswith("orders-0") for name in disk.list(""))
    directory.purge(NOW + 60_000)
    assert not any(name.startswith("orders-0") for name in disk.list(""))


def test_a_partition_that_does_not_belong_here_is_set_aside() -> None:
    disk = SimDisk()
    directory = filled(disk)
    directory.set_aside(A)
    (stray,) = [name for name in disk.list("") if name.startswith("orders-0")]
    assert stray.endswith("-stray")
    assert directory.partitions() == opened(disk).partitions() == [B]
    assert directory.strays == opened(disk).strays == [stray]


def test_f52_a_namesake_does_not_inherit_offsets() -> None:
    disk = SimDisk()
    directory = filled(disk)
    log = directory.open(A, ID, SMALL, NOW)
    flush(log)
    log.advance_log_start(20)
    directory.write_checkpoints({A: 30})
    directory.delete(A, NOW, 0)

    log = directory.open(A, UUID(int=6), SMALL, NOW)
    for _ in range(3):
        append(log)
    assert base_offsets(log) == [0, 1, 2]
    directory = opened(disk)  # after kill -9
    log = directory.open(A, UUID(int=6), SMALL, NOW)
    assert base_offsets(log) == [0, 1, 2]
    assert log.recovery.damages == ()
    assert directory.topic_id(A) == UUID(int=6)
    assert directory.high_watermark(A) == 0


def test_the_recovery_point_on_disk_is_lowered_before_a_cut() -> None:
    disk = SimDisk()
    directory = filled(disk)
    log = directory.open(A, ID, SMALL, NOW)
    flush(log)
    directory.write_checkpoints({})
    log.truncate_to(11, NOW)
    assert b"orders 0 11\n" in disk.read_file("recovery-point-offset-checkpoint")


def test_a_flushed_partition_keeps_its_topic_id_through_power_loss() -> None:
    for seed in range(20):
        disk = SimDisk()
        directory = opened(disk)
        log = directory.open(A, ID, SMALL, NOW)
        append(log)
        flush(log)
        directory.write_checkpoints({})
        disk.crash(SeededDice(seed))
        directory = opened(disk)
        assert directory.topic_id(A) == ID
        assert base_offsets(directory.open(A, ID, SMALL, NOW)) == [0]


def test_f08_checkpoints_that_were_not_synced_do_no_harm_after_power_loss() -> None:
    for seed in range(40):
        disk = SimDisk()
        directory = filled(disk)
        log = directory.open(A, ID, SMALL, NOW)
        flush(log)
        written = raw(log)
        directory.write_checkpoints({A: 30})
        log.truncate_to(20, NOW)
        append(log, batch(5), epoch=2)
        directory.write_checkpoints({A: 25})
        disk.crash(SeededDice(seed))

        log = opened(disk).open(A, ID, SMALL, NOW)
        assert log.log_end_offset >= 20
        assert raw(log, 0, 20) == written[: len(raw(log, 0, 20))]
        assert log.recovery.damages == ()


def test_a_checkpoint_that_would_say_the_same_is_not_written_again() -> None:
    disk = SimDisk()
    directory = filled(disk)
    directory.write_checkpoints({A: 5})
    disk.remove("recovery-point-offset-checkpoint")
    directory.write_checkpoints({A: 6})
    assert not disk.exists("recovery-point-offset-checkpoint")
    assert b"orders 0 6\n" in disk.read_file("replication-offset-checkpoint")


def test_ten_thousand_partitions_cost_a_name_each() -> None:
    disk = SimDisk()
    for number in range(10_000):
        disk.make_directory(f"orders-{number}")
    directory = opened(disk)
    assert len(directory.partitions()) == 10_000
    assert all(directory.log(partition) is None for partition in directory.partitions())


@pytest.mark.parametrize("seed", range(5))
def test_very_many_logs_are_closed_at_once_and_survive_power_loss(seed: int) -> None:
    disk = SimDisk()
    directory = opened(disk)
    many = [TopicPartition("many", index) for index in range(MANY + 20)]
    for partition in many[:-10]:
        append(directory.open(partition, ID, SMALL, NOW), batch(3))
    for partition in many[-10:]:
        directory.open(partition, ID, SMALL, NOW)  # these partitions stay empty
    directory.close(dict.fromkeys(many, 0))

    disk.crash(SeededDice(seed))
    again = opened(disk)

    assert again.clean_shutdown
    logs = [again.open(partition, ID, SMALL, NOW) for partition in many]
    assert [log.log_end_offset for log in logs] == [3] * (MANY + 10) + [0] * 10
    assert not [note for log in logs for note in log.recovery.notes]


def test_a_log_that_was_never_written_to_costs_a_directory_and_no_scan() -> None:
    disk = SimDisk()
    directory = opened(disk)
    directory.open(A, ID, SMALL, NOW).assign_epoch(7, 0)

    assert disk.list("") == [str(A)]
    assert disk.list(str(A)) == []
    directory.close({A: 0})

    assert disk.list(str(A)) == ["partition.metadata"]
    log = opened(disk).open(A, ID, SMALL, NOW)
    assert (log.log_end_offset, log.recovery.scanned_bytes, log.recovery.notes) == (0, 0, ())


@pytest.mark.parametrize("seed", range(8))
def test_a_log_that_was_never_written_to_is_empty_after_power_loss_too(seed: int) -> None:
    disk = SimDisk()
    directory = opened(disk)
    directory.open(A, ID, SMALL, NOW).assign_epoch(7, 0)
    directory.close({A: 0})

    disk.crash(SeededDice(seed))
    log = opened(disk).open(A, ID, SMALL, NOW)

    assert (log.log_start_offset, log.log_end_offset) == (0, 0)
    append(log, epoch=8)
    assert log.log_end_offset == 1


def test_the_first_record_of_a_log_brings_its_topic_id_to_disk() -> None:
    disk = SimDisk()
    log = opened(disk).open(A, ID, SMALL, NOW)
    append(log)

    assert opened(disk).topic_id(A) == ID
    assert disk.open(f"{A}/partition.metadata") in log.begin_flush(NOW)[0]


def test_a_follower_s_first_record_brings_its_topic_id_to_disk() -> None:
    disk = SimDisk()
    log = opened(disk).open(A, ID, SMALL, NOW)
    log.append_as_follower(memoryview(batch(3)))

    assert opened(disk).topic_id(A) == ID


def test_an_empty_log_that_does_not_start_at_zero_says_so_by_its_file() -> None:
    disk = SimDisk()
    directory = opened(disk)
    future = directory.open_future(A, SMALL, 40, NOW)
    directory.adopt(A, future, ID, NOW)

    assert opened(disk).open(A, ID, SMALL, NOW).log_start_offset == 40
