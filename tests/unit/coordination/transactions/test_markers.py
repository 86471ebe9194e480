"""Markers of transactions with many partitions, replaced leaders, and partitions ahead of them."""

from typing import Any

from tests.unit.coordination.transactions.coordinator_client import CoordinatorUnderTest

from tidelog.coordination.transactions import machine
from tidelog.coordination.transactions.markers import MOST_IN_FLIGHT
from tidelog.coordination.transactions.requests import AddPartitions, EndTransaction, InitProducer
from tidelog.coordination.transactions.states import TransactionState
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition


def begin(
    coordinator: CoordinatorUnderTest, id_: str, partitions: tuple[TopicPartition, ...]
) -> EndTransaction:
    """Begin a transaction; returns the request that commits it."""
    given = coordinator.result(InitProducer(transactional_id=id_, timeout_ms=60_000))
    added = coordinator.result(
        AddPartitions(
            transactional_id=id_,
            producer_id=given.producer_id,
            epoch=given.epoch,
            partitions=partitions,
            client_version=2,
        )
    )
    assert set(added.errors) == {ErrorCode.none}
    return EndTransaction(
        transactional_id=id_,
        producer_id=given.producer_id,
        epoch=given.epoch,
        commits=True,
        client_version=2,
    )


def state(coordinator: CoordinatorUnderTest, id_: str) -> TransactionState:
    return coordinator.machine.transactions[id_].state


def partitions_of(request: Any) -> int:
    return sum(len(topic.partition_indexes) for one in request.markers for topic in one.topics)


def test_f72_a_partition_with_a_later_epoch_does_not_keep_the_others_from_their_markers() -> None:
    coordinator = CoordinatorUnderTest()
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    coordinator.result(begin(coordinator, "a", (first, second)))
    assert coordinator.destinations() == [1, 2]
    coordinator.answer_markers({first: ErrorCode.invalid_producer_epoch})
    coordinator.answer_markers({second: ErrorCode.not_leader_or_follower})
    coordinator.advance(100)
    coordinator.answer_markers()
    assert state(coordinator, "a") is TransactionState.COMPLETE_COMMIT


def test_f74_the_new_leader_gets_the_marker_although_the_old_one_has_not_answered() -> None:
    coordinator = CoordinatorUnderTest()
    partition = TopicPartition("t", 0)
    coordinator.result(begin(coordinator, "a", (partition,)))
    assert coordinator.destinations() == [1]
    coordinator.leaders[partition] = 2
    coordinator.change_image()
    assert coordinator.destinations() == [1, 2]
    coordinator.lose_markers()  # the old leader has died
    coordinator.advance(100)
    assert coordinator.destinations() == [2]
    coordinator.answer_markers()
    assert state(coordinator, "a") is TransactionState.COMPLETE_COMMIT


def test_f63_a_transaction_over_many_partitions_sends_its_markers_in_parts() -> None:
    coordinator = CoordinatorUnderTest()
    many = tuple(TopicPartition("many", index) for index in range(10_000))
    coordinator.leaders |= {one: 1 + one.partition % 2 for one in many}
    coordinator.change_image()
    coordinator.result(begin(coordinator, "a", many))
    sent = 0
    while coordinator.outgoing:
        assert len(coordinator.outgoing) <= 2
        for request in coordinator.outgoing:
            assert partitions_of(request.message) <= MOST_IN_FLIGHT
            sent += partitions_of(request.message)
        for _ in range(len(coordinator.outgoing)):
            coordinator.answer_markers()
        coordinator.advance(100)
    assert sent == len(many)
    assert state(coordinator, "a") is TransactionState.COMPLETE_COMMIT


def test_f63_a_successor_looks_at_each_prepared_transaction_once(monkeypatch: Any) -> None:
    coordinator = CoordinatorUnderTest()
    ends = [begin(coordinator, f"a{number}", (TopicPartition("t", 0),)) for number in range(200)]
    for end in ends:
        coordinator.result(end)
    looked, leader = [], machine._leader

    def counted(image: Any, partition: TopicPartition) -> Any:
        looked.append(partition)
        return leader(image, partition)

    monkeypatch.setattr(machine, "_leader", counted)
    coordinator.fail_over()
    assert sum(len(one.message.markers) for one in coordinator.outgoing) == len(ends)
    assert len(looked) == len(ends)
