"""A read of uncached bytes waits for a background job, while the node serves other clients."""

from itertools import cycle

import pytest
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.sim.cluster_steps import created
from tests.sim.messages import ask, create_topic, delete_topic, fetch_from
from tests.sim.talk import Asked, Talk, await_ready, await_true, running
from tests.sim.writers import Writer, read_all

from tidelog.model.errors import ErrorCode
from tidelog.model.events import Event, FrameReceived, Ran
from tidelog.model.ids import Millis
from tidelog.model.outbound import Outbound
from tidelog.node.inspection import NodeInspection
from tidelog.node.node import Node
from tidelog.node.partitions.cold_reads import ReadIntoCache
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost
from tidelog.sim.machines.world import EPOCH_MS

BATCHES = 60
SEGMENTS = {"internal_segment_bytes": "20000", "flush_messages": "1"}
LONG_MS = 2_000
DESCRIBE_CLUSTER = 60


class Waits:
    """Records which events made a node wait for its disk."""

    def __init__(self, host: SimHost) -> None:
        self.events: list[Event] = []
        self._host = host
        host.handle = self._handle

    def _handle(self, node: Node, event: Event, now: Millis) -> list[Outbound]:
        before = self._host.disk.pages_loaded
        outbound = Node.handle(node, event, now)
        if self._host.disk.pages_loaded > before and isinstance(event, FrameReceived | Ran):
            self.events.append(event)
        return outbound


def written(seed: int, nodes: int = 1) -> tuple[SimCluster, Writer]:
    """A cluster with a topic of many segments."""
    cluster = running(seed, nodes=nodes)
    topic = create_topic("orders", 1, nodes, **SEGMENTS)
    assert created(Talk(cluster, 1).ask(topic))
    writer = Writer(cluster, "orders")
    await_true(cluster, lambda: leader_of(cluster) > 0)
    writer.connect(leader_of(cluster))
    for _ in range(BATCHES):
        writer.write()
        cluster.world.run(20)
    cluster.world.run(LONG_MS)
    assert len(writer.acknowledged) == len(writer.sent)
    return cluster, writer


def leader_of(cluster: SimCluster) -> int:
    placed = next(iter(cluster.up)).node.image.topics.get("orders")
    return -1 if placed is None else placed.partitions[0].leader


def made_cold(cluster: SimCluster) -> None:
    """Wait until no job runs, and then drop every page from every page cache."""
    await_true(cluster, lambda: not any(len(host.jobs) for host in cluster.up))
    for host in cluster.up:
        host.disk.evict_all()


def restarted(cluster: SimCluster) -> SimHost:
    """A node that has restarted and has verified its logs, none of which is cached."""
    host = cluster.hosts[1]
    host.kill()
    host.start()
    await_ready(cluster)
    cluster.world.run(LONG_MS)
    made_cold(cluster)
    return host


def reading(host: SimHost) -> int:
    return host.jobs.count(ReadIntoCache)


def has_no_job_left(host: SimHost) -> bool:
    return len(host.jobs) == 0 and NodeInspection(host.node).jobs_under_way == 0


def records_of(asked: Asked) -> int:
    [(_, [fetched])] = asked.answer.topics
    assert fetched.error is ErrorCode.none
    return 0 if fetched.records is None else len(fetched.records)


def test_f94_a_consumer_of_a_cold_log_reads_all_of_it_and_the_node_never_waits(seed: int) -> None:
    cluster, writer = written(seed)
    host = restarted(cluster)
    waits = Waits(host)
    writer.check(read_all(Talk(cluster, 1), "orders"))
    assert waits.events == []
    await_true(cluster, lambda: has_no_job_left(host))


def test_f94_others_are_served_while_a_fetch_waits_for_the_disk() -> None:
    cluster, _ = written(seed=1)
    host = restarted(cluster)
    host.disk.faults.sync_ms = LONG_MS
    asked = Talk(cluster, 1).begin(fetch_from("orders", max_wait_ms=10 * LONG_MS))
    await_true(cluster, lambda: reading(host) == 1)
    bystander, served = Talk(cluster, 1), 0
    while reading(host) and not asked.is_done:
        # A write would wait for its own fsync, which is slow here.
        assert bystander.ask(ask(DESCRIBE_CLUSTER)).error_code is ErrorCode.none
        served += 1
    assert served > 20
    await_true(cluster, lambda: asked.is_done)
    assert records_of(asked) > 0


