"""The log cleaner of a node: which logs it cleans, and what it does when a pass cannot go on."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tests.sim.messages import create_topic, delete_topic, produce_to
from tests.unit.node.bench import Bench, formatted

from tidelog.log.cleaner import selection
from tidelog.log.cleaner.cleaning_pass import CleaningSlice, SyncDirectory
from tidelog.log.cleaner.offset_map import OffsetMap
from tidelog.log.partition import PartitionLog
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.model.metrics import Gauge
from tidelog.model.outbound import Run
from tidelog.node.inspection import NodeInspection
from tidelog.protocol.records.records import Record, build_batch
from tidelog.sim.machines.disk import SimDisk

COMPACTED = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": "1500",
    "min_cleanable_dirty_ratio": "0.1",
}
RECORDS, KEYS = 60, 3
FIRST = "orders-0/00000000000000000000"


def compacting(partitions: int = 1, *disks: SimDisk, **settings: str) -> Bench:
    """A node with a compacted topic, whose cleaner looks for dirty logs once a second."""
    made = Bench(1, *(disks or [formatted()]), log_cleaner_backoff_ms="1000", **settings)
    make_topic(made, partitions)
    return made


def make_topic(node: Bench, partitions: int = 1, **configs: str) -> None:
    answer = node.ask(create_topic("orders", partitions, **{**COMPACTED, **configs}))
    assert answer.topics[0].error_code is ErrorCode.none
    node.settle()


def fill(node: Bench, index: int = 0, keys: int = KEYS) -> None:
    conn = node.connect()
    for number in range(RECORDS):
        record = Record(b"key %d" % (number % keys), b"value %d" % number, node.now)
        message = produce_to("orders", {index: build_batch([record])})
        node.send(conn, message)
        node.flush()
        answer = node.answer(conn, message)
        assert answer.topics[0][1][0].error is ErrorCode.none
    node.flush()


def log_of(node: Bench, index: int = 0) -> PartitionLog:
    replica = NodeInspection(node.node).replica(TopicPartition("orders", index))
    assert replica is not None
    return replica.log


def next_job(node: Bench, kind: type = CleaningSlice) -> Run:
    """Run other jobs and let time pass until the cleaner asks for a job of this kind."""
    for _ in range(200):
        node.flush()
        if node.jobs and isinstance(node.jobs[0].job, kind):
            return node.jobs[0]
        if node.jobs:
            node._run(node.jobs.popleft())
        else:
            node.pass_time(100)
    raise AssertionError(f"no {kind.__name__}")


def run_passes(node: Bench) -> None:
    for _ in range(15):
        node.settle()


def metric(node: Bench, name: str) -> int:
    [found] = [one for one in node.node.metrics() if one.name.endswith(name)]
    assert isinstance(found, Gauge)
    return sum(int(value) for _, value in found.samples)


def is_compacted(node: Bench, index: int = 0) -> bool:
    return log_of(node, index).size < RECORDS * 70


def uncleanable(node: Bench) -> int:
    return metric(node, "uncleanable_partitions_count")


def test_a_dirty_log_is_compacted() -> None:
    node = compacting()
    fill(node)
    assert not is_compacted(node)
    run_passes(node)
    assert is_compacted(node)
    assert uncleanable(node) == 0


def test_a_truncation_under_a_job_does_not_make_the_log_uncleanable() -> None:
    node = compacting()
    fill(node)
    next_job(node)
    # The job that is under way now finds the file shorter than it was.
    log_of(node).truncate_to(20, node.now)
    node.run_jobs()
    assert uncleanable(node) == 0


def test_a_failure_under_a_cancelled_pass_does_not_make_the_log_uncleanable() -> None:
    node = compacting()
    fill(node)
    next_job(node)
    log_of(node).truncate_to(20, node.now)
    node.disk.faults.fails_reads.add(f"{FIRST}.log")
    node.run_jobs()
    node.disk.faults.fails_reads.clear()
    assert uncleanable(node) == 0


def test_a_damaged_log_is_marked_and_the_others_are_cleaned() -> None:
    node = compacting(2)
    fill(node, 0)
    fill(node, 1)
    node.disk.flip_bit(f"{FIRST}.log", 8 * 100)
    run_passes(node)
    assert uncleanable(node) == 1
    assert not is_compacted(node, 0)
    assert is_compacted(node, 1)


def test_a_topic_with_the_name_of_a_deleted_uncleanable_one_is_compacted() -> None:
    node = compacting()
    fill(node)
    node.disk.flip_bit(f"{FIRST}.log", 8 * 100)
    run_passes(node)
    assert uncleanable(node) == 1
    node.ask(delete_topic("orders"))
    node.settle()
    make_topic(node)
    assert uncleanable(node) == 0
    fill(node)
    run_passes(node)
    assert is_compacted(node)


def test_a_log_is_compacted_once_its_full_disk_has_space_again() -> None:
    node = compacting()
    fill(node, keys=RECORDS)
    next_job(node)
    node._run(node.jobs.popleft())  # the map
    next_job(node)
    node.disk.faults.capacity = node.disk.used
    node.run_jobs()
    node.disk.faults.capacity = None
    assert uncleanable(node) == 0
    run_passes(node)
    assert metric(node, "max_dirty_percent") == 0


def test_a_directory_in_which_no_segment_can_be_created_fails() -> None:
    node = compacting()
    fill(node)
    next_job(node)
    node.disk.faults.is_read_only = True
    node.run_jobs()
    node.pass_time(1)
    assert node.stopped is not None


def test_a_directory_that_cannot_be_synced_after_a_swap_fails() -> None:
    node = compacting()
    fill(node)
    next_job(node, SyncDirectory)
    node.disk.faults.fails_sync = True
    node.run_jobs()
    node.pass_time(1)
    assert node.stopped is not None


def test_a_directory_whose_logs_cannot_be_examined_fails() -> None:
    node = Bench(1, log_cleaner_enable="false")
    make_topic(node, max_compaction_lag_ms="1000000", min_cleanable_dirty_ratio="1")
    fill(node)
    node.shutdown()
    node.settle()
    again = Bench(1, node.disk, seed=9, log_cleaner_backoff_ms="1000")
    again.disk.faults.fails_reads.add(f"{FIRST}.log")
    again.pass_time(1_500)
    assert again.stopped is not None


def test_a_pass_leaves_a_failed_directory_alone() -> None:
    node = compacting(2, formatted(seed=2), formatted(seed=3), log_dirs="one,two")
    fill(node, 0)
    fill(node, 1)
    [index] = [one for one in range(2) if node.disks[1].list(f"orders-{one}")]
    while not cleaned_files(node.disks[1]):
        next_job(node)
        node._run(node.jobs.popleft())
    next_job(node)
    left = cleaned_files(node.disks[1])
    fail_second(node, index)
    run_passes(node)
    assert node.stopped is None
    assert cleaned_files(node.disks[1]) == left


def fail_second(node: Bench, index: int) -> None:
    """Make the second directory read-only, and let the node notice it."""
    node.disks[1].faults.is_read_only = True
    record = Record(b"key", b"value", node.now)
    node.send(node.connect(), produce_to("orders", {index: build_batch([record])}))
    node.pass_time(1)


def cleaned_files(disk: SimDisk) -> list[str]:
    names = (name for one in disk.list_directories("") for name in disk.list(one))
    return [name for name in names if name.endswith(".cleaned")]


def test_the_memory_of_a_pass_is_released_when_it_ends() -> None:
    node = compacting(3)
    for index in range(3):
        fill(node, index)
    run_passes(node)
    assert all(is_compacted(node, index) for index in range(3))
    node.pass_time(10_000)
    gc.collect()
    assert not [one for one in gc.get_objects() if isinstance(one, OffsetMap)]


def test_the_throttle_counts_reads_and_writes() -> None:
    node = compacting(log_cleaner_io_max_bytes_per_second="2000")
    fill(node, keys=RECORDS)
    next_job(node)
    size, began = log_of(node).size - 1_500, node.now
    while metric(node, "max_dirty_percent") > 0 or not node.now > began:
        node.flush()
        node.run_jobs()
        node.pass_time(50)
        assert node.now < began + 120_000
    # Every byte is read twice and written once.
    assert node.now - began >= 3 * size * 1_000 // 2_000


@contextmanager
def counted_calls(wanted: Any) -> Iterator[list[int]]:
    counted = [0]

    def count(frame: FrameType, event: str, _: object) -> None:
        counted[0] += event == "call" and frame.f_code is wanted.__code__

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        yield counted
    finally:
        sys.setprofile(before)


def test_a_pass_does_not_examine_all_other_logs_again() -> None:
    logs = 24
    node = compacting(logs)
    for index in range(logs):
        fill(node, index)
    with counted_calls(selection.find_cleanable) as calls:
        while not all(is_compacted(node, index) for index in range(logs)):
            next_job(node)
            node._run(node.jobs.popleft())
    assert calls[0] <= 5 * logs
