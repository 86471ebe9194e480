"""The memory of a request is freed when the request ends, and needs no garbage collector (F63).

The collector rarely visits old objects, because a full visit would delay the loop. A reference
cycle would therefore keep a request of several megabytes for up to an hour.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.hostile_messages import Shape, long_request
from tests.unit.node.bench import Bench

from tidelog.api.listeners import ListenerKind
from tidelog.api.registry import REGISTRY, Api
from tidelog.model.ids import ConnId

ELEMENTS = 2_500
FEW = 100
"""More objects than the cycles of things that a request does not cause, and far below ELEMENTS."""


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
    """Close the connection, and drop what the bench has recorded."""
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
