"""A fetch of many partitions without new records waits, as a fetch of few does (F95)."""

from typing import Any

import pytest
from tests.sim.messages import create_topic, produce_to
from tests.unit.node.bench import Bench

from tidelog.config.keys.broker_keys import RACK_AWARE_SELECTOR
from tidelog.model.ids import ConnId
from tidelog.protocol.fetch.request import FetchPartition, FetchRequest
from tidelog.protocol.records.records import Record, build_batch

PARTITIONS = 1_500
WAIT_MS = 5_000


@pytest.fixture
def node() -> Bench:
    bench = Bench(broker_rack="here", replica_selector_class=RACK_AWARE_SELECTOR)
    bench.ask(create_topic("t", PARTITIONS))
    for _ in range(200):
        bench.flush()
        bench.pass_time(1)
    return bench


def fetch_of_all(**more: Any) -> FetchRequest:
    asked = [FetchPartition(index, -1, 0, -1, -1, 1 << 20) for index in range(PARTITIONS)]
    return FetchRequest(WAIT_MS, 1, 1 << 20, topics=[("t", asked)], **more)


def waited_ms(node: Bench, conn: ConnId, request: FetchRequest) -> int:
    """How long the answer to this fetch takes."""
    began = node.now
    node.send(conn, request)
    while not node.sent[conn]:
        node.pass_time(10)
        assert node.now < began + 2 * WAIT_MS
    return node.now - began


@pytest.mark.parametrize("rack", ["", "here", "there"])
def test_f95_a_session_of_many_partitions_waits_for_records(node: Bench, rack: str) -> None:
    conn = node.connect()
    first = fetch_of_all(session_epoch=0, rack_id=rack)
    assert waited_ms(node, conn, first) < WAIT_MS
    session_id = node.answer(conn, first).session_id

    following = FetchRequest(
        WAIT_MS, 1, 1 << 20, session_id=session_id, session_epoch=1, rack_id=rack
    )
    assert waited_ms(node, conn, following) >= WAIT_MS
    assert node.answer(conn, following).topics == []


def test_f95_a_fetch_of_many_partitions_without_a_session_waits(node: Bench) -> None:
    conn = node.connect()
    request = fetch_of_all(session_epoch=-1, rack_id="here")

    assert waited_ms(node, conn, request) >= WAIT_MS

    answered = node.answer(conn, request)
    assert sum(len(partitions) for _, partitions in answered.topics) == PARTITIONS


def test_f95_a_fetch_of_many_partitions_does_not_wait_if_one_has_records(node: Bench) -> None:
    node.ask(produce_to("t", build_batch([Record(b"k", b"v", node.now)])))
    conn = node.connect()

    assert waited_ms(node, conn, fetch_of_all(session_epoch=-1)) < WAIT_MS


def test_f95_a_record_ends_the_wait_of_a_session_with_a_rack(node: Bench) -> None:
    conn = node.connect()
    first = fetch_of_all(session_epoch=0, rack_id="here")
    waited_ms(node, conn, first)
    session_id = node.answer(conn, first).session_id
    following = FetchRequest(
        WAIT_MS, 1, 1 << 20, session_id=session_id, session_epoch=1, rack_id="here"
    )
    node.send(conn, following)
    node.pass_time(100)
    assert not node.sent[conn]

    node.ask(produce_to("t", build_batch([Record(b"k", b"v", node.now)])))

    [(_, [fetched])] = node.answer(conn, following).topics
    assert fetched.partition == 0
    assert fetched.records is not None
