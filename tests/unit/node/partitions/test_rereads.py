"""Fetches that are woken together are read again in turns (F97)."""

import pytest
from tests.sim.messages import create_topic, produce_to
from tests.unit.node.bench import Bench

from tidelog.model.ids import ConnId
from tidelog.node.partitions.rereads import FETCH_COST, READS_PER_TURN
from tidelog.protocol.fetch.request import FetchPartition, FetchRequest
from tidelog.protocol.records.records import Record, build_batch

PARTITIONS = 100
CLIENTS = 60
PER_TURN = READS_PER_TURN // (FETCH_COST + PARTITIONS) + 1
WAIT_MS = 5_000


@pytest.fixture
def node() -> Bench:
    bench = Bench()
    bench.ask(create_topic("t", PARTITIONS))
    for _ in range(50):
        bench.flush()
        bench.pass_time(1)
    return bench


def fetch(partitions: int) -> FetchRequest:
    asked = [FetchPartition(index, -1, 0, -1, -1, 1 << 20) for index in range(partitions)]
    return FetchRequest(WAIT_MS, 1, 1 << 20, topics=[("t", asked)], session_epoch=-1)


def parked(node: Bench, clients: int, partitions: int) -> list[ConnId]:
    """Connections that each wait with one fetch."""
    conns = [node.connect() for _ in range(clients)]
    for conn in conns:
        node.send(conn, fetch(partitions))
    node.pass_time(10)
    assert not any(node.sent[conn] for conn in conns)
    return conns


def answered(node: Bench, conns: list[ConnId]) -> list[ConnId]:
    return [conn for conn in conns if node.sent[conn]]


def test_f97_one_append_answers_only_some_of_many_long_fetches_at_once(node: Bench) -> None:
    conns = parked(node, CLIENTS, PARTITIONS)

    node.ask(produce_to("t", build_batch([Record(b"k", b"v", node.now)])))

    assert answered(node, conns) == conns[:PER_TURN]
    node.pass_time(1)
    assert answered(node, conns) == conns[: 2 * PER_TURN]
    node.pass_time(CLIENTS)
    assert answered(node, conns) == conns
    for conn in conns:
        [(_, [first, *_])] = node.answer(conn, fetch(PARTITIONS)).topics
        assert first.records is not None


def test_f97_fetches_whose_time_is_over_are_answered_in_turns(node: Bench) -> None:
    conns = parked(node, CLIENTS, PARTITIONS)

    node.pass_time(WAIT_MS - 10)

    assert 0 < len(answered(node, conns)) <= 2 * PER_TURN
    node.pass_time(CLIENTS)
    assert answered(node, conns) == conns


def test_f97_a_short_fetch_does_not_wait_for_the_turns_of_long_ones(node: Bench) -> None:
    parked(node, CLIENTS, PARTITIONS)
    [conn] = parked(node, 1, 1)

    node.ask(produce_to("t", build_batch([Record(b"k", b"v", node.now)])))

    assert node.sent[conn]


def test_f97_a_woken_fetch_is_forgotten_when_its_connection_is_lost(node: Bench) -> None:
    conns = parked(node, CLIENTS, PARTITIONS)
    node.ask(produce_to("t", build_batch([Record(b"k", b"v", node.now)])))
    lost = conns[-1]

    node.disconnect(lost)
    node.pass_time(2 * WAIT_MS)

    assert answered(node, conns) == conns[:-1]


def test_f97_one_append_answers_a_hundred_short_fetches_at_once(node: Bench) -> None:
    conns = parked(node, 300, 1)

    node.ask(produce_to("t", build_batch([Record(b"k", b"v", node.now)])))

    assert 100 <= len(answered(node, conns)) < 150
    node.pass_time(5)
    assert answered(node, conns) == conns
