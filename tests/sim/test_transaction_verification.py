"""A transaction whose partition leader verifies it with its coordinator (KIP-890).

The answer of the coordinator can be late. In the meantime, markers and other batches arrive.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kio.schema.add_partitions_to_txn.v5.request import (
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tests.sim.messages import ask, batch, create_topic
from tests.sim.talk import Asked, Talk, await_true
from tests.sim.transactional_client import (
    STATE,
    TOPIC,
    TransactionalProducer,
    await_stable,
    check_seen,
    leader_of,
    read_committed,
    transactional_cluster,
)

from tidelog.coordination.partitioning import partition_for
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.node.inspection import NodeInspection
from tidelog.node.peers import Peers
from tidelog.node.transactions.coordinator_client import TransactionCoordinators
from tidelog.protocol.produce import ProduceRequest
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.rules import Replacement, Rules, applied_rules

VERSION_1, VERSION_2 = 11, 12
"""The versions of Produce in which clients, or partition leaders, add the partitions."""


def coordinator(cluster: SimCluster, transactional_id: str) -> NodeId:
    return leader_of(cluster, TopicPartition(STATE, partition_for(transactional_id, 2)))


def led_by_another(cluster: SimCluster, transactional_id: str) -> tuple[int, NodeId]:
    """A partition that the coordinator does not lead, and its leader."""
    other = coordinator(cluster, transactional_id)
    leaders = {index: leader_of(cluster, TopicPartition(TOPIC, index)) for index in range(3)}
    return next((index, leader) for index, leader in leaders.items() if leader != other)


def machine(cluster: SimCluster, node: NodeId) -> str:
    return cluster.hosts[node].name


def produce(
    producer: TransactionalProducer, sequence: int, values: dict[TopicPartition, bytes]
) -> ProduceRequest:
    topics: dict[str, list[Any]] = {}
    for (topic, index), value in values.items():
        records = batch(
            value,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=True,
        )
        topics.setdefault(topic, []).append((index, memoryview(bytearray(records))))
    return ProduceRequest(producer.id, -1, 60_000, list(topics.items()))


class Verifications:
    """The verifications that the test holds back, until it releases them."""

    def __init__(self) -> None:
        self.held = 0
        self.is_holding = True

    def hold(self, peers: Peers, go_on: Callable[[], None]) -> None:
        self.held += 1

        def look() -> None:
            if self.is_holding:
                peers.timers.at(peers.clock.now + 5, look)
            else:
                go_on()

        look()


@contextmanager
def slow_verifications(*, holds_answers: bool) -> Iterator[Verifications]:
    """Hold back the leaders' questions to the coordinator, or the coordinator's answers."""
    slow, join = Verifications(), TransactionCoordinators.join

    def join_slowly(self: TransactionCoordinators, joining: Any, done: Callable[..., None]) -> None:
        peers = self._channels._peers
        if holds_answers:
            join(self, joining, lambda errors: slow.hold(peers, lambda: done(errors)))
        else:
            slow.hold(peers, lambda: join(self, joining, done))

    target = "tidelog.node.transactions.coordinator_client:TransactionCoordinators.join"
    with applied_rules(Rules("slow", (Replacement(target, join_slowly),))):
        yield slow


def errors(asked: Asked) -> list[ErrorCode]:
    assert asked.answer is not None
    return [one.error for _, partitions in asked.answer.topics for one in partitions]


def await_answers(cluster: SimCluster, *asked: Asked) -> None:
    await_true(cluster, lambda: all(one.is_done for one in asked))


def test_f73_a_marker_of_the_last_transaction_does_not_refuse_the_next_one() -> None:
    """The next transaction reaches the leader before the marker of the last one does."""
    cluster = transactional_cluster(1)
    producer = TransactionalProducer(cluster, "a")
    producer.init()
    partition = TopicPartition(TOPIC, 0)
    producer.send(0, b"first")
    early = TransactionalProducer(cluster, "a")
    early.producer_id, early.epoch = producer.producer_id, producer.epoch + 1
    with slow_verifications(holds_answers=False) as slow:
        talk = Talk(cluster, leader_of(cluster, partition))
        asked = talk.begin(produce(early, 0, {partition: b"next"}), VERSION_2)
        await_true(cluster, lambda: slow.held == 1)
        producer.end(commits=True)
        assert producer.epoch == early.epoch
        await_stable(cluster)
        slow.is_holding = False
        await_answers(cluster, asked)
    assert errors(asked) == [ErrorCode.none]
    producer.end(commits=True)
    check_seen(cluster, [(0, b"first"), (0, b"next")])


def test_f44_a_batch_is_not_appended_before_the_one_whose_verification_failed() -> None:
    """The log does not know the producer, so it would accept any sequence number."""
    cluster = transactional_cluster(2)
    producer = TransactionalProducer(cluster, "a")
    producer.init()
    index, leader = led_by_another(cluster, "a")
    partition = TopicPartition(TOPIC, index)
    first = produce(producer, 0, {partition: b"first"})
    second = produce(producer, 1, {partition: b"second"})
    path = machine(cluster, coordinator(cluster, "a")), machine(cluster, leader)
    cluster.network.cut(*path)
    talk = Talk(cluster, leader)
    sent = talk.begin(first, VERSION_2), talk.begin(second, VERSION_2)
    cluster.world.run(20)
    cluster.network.reset(*path)
    cluster.network.mend(*path)
    await_answers(cluster, *sent)
    assert errors(sent[0]) == [ErrorCode.not_enough_replicas]
    assert errors(sent[1]) == [ErrorCode.not_leader_or_follower]
    again = talk.begin(first, VERSION_2), talk.begin(second, VERSION_2)
    await_answers(cluster, *again)
    assert [*errors(again[0]), *errors(again[1])] == [ErrorCode.none, ErrorCode.none]
    producer.end(commits=True)
    await_stable(cluster)
    assert read_committed(cluster, index) == [b"first", b"second"]


def test_f72_a_marker_during_the_verification_of_one_partition_ends_it_in_the_others() -> None:
    """A request writes to a partition with an open transaction, and to one that is verified."""
    cluster = transactional_cluster(3)
    Talk(cluster, 1).ask(create_topic("u", 4, 3, min_insync_replicas="2"))
    await_true(cluster, lambda: all("u" in host.node.image.topics for host in cluster.up))
    by_leader: dict[NodeId, list[TopicPartition]] = {}
    for index in range(4):
        one = TopicPartition("u", index)
        by_leader.setdefault(leader_of(cluster, one), []).append(one)
    leader, led = next(pair for pair in by_leader.items() if len(pair[1]) > 1)
    producer = TransactionalProducer(cluster, "a")
    producer.init()
    _add(cluster, producer, led)
    talk = Talk(cluster, leader)
    opened = talk.begin(produce(producer, 0, {led[0]: b"one"}), VERSION_1)
    await_answers(cluster, opened)
    assert errors(opened) == [ErrorCode.none]
    with slow_verifications(holds_answers=True) as slow:
        late = talk.begin(produce(producer, 1, {led[0]: b"two", led[1]: b"one"}), VERSION_1)
        await_true(cluster, lambda: slow.held == 1)
        # The client has lost its connection, and does not wait for the answer.
        ended = Talk(cluster, coordinator(cluster, "a")).ask(producer.end_request(commits=True), 4)
        assert ended.error_code is ErrorCode.none
        cluster.world.run(1_000)
        slow.is_holding = False
        await_answers(cluster, late)
    assert errors(late) == [ErrorCode.invalid_txn_state, ErrorCode.transaction_abortable]
    for one in led:
        replica = NodeInspection(cluster.hosts[leader].node).replica(one)
        assert replica.last_stable_offset == replica.log.log_end_offset


def _add(
    cluster: SimCluster, producer: TransactionalProducer, partitions: list[TopicPartition]
) -> None:
    topic = AddPartitionsToTxnTopic(name="u", partitions=tuple(one.partition for one in partitions))
    wish = AddPartitionsToTxnTransaction(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=(topic,),
    )
    added = Talk(cluster, coordinator(cluster, producer.id)).ask(ask(24, transactions=(wish,)), 3)
    rows = added.results_by_transaction[0].topic_results[0].results_by_partition
    assert [row.partition_error_code for row in rows] == [ErrorCode.none] * len(partitions)
