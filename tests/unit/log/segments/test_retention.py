"""Which segments retention removes, and when it deletes their files."""

from dataclasses import replace
from itertools import pairwise

from tests.unit.log.support import (
    DIRECTORY,
    NOW,
    SMALL,
    append,
    base_offsets,
    batch,
    open_log,
)

from tidelog.log.config import LogConfig
from tidelog.log.partition import PartitionLog
from tidelog.log.segments.retention import PURGED_AT_ONCE
from tidelog.sim.machines.disk import SimDisk

FOREVER = replace(SMALL, segment_bytes=1_000, retention_ms=-1)
DAY = 24 * 3_600_000


def filled(config: LogConfig, disk: SimDisk | None = None) -> PartitionLog:
    """A log of twenty batches, two per segment; batch n is n seconds after NOW."""
    log = open_log(disk or SimDisk(), config)
    for second in range(20):
        append(log, batch(size=350, timestamp=NOW + second * 1_000))
    return log


def test_nothing_goes_without_a_reason() -> None:
    log = filled(FOREVER)
    assert log.apply_retention(NOW + 1_000 * DAY, 20) == []


def test_old_segments_go_by_their_newest_record() -> None:
    log = filled(replace(FOREVER, retention_ms=DAY))
    assert log.apply_retention(NOW + DAY + 4_999, 20) == [0, 2]
    assert log.log_start_offset == 4
    assert base_offsets(log) == list(range(4, 20))


def test_the_oldest_segments_go_while_the_rest_is_large_enough() -> None:
    log = filled(replace(FOREVER, retention_bytes=0))
    size = log.size // 10
    log.update_config(replace(FOREVER, retention_bytes=3 * size + 1))
    assert log.apply_retention(NOW, 20) == [0, 2, 4, 6, 8, 10]
    assert log.size == 4 * size


def test_segments_before_the_log_start_go_whatever_the_policy() -> None:
    log = filled(replace(FOREVER, cleanup_policy=frozenset({"compact"})))
    log.advance_log_start(7)
    assert log.apply_retention(NOW, 20) == [0, 2, 4]
    assert log.log_start_offset == 7
    assert log.first_segment_offset == 6


def test_nothing_past_the_high_watermark_goes() -> None:
    log = filled(replace(FOREVER, retention_ms=0))
    assert log.apply_retention(NOW + DAY, 7) == [0, 2, 4]


def test_the_active_segment_goes_too_when_all_of_it_is_old() -> None:
    disk = SimDisk()
    log = filled(replace(FOREVER, retention_ms=1_000), disk)
    assert len(log.apply_retention(NOW + DAY, 20)) == 10
    assert (log.log_start_offset, log.log_end_offset, log.size) == (20, 20, 0)
    assert log.apply_retention(NOW + DAY, 20) == []
    assert append(log).base_offset == 20
    log.close()
    again = open_log(disk, clean=True)
    assert (again.log_start_offset, again.log_end_offset) == (20, 21)


def test_files_are_renamed_at_once_and_removed_after_the_delay() -> None:
    disk = SimDisk()
    log = filled(replace(FOREVER, retention_ms=DAY), disk)
    now = NOW + DAY + 2_000
    assert log.apply_retention(now, 20) == [0]
    stem = f"{0:020d}"
    beside = [name for name in disk.list(DIRECTORY) if name.startswith(stem)]
    assert beside == [f"{stem}{kind}.deleted" for kind in (".index", ".log", ".timeindex")]
    assert log.next_deadline() == now + 60_000

    log.purge(now + 59_999)
    assert disk.exists(f"{DIRECTORY}/{stem}.log.deleted")
    log.purge(now + 60_000)
    assert not any(name.startswith(stem) for name in disk.list(DIRECTORY))
    assert log.next_deadline() is None


def test_a_restart_clears_what_was_deleted() -> None:
    disk = SimDisk()
    log = filled(replace(FOREVER, retention_ms=DAY), disk)
    log.apply_retention(NOW + DAY + 2_000, 20)
    log = open_log(disk, FOREVER)
    assert not any(name.endswith(".deleted") for name in disk.list(DIRECTORY))
    assert log.log_start_offset == 2


def test_snapshots_of_deleted_segments_go() -> None:
    disk = SimDisk()
    log = filled(replace(FOREVER, retention_ms=DAY), disk)
    log.apply_retention(NOW + DAY + 7_000, 20)
    snapshots = [int(name[:20]) for name in disk.list(DIRECTORY) if name.endswith(".snapshot")]
    assert min(snapshots) == 6


def test_the_log_start_survives_through_its_checkpoint() -> None:
    disk = SimDisk()
    log = filled(FOREVER, disk)
    log.advance_log_start(7)
    log.close()
    assert open_log(disk, FOREVER, clean=True, log_start=7).log_start_offset == 7


def test_a_log_start_past_the_log_end_starts_the_log_over() -> None:
    disk = SimDisk()
    filled(FOREVER, disk)
    disk.write_file(f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n1\n1 100\n")
    log = open_log(disk, FOREVER, log_start=100)
    assert (log.log_start_offset, log.log_end_offset, log.size) == (100, 100, 0)
    assert append(log).base_offset == 100


def test_files_of_many_segments_are_removed_some_at_a_time() -> None:
    disk = SimDisk()
    log = open_log(disk, replace(SMALL, retention_ms=1))
    for _ in range(200):
        append(log, batch(size=1_500))
    deleted = log.apply_retention(NOW + (8 << 30), log.log_end_offset)
    assert len(deleted) > 3 * PURGED_AT_ONCE

    def left() -> int:
        return sum(name.endswith(".log.deleted") for name in disk.list(DIRECTORY))

    due = NOW + (8 << 30) + log.config.file_delete_delay_ms
    sizes = [left()]
    while sizes[-1]:
        log.purge(due)
        sizes.append(left())
    assert sizes[0] == len(deleted)
    assert all(before - after <= PURGED_AT_ONCE for before, after in pairwise(sizes))
