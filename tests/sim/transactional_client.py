"""Transactional producers and a read_committed reader for simulated clusters."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from tests.sim.messages import ask, batch, create_topic
from tests.sim.talk import Talk, await_true, running

from tidelog.coordination.partitioning import partition_for
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NodeId, TopicPartition
from tidelog.node.inspection import NodeInspection
from tidelog.protocol.fetch import FetchPartition, FetchRequest
from tidelog.protocol.produce import ProduceRequest
from tidelog.sim.clients.committed_reader import take_committed
from tidelog.sim.machines.cluster import SimCluster

TOPIC, PARTITIONS = "t", 3
STATE = "__transaction_state"
TRIES = 400
PAUSE_MS = 50
PRODUCE_VERSION = 12
"""The first version in which the leader adds partitions to transactions."""

_RETRIED = frozenset(
    {
        ErrorCode.coordinator_not_available,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.not_coordinator,
        ErrorCode.concurrent_transactions,
        ErrorCode.not_leader_or_follower,
        ErrorCode.not_enough_replicas,
        ErrorCode.not_enough_replicas_after_append,
        ErrorCode.request_timed_out,
        ErrorCode.unknown_topic_or_partition,
    }
)


class Refused(Exception):
    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
        self.error = error


def transactional_cluster(seed: int) -> SimCluster:
    cluster = running(
        seed,
        transaction_state_log_num_partitions="2",
        transaction_state_log_replication_factor="3",
        transaction_abort_timed_out_transaction_cleanup_interval_ms="1000",
        offsets_topic_replication_factor="3",
    )
    wish = create_topic(TOPIC, PARTITIONS, 3, min_insync_replicas="2")
    assert Talk(cluster, 1).ask(wish).topics[0].error_code is ErrorCode.none
    await_true(cluster, lambda: all(TOPIC in host.node.image.topics for host in cluster.up))
    Talk(cluster, 1).ask(ask(10, key_type=1, coordinator_keys=("a",)))
    await_true(cluster, lambda: all(STATE in host.node.image.topics for host in cluster.up))
    return cluster


def leader_of(cluster: SimCluster, partition: TopicPartition) -> NodeId:
    """The leader in the newest image, if it runs."""
    images = [host.node.image for host in cluster.up if host.node is not None]
    if not images:
        return NO_NODE
    placed = max(images, key=lambda image: image.offset).partition(partition)
    leader = NO_NODE if placed is None else placed.leader
    return leader if leader in cluster.hosts and cluster.hosts[leader].is_up else NO_NODE


def at_leader(
    cluster: SimCluster,
    partition: TopicPartition,
    message: Any,
    error_of: Callable[[Any], ErrorCode],
    version: int | None = None,
) -> Any:
    """The answer of the partition's leader; retried until the error is final."""
    for _ in range(TRIES):
        leader = leader_of(cluster, partition)
        if leader != NO_NODE:
            talk = Talk(cluster, leader)
            answer = talk.ask(message, version)
            talk.close()
            if answer is not None and error_of(answer) not in _RETRIED:
                return answer
        cluster.world.run(PAUSE_MS)
    raise AssertionError(f"no final answer to {type(message).__name__}")


class TransactionalProducer:
    """A producer that speaks transaction version 2, one request at a time."""

    def __init__(
        self, cluster: SimCluster, transactional_id: str, timeout_ms: int = 60_000
    ) -> None:
        self.cluster = cluster
        self.id = transactional_id
        self.timeout_ms = timeout_ms
        self.producer_id = self.epoch = -1
        self._sequences: dict[int, int] = {}

    def init(self) -> None:
        message = ask(
            22,
            transactional_id=self.id,
            transaction_timeout=timedelta(milliseconds=self.timeout_ms),
        )
        answer = self._ask_coordinator(message, 5)
        self._enter(answer.producer_id, answer.producer_epoch)

    def send(self, partition: int, *values: bytes) -> None:
        sequence = self._sequences.get(partition, 0)
        records = batch(
            *values,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        answer = self.send_raw(partition, records)
        if answer is not ErrorCode.none:
            raise Refused(answer)
        self._sequences[partition] = sequence + len(values)

    def send_raw(self, partition: int, records: bytes) -> ErrorCode:
        def error_of(answer: Any) -> ErrorCode:
            return answer.topics[0][1][0].error

        views = [(partition, memoryview(bytearray(records)))]
        message = ProduceRequest(self.id, -1, 10_000, [(TOPIC, views)])
        at = TopicPartition(TOPIC, partition)
        return error_of(at_leader(self.cluster, at, message, error_of, PRODUCE_VERSION))

    def end(self, *, commits: bool) -> None:
        answer = self._ask_coordinator(self.end_request(commits=commits), 5)
        self._enter(answer.producer_id, answer.producer_epoch)

    def end_request(self, *, commits: bool) -> Any:
        return ask(
            26,
            transactional_id=self.id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commits,
        )

    def _enter(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != (self.producer_id, self.epoch):
            self._sequences = {}
        self.producer_id, self.epoch = producer_id, epoch

    def _ask_coordinator(self, message: Any, version: int) -> Any:
        at = TopicPartition(STATE, partition_for(self.id, 2))
        answer = at_leader(self.cluster, at, message, lambda one: one.error_code, version)
        if answer.error_code is not ErrorCode.none:
            raise Refused(answer.error_code)
        return answer


def read_committed(cluster: SimCluster, partition: int) -> list[bytes]:
    """What a read_committed consumer sees up to the last stable offset, and where that is."""
    offset, seen = 0, list[bytes]()
    while True:
        message = FetchRequest(
            0,
            1,
            1 << 20,
            isolation_level=1,
            topics=[(TOPIC, [FetchPartition(partition, -1, offset, -1, -1, 1 << 20)])],
        )

        def error_of(answer: Any) -> ErrorCode:
            return answer.topics[0][1][0].error

        answer = at_leader(cluster, TopicPartition(TOPIC, partition), message, error_of)
        fetched = answer.topics[0][1][0]
        if not fetched.records:
            return seen
        aborted = sorted((one[1], one[0]) for one in fetched.aborted or ())
        offset = take_committed(memoryview(bytes(fetched.records)), offset, aborted, seen)


def await_stable(cluster: SimCluster) -> None:
    """Wait until no transaction is open: the last stable offset is the high watermark (F72)."""

    def is_stable() -> bool:
        for index in range(PARTITIONS):
            leader = leader_of(cluster, TopicPartition(TOPIC, index))
            if leader == NO_NODE:
                return False
            replica = _replica(cluster, leader, index)
            if replica is None or replica.last_stable_offset != replica.high_watermark:
                return False
            if replica.high_watermark != replica.log.log_end_offset:
                return False
        return True

    await_true(cluster, is_stable, 120_000)


def _replica(cluster: SimCluster, node: NodeId, index: int) -> Any:
    running = cluster.hosts[node].node
    return running and NodeInspection(running).replica(TopicPartition(TOPIC, index))


def check_seen(cluster: SimCluster, committed: Iterable[tuple[int, bytes]]) -> None:
    """Assert that exactly these values are visible, in this order in each partition."""
    await_stable(cluster)
    wanted: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    for partition, value in committed:
        wanted[partition].append(value)
    for index in range(PARTITIONS):
        assert read_committed(cluster, index) == wanted[index], f"partition {index}"
