"""A real node decompresses hostile batches, and all other clients are served meanwhile (F64)."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Any

import pytest
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic
from tests.hostile_batches import bomb
from tests.sim.messages import answer_in, ask, batch, create_topic, frame_of, produce_to

from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.records import Record, build_batch
from tidelog.testing import Cluster

SEARCHES = 30
NOW = 1_700_000_000_000


class Client:
    """A connection with one request at a time."""

    def __init__(self, port: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port))
        self._stream = self._sock.makefile("rb")

    def close(self) -> None:
        self._stream.close()
        self._sock.close()

    def send(self, message: Any) -> None:
        self._sock.sendall(frame_of(message))

    def receive(self, message: Any) -> Any:
        size = int.from_bytes(self._stream.read(4), "big")
        return answer_in(self._stream.read(size), message)

    def ask(self, message: Any) -> Any:
        self.send(message)
        return self.receive(message)

    def produce(self, records: bytes) -> tuple[ErrorCode, int]:
        [(_, [produced])] = self.ask(produce_to("orders", records)).topics
        return produced.error, produced.base_offset


@pytest.fixture
def port() -> Iterator[int]:
    with Cluster(1) as cluster:
        with client(cluster.port(1)) as one:
            [created] = one.ask(create_topic("orders")).topics
            assert created.error_code is ErrorCode.none
        yield cluster.port(1)


@contextmanager
def client(port: int) -> Iterator[Client]:
    made = Client(port)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def bystander(port: int, served: list[int]) -> Iterator[Event]:
    """A producer that adds acknowledged offsets to `served`, and sets an event after the first."""
    is_over, first = Event(), Event()

    def produce() -> None:
        with client(port) as one:
            while not is_over.is_set():
                error, offset = one.produce(batch(b"x"))
                assert error is ErrorCode.none
                served.append(offset)
                first.set()

    thread = Thread(target=produce)
    thread.start()
    try:
        yield first
    finally:
        is_over.set()
        thread.join()


def by_time(timestamp: int) -> Any:
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topics = (ListOffsetsTopic(name="orders", partitions=(partition,)),)
    return ask(2, replica_id=-1, isolation_level=0, topics=topics)


def test_f64_others_are_served_while_thirty_searches_unpack_a_batch(port: int) -> None:
    last = Record(b"k", None, NOW + 5)
    tiny = [Record(b"k", None, NOW)] * 150_000
    served: list[int] = []
    wish = by_time(NOW + 1)
    with ExitStack() as stack:
        clients = [stack.enter_context(client(port)) for _ in range(SEARCHES)]
        assert clients[0].produce(build_batch([*tiny, last], compression="zstd"))[1] == 0
        with bystander(port, served) as first:
            first.wait()
            before = len(served)
            for one in clients:
                one.send(wish)
            answers = [one.receive(wish).topics[0].partitions[0] for one in clients]
            meanwhile = len(served) - before
    assert {(one.error_code, one.offset) for one in answers} == {(ErrorCode.none, len(tiny))}
    # If the searches blocked the node, the bystander would get at most one answer.
    assert meanwhile >= SEARCHES


def test_f64_a_batch_that_cannot_hold_its_records_is_refused(port: int) -> None:
    with client(port) as one:
        assert one.produce(bomb("gzip", 8_000_000, NOW))[0] is ErrorCode.invalid_record
        assert one.produce(bomb("gzip", 500_000, NOW))[0] is ErrorCode.invalid_record
        assert one.produce(batch(b"x")) == (ErrorCode.none, 0)
