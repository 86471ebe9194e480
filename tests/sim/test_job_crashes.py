"""A node dies in the middle of every kind of job: nothing is lost, left over or half applied.

The test finds all kinds of jobs in the source, and fails if `STARTS` lacks a new kind.
"""

import gc
import importlib
import inspect
import pkgutil
from collections.abc import Callable

import pytest
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_fetch.v9.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.sim.cluster_steps import created
from tests.sim.messages import ask, create_topic, fetch_from, produce_to
from tests.sim.talk import Talk, await_ready, await_true, running
from tests.sim.writers import Writer, read_all

import tidelog
from tidelog.log.cleaner.cleaning_pass import CleaningSlice, SyncDirectory
from tidelog.log.indexes.timestamps import NewestSearch, TimeSearch
from tidelog.log.recovery.verification import VerifySlice
from tidelog.log.validation.record_checks import RecordCheck
from tidelog.model.errors import ErrorCode
from tidelog.model.jobs import Work
from tidelog.node.coordinators.shard_loading import ReplayRecords
from tidelog.node.inspection import NodeInspection
from tidelog.node.jobs import SyncFiles
from tidelog.node.metadata.snapshot_files import WriteSnapshot
from tidelog.node.partitions.cold_reads import ReadIntoCache
from tidelog.protocol.records.records import Record, build_batch
from tidelog.sim.machines.host import SimHost
from tidelog.sim.machines.world import EPOCH_MS

HOSTS = ("tidelog.runtime", "tidelog.sim", "tidelog.testing", "tidelog.cli")
SEEDS = 8
BATCHES = 15
COMMITTED = 7
IN_DOUBT = build_batch([Record(b"k", None, EPOCH_MS)] * 10_000, compression="zstd")
FIND_COORDINATOR = 10
SETTLED_MS = 2_000


class Scene:
    """One node with a topic of several segments, a committed offset, and the topic `doubts`."""

    def __init__(self, seed: int) -> None:
        self.cluster = running(
            seed,
            nodes=1,
            log_flush_interval_messages="1",
            metadata_log_max_record_bytes_between_snapshots="1500",
            log_cleaner_backoff_ms="10",
        )
        self.host: SimHost = self.cluster.hosts[1]
        self.talk = Talk(self.cluster, 1)
        topics = {"orders": "20000", "doubts": "1000000"}
        for name, size in topics.items():
            topic = create_topic(name, internal_segment_bytes=size)
            assert created(self.talk.ask(topic))
        self.topics = list(topics)
        self.states: dict[bytes | None, bytes | None] = {}
        """The last acknowledged value of each key of the compacted topic `states`."""
        self.writer = Writer(self.cluster, "orders")
        self.writer.connect(1)
        for _ in range(BATCHES):
            self.writer.write()
            self.cluster.world.run(20)
        self._commit()
        self.settle()

    def _commit(self) -> None:
        keys = ask(FIND_COORDINATOR, key_type=0, coordinator_keys=("readers",))
        found = lambda: self.talk.ask(keys).coordinators[0].error_code  # noqa: E731
        await_true(self.cluster, lambda: found() is ErrorCode.none)
        await_true(self.cluster, lambda: self.committed()[0] is ErrorCode.none)
        partition = OffsetCommitRequestPartition(
            partition_index=0, committed_offset=COMMITTED, committed_metadata=None
        )
        topic = OffsetCommitRequestTopic(name="orders", partitions=(partition,))
        request = OffsetCommitRequest(group_id="readers", member_id="", topics=(topic,))
        answer = self.talk.ask(request, version=9)
        assert answer.topics[0].partitions[0].error_code is ErrorCode.none

    def committed(self) -> tuple[ErrorCode, list[int]]:
        topic = OffsetFetchRequestTopics(name="orders", partition_indexes=(0,))
        group = OffsetFetchRequestGroup(group_id="readers", topics=(topic,))
        request = OffsetFetchRequest(groups=(group,), require_stable=False)
        [found] = self.talk.ask(request, version=9).groups
        offsets = [one.committed_offset for topic in found.topics for one in topic.partitions]
        return found.error_code, offsets

    def settle(self) -> None:
        self.cluster.world.run(SETTLED_MS)
        await_true(self.cluster, lambda: len(self.host.jobs) == 0)

    def restart(self) -> None:
        self.host.start()
        await_ready(self.cluster)
        self.talk = Talk(self.cluster, 1)

    def check(self) -> None:
        """Check that everything acknowledged exists, and that nothing is half applied."""
        await_true(self.cluster, lambda: self.committed()[0] is ErrorCode.none)
        assert self.committed() == (ErrorCode.none, [COMMITTED])
        self.writer.check(read_all(self.talk, "orders"))
        if "states" in self.topics:
            last = {record.key: record.value for record in read_all(self.talk, "states")}
            assert last == self.states
        in_doubt = len(read_all(self.talk, "doubts"))
        assert in_doubt % 10_000 == 0, "a batch is there whole or not at all"
        assert set(self.topics) <= set(self.host.node.image.topics)
        view = NodeInspection(self.host.node)
        assert [replica.log.damages for replica in view.replicas if replica.log.damages] == []
        self.settle()
        await_true(self.cluster, lambda: view.jobs_under_way == 0)