def test_f94_a_follower_catches_up_from_a_cold_leader_which_never_waits(seed: int) -> None:
    cluster, writer = written(seed, nodes=3)
    leader = leader_of(cluster)
    behind = cluster.hosts[next(id for id in cluster.hosts if id != leader)]
    behind.kill()
    writer.aim(leader)
    for _ in range(BATCHES):
        writer.write()
        cluster.world.run(20)
    cluster.world.run(LONG_MS)
    waits = Waits(cluster.hosts[leader_of(cluster)])
    behind.wipe()
    made_cold(cluster)
    behind.start()
    await_ready(cluster)
    end = len(writer.sent)

    def has_caught_up() -> bool:
        [replica] = NodeInspection(behind.node).replicas
        return replica.log.log_end_offset >= end

    await_true(cluster, lambda: bool(NodeInspection(behind.node).replicas))
    await_true(cluster, has_caught_up)
    assert waits.events == []


def test_f94_searches_by_time_and_by_epoch_wait_for_a_cold_log_and_the_node_does_not() -> None:
    cluster, _ = written(seed=2)
    host = restarted(cluster)
    waits, talk = Waits(host), Talk(cluster, 1)
    partition = ListOffsetsPartition(partition_index=0, timestamp=EPOCH_MS)
    topic = ListOffsetsTopic(name="orders", partitions=(partition,))
    answer = talk.ask(ask(2, replica_id=-1, isolation_level=0, topics=(topic,)))
    [found] = answer.topics[0].partitions
    assert (found.error_code, found.offset) == (ErrorCode.none, 0)
    made_cold(cluster)
    epoch = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    wanted = (OffsetForLeaderTopic(topic="orders", partitions=(epoch,)),)
    answer = talk.ask(ask(23, replica_id=-1, topics=wanted))
    [ends] = answer.topics[0].partitions
    assert (ends.error_code, ends.leader_epoch) == (ErrorCode.none, 0)
    assert ends.end_offset > 0
    assert waits.events == []


def test_f94_nobody_reads_for_a_client_that_is_gone() -> None:
    cluster, _ = written(seed=3)
    host = restarted(cluster)
    host.disk.faults.sync_ms = 10 * LONG_MS
    talk = Talk(cluster, 1)
    talk.begin(fetch_from("orders"))
    await_true(cluster, lambda: reading(host) == 1)
    talk.close()
    await_true(cluster, lambda: reading(host) == 0, limit_ms=100)
    assert has_no_job_left(host)


def test_f94_a_topic_that_is_deleted_during_a_cold_read_does_no_harm() -> None:
    cluster, _ = written(seed=4)
    host = restarted(cluster)
    host.disk.faults.sync_ms = LONG_MS
    asked = Talk(cluster, 1).begin(fetch_from("orders", max_wait_ms=10 * LONG_MS))
    await_true(cluster, lambda: reading(host) == 1)
    Talk(cluster, 1).ask(delete_topic("orders"))
    await_true(cluster, lambda: asked.is_done)
    [(_, [fetched])] = asked.answer.topics
    assert fetched.error is not ErrorCode.none
    await_true(cluster, lambda: has_no_job_left(host))
    assert host.is_up


def test_f94_a_disk_that_fails_during_a_cold_read_fails_as_in_any_read() -> None:
    cluster, _ = written(seed=5)
    host = restarted(cluster)
    host.disk.faults.fails_reads.update(path for path in host.disk.files() if "orders" in path)
    talk = Talk(cluster, 1, patience_ms=LONG_MS)
    asked = talk.begin(fetch_from("orders"))
    await_true(cluster, lambda: asked.is_done)
    [(_, [fetched])] = asked.answer.topics
    assert fetched.error is ErrorCode.kafka_storage_error


@pytest.mark.parametrize("max_wait_ms", [0, 1, 500])
@pytest.mark.parametrize("min_bytes", [0, 1])
def test_f94_a_fetch_that_waits_for_nothing_waits_for_a_cold_read(
    max_wait_ms: int, min_bytes: int
) -> None:
    cluster, _ = written(seed=6)
    restarted(cluster)
    asked = Talk(cluster, 1).begin(
        fetch_from("orders", max_wait_ms=max_wait_ms, min_bytes=min_bytes)
    )
    await_true(cluster, lambda: asked.is_done)
    assert records_of(asked) > 0


@pytest.mark.parametrize("dropped", [("",), (".log", ".index")])
def test_f94_pages_that_are_dropped_again_and_again_only_cost_a_wait(
    dropped: tuple[str, ...],
) -> None:
    cluster, writer = written(seed=7)
    host = restarted(cluster)
    waits, endings = Waits(host), cycle(dropped)
    plain = host.handle

    def handle(node: Node, event: Event, now: Millis) -> list[Outbound]:
        if isinstance(event, Ran):
            host.disk.evict_all(next(endings))
        return plain(node, event, now)

    host.handle = handle
    writer.check(read_all(Talk(cluster, 1), "orders"))
    assert waits.events, "the kernel keeps nothing, so the node has to wait"
