"""The memory of a request is freed when the request ends, and needs no garbage collector (F63).

The collector rarely visits old objects, because a full visit would delay the loop. A reference
cycle would therefore keep a request of several megabytes for up to an hour.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.hostile_messages import Shape, long_request
from tests.sim.messages import create_topic
from tests.unit.node.bench import Bench

from tidelog.api.listeners import ListenerKind
from tidelog.api.records.fetch_sessions import CachedPartition
from tidelog.api.registry import REGISTRY, Api
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ConnId
from tidelog.protocol.fetch.request import FetchPartition, FetchRequest

ELEMENTS = 2_500
REAL = 20
VERSION = 12
FEW = 100
"""How many objects other code may leave in cycles. The limit is far below ELEMENTS."""


@contextmanager
def without_garbage() -> Iterator[None]:
    """Fail if the block leaves objects that only the garbage collector can free."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        kinds = sorted({type(one).__name__ for one in gc.garbage})
        assert len(gc.garbage) < FEW, f"{len(gc.garbage)} objects in cycles: {kinds}"
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def versions(api: Api) -> list[int]:
    return sorted({api.min_version, api.max_version})


def begun(node: Bench, api: Api, version: int) -> ConnId:
    listener = "PLAINTEXT" if ListenerKind.BROKER in api.listeners else "CONTROLLER"
    conn = node.connect(listener)
    node.send_frame(conn, long_request(api, version, Shape.WIDE, ELEMENTS).frame[4:])
    return conn


def forget(node: Bench, conn: ConnId) -> None:
    """Close the connection, and drop the effects and answers that the bench has recorded."""
    if conn not in node.closed:
        node.disconnect(conn)
    node.outbound.clear()
    node.sent.clear()


@pytest.mark.parametrize("api", REGISTRY.values(), ids=lambda api: api.name)
def test_f63_an_answered_request_leaves_no_garbage(api: Api) -> None:
    node = Bench()
    node.settle()
    for version in versions(api):
        with without_garbage():
            conn = begun(node, api, version)
            for _ in range(2_000):
                if node.sent[conn] or conn in node.closed:
                    break
                node.flush()
                node.pass_time(1)
            assert node.sent[conn] or conn in node.closed
            forget(node, conn)


@pytest.mark.parametrize("api", REGISTRY.values(), ids=lambda api: api.name)
def test_f63_an_abandoned_request_leaves_no_garbage(api: Api) -> None:
    node = Bench()
    node.settle()
    for version in versions(api):
        with without_garbage():
            conn = begun(node, api, version)
            node.pass_time(2)
            forget(node, conn)
            for _ in range(100):
                node.flush()
                node.pass_time(1)
            node.outbound.clear()


def session_fetch(partitions: int, **more: Any) -> FetchRequest:
    # The partitions that exist come last, so that the session ends before they are read.
    asked = [FetchPartition(index, -1, 0, -1, -1, 1_000) for index in reversed(range(partitions))]
    return FetchRequest(0, 1, 1 << 20, topics=[("t", asked)] if asked else [], **more)


def test_f63_a_session_that_ends_while_it_is_read_in_slices_leaves_no_watch() -> None:
    node = Bench()
    node.ask(create_topic("t", REAL))
    node.settle()
    reader, other = node.connect(), node.connect()
    first = session_fetch(ELEMENTS, session_epoch=0)
    node.send(reader, first, VERSION)
    node.settle()
    session = node.answer(reader, first, VERSION).session_id
    again = session_fetch(0, session_id=session, session_epoch=1, isolation_level=1)
    node.send(reader, again, VERSION)
    assert not node.sent[reader]

    node.send(other, session_fetch(0, session_id=session, session_epoch=-1), VERSION)
    node.settle()

    assert node.answer(reader, again, VERSION).error is ErrorCode.none
    forget(node, reader)
    gc.collect()
    assert not [one for one in gc.get_objects() if isinstance(one, CachedPartition)]