def search(timestamp: int) -> Callable[[Scene], None]:
    def start(scene: Scene) -> None:
        partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = ListOffsetsTopic(name="orders", partitions=(partition,))
        scene.talk.begin(ask(2, replica_id=-1, isolation_level=0, topics=(topic,)))

    return start


def write(scene: Scene) -> None:
    scene.writer.write()


def check_records(scene: Scene) -> None:
    scene.talk.begin(produce_to("doubts", IN_DOUBT))


def read_cold(scene: Scene) -> None:
    scene.host.disk.evict_all()
    scene.talk.begin(fetch_from("orders"))


def start_again(scene: Scene) -> None:
    scene.host.kill()
    scene.host.start()


def change_metadata(scene: Scene) -> None:
    while not scene.host.jobs.count(WriteSnapshot):
        scene.topics.append(f"t{len(scene.topics)}")
        assert created(scene.talk.ask(create_topic(scene.topics[-1], 5)))


def overwrite(kind: type) -> Callable[[Scene], None]:
    """Write to a compacted topic until the cleaner runs a job of this kind."""

    def start(scene: Scene) -> None:
        config = {"cleanup_policy": "compact", "internal_segment_bytes": "2000"}
        assert created(scene.talk.ask(create_topic("states", **config)))
        scene.topics.append("states")
        while not scene.host.jobs.count(kind):
            number = len(scene.states) + scene.cluster.world.now
            record = Record(b"key %d" % (number % 3), b"%0100d" % number, EPOCH_MS)
            answer = scene.talk.ask(produce_to("states", build_batch([record])))
            [(_, [produced])] = answer.topics
            assert produced.error is ErrorCode.none
            scene.states[record.key] = record.value

    return start


STARTS: dict[type, Callable[[Scene], None]] = {
    SyncFiles: write,
    RecordCheck: check_records,
    ReadIntoCache: read_cold,
    TimeSearch: search(EPOCH_MS),
    NewestSearch: search(-3),
    VerifySlice: start_again,
    ReplayRecords: start_again,
    WriteSnapshot: change_metadata,
    CleaningSlice: overwrite(CleaningSlice),
    SyncDirectory: overwrite(SyncDirectory),
}
"""For each kind of job, a function that makes the node start one."""


def kinds_of_jobs() -> set[type]:
    kinds: set[type] = set()
    for module in pkgutil.walk_packages(tidelog.__path__, "tidelog."):
        if not module.name.startswith(HOSTS) and not module.name.endswith("__main__"):
            classes = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
            kinds.update(one for _, one in classes if isinstance(getattr(one, "work", None), Work))
    return kinds


def test_every_kind_of_job_is_known_here() -> None:
    assert kinds_of_jobs() == set(STARTS)


def is_any_left(kind: type) -> bool:
    gc.collect()
    return any(isinstance(one, kind) for one in gc.get_objects())


def crashed_within(kind: type, crash: str, seed: int) -> tuple[Scene, bool]:
    """A node that died some time after a job began, and whether the job was still running."""
    scene = Scene(seed)
    STARTS[kind](scene)
    await_true(scene.cluster, lambda: scene.host.jobs.count(kind) > 0)
    scene.cluster.world.run(scene.cluster.world.dice.below(6))
    was_running = scene.host.jobs.count(kind) > 0
    getattr(scene.host, crash)()
    assert len(scene.host.jobs) == 0
    return scene, was_running


@pytest.mark.parametrize("crash", ["kill", "lose_power"])
@pytest.mark.parametrize("kind", STARTS, ids=lambda kind: kind.__name__)
def test_a_node_that_dies_within_a_job_loses_nothing_and_keeps_nothing_of_the_job(
    kind: type, crash: str
) -> None:
    crashes = 0
    for seed in range(SEEDS):
        scene, was_running = crashed_within(kind, crash, seed)
        if was_running:
            crashes += 1
            scene.cluster.world.run(SETTLED_MS)
            assert not is_any_left(kind), "something still holds the job of the dead process"
            scene.restart()
            scene.check()
        if crashes == 2:
            return
    raise AssertionError("no crash fell into the job")
