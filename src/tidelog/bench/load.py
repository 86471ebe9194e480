"""Producers and consumers that put load on a cluster; the same for every system.

They speak Kafka's protocol through plain sockets. A client library would use more CPU than a broker
and hide the differences between brokers.
"""

import select
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from struct import Struct
from typing import NamedTuple

from tidelog.bench.frames import (
    ReusedFrame,
    batch_of,
    check_produced,
    fetch_frame,
    fetched_ends,
    produce_frame,
    records_in_batch,
)
from tidelog.client.client import Address, Client
from tidelog.model.ids import NodeId, Offset, TopicPartition
from tidelog.model.user_error import UserError

IN_FLIGHT = 5
"""Kafka's default of max.in.flight.requests.per.connection."""
SOCKET_SECONDS = 60.0
SMALL_RECORD_BYTES = 100

_LENGTH = Struct(">i")
_BUFFER = 1 << 20


class LoadTarget(NamedTuple):
    """A broker and the partitions of a topic that it leads."""

    address: Address
    partitions: list[int]


def leaders_of(client: Client, topic: str) -> list[LoadTarget]:
    """The leaders of a topic, each of which gets one connection."""
    answer = client.metadata((topic,))
    addresses = {one.node_id: Address(one.host, one.port) for one in answer.brokers}
    led: dict[NodeId, list[int]] = {}
    for partition in client.partitions(topic):
        led.setdefault(client.leader(TopicPartition(topic, partition)), []).append(partition)
    return [LoadTarget(addresses[node], partitions) for node, partitions in sorted(led.items())]


class LoadConnection:
    """A connection on which several requests may be in flight."""

    def __init__(self, address: Address) -> None:
        self.socket = socket.create_connection(address, SOCKET_SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ids = count()
        self._received = bytearray()

    def send(self, frame: ReusedFrame) -> None:
        self.socket.sendall(frame.with_id(next(self._ids)))

    def receive(self) -> memoryview:
        """Wait for one answer."""
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
        return self._read(length)

    def receive_available(self) -> list[bytes]:
        """The whole answers that have arrived; call it when the socket is readable."""
        got = self.socket.recv(_BUFFER)
        if not got:
            raise UserError("a broker closed the connection.")
        received = self._received
        received += got
        answers = []
        while len(received) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(received)[0]
            if len(received) < end:
                break
            answers.append(bytes(received[_LENGTH.size : end]))
            del received[:end]
        return answers

    def _read(self, length: int) -> memoryview:
        view = memoryview(bytearray(length))
        filled = 0
        while filled < length:
            got = self.socket.recv_into(view[filled:])
            if not got:
                raise UserError("a broker closed the connection.")
            filled += got
        return view

    def close(self) -> None:
        self.socket.close()


# -- At full rate ----------------------------------------------------------------------------------


class Volume(NamedTuple):
    """What a load at full rate has moved."""

    megabytes: float
    seconds: float


def produce_at_full_rate(
    leaders: Sequence[LoadTarget], topic: str, record_bytes: int, seconds: float
) -> Volume:
    """Send large batches with acks=all, five in flight at each leader; counts bytes of values."""
    records = records_in_batch(record_bytes)
    batch = batch_of(record_bytes, records)

    def produce(leader: LoadTarget) -> int:
        frames = [produce_frame(topic, partition, batch) for partition in leader.partitions]
        connection = LoadConnection(leader.address)
        sent = acknowledged = 0
        while sent > acknowledged or time.monotonic() < deadline:
            if sent - acknowledged < IN_FLIGHT and time.monotonic() < deadline:
                connection.send(frames[sent % len(frames)])
                sent += 1
            else:
                check_produced(connection.receive())
                acknowledged += 1
        connection.close()
        return sent

    began = time.monotonic()
    deadline = began + seconds
    batches = sum(_at_once(produce, leaders))
    return Volume(batches * records * record_bytes / 1e6, time.monotonic() - began)


def consume_at_full_rate(
    leaders: Sequence[LoadTarget], topic: str, ends: Mapping[int, Offset]
) -> Volume:
    """Read the topic from offset 0 to these offsets, with one consumer at each leader."""

    def consume(leader: LoadTarget) -> int:
        positions = dict.fromkeys(leader.partitions, 0)
        connection = LoadConnection(leader.address)
        read = 0
        while positions:
            connection.send(fetch_frame(topic, positions))
            for partition, end, size in fetched_ends(connection.receive()):
                read += size
                # The partition goes to the end of the next request, as Kafka's consumer does.
                del positions[partition]
                if end < ends[partition]:
                    positions[partition] = end
        connection.close()
        return read

    began = time.monotonic()
    read = sum(_at_once(consume, leaders))
    return Volume(read / 1e6, time.monotonic() - began)


def _at_once(work: Callable[[LoadTarget], int], leaders: Sequence[LoadTarget]) -> list[int]:
    with ThreadPoolExecutor(len(leaders)) as pool:
        return list(pool.map(work, leaders))


# -- At a steady rate ------------------------------------------------------------------------------


def produce_at_rate(
    leaders: Sequence[LoadTarget], topic: str, rate: int, seconds: float
) -> list[float]:
    """Send one small record per request with acks=all; the milliseconds until each answer.

    The time of a request counts from the moment at which it was due, even if it was sent later.
    """
    batch = batch_of(SMALL_RECORD_BYTES, 1)
    lanes = [
        (LoadConnection(leader.address), produce_frame(topic, partition, batch), deque[float]())
        for leader in leaders
        for partition in leader.partitions[:1]
    ]
    by_socket = {connection.socket: (connection, due) for connection, _, due in lanes}
    took: list[float] = []
    began = time.perf_counter()
    total, sent = int(rate * seconds), 0
    while len(took) < total:
        now = time.perf_counter()
        while sent < total and began + sent / rate <= now:
            connection, frame, due = lanes[sent % len(lanes)]
            due.append(began + sent / rate)
            connection.send(frame)
            sent += 1
        left = max(0.0, began + sent / rate - time.perf_counter()) if sent < total else 1.0
        for readable in select.select(list(by_socket), (), (), left)[0]:
            connection, due = by_socket[readable]
            for answer in connection.receive_available():
                took.append(1e3 * (time.perf_counter() - due.popleft()))
                check_produced(answer)
    for connection, _, _ in lanes:
        connection.close()
    return took
