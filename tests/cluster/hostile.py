"""A three-node cluster under hostile requests, and a bystander that must still be served."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

from tests.hostile_messages import LongRequest
from tests.sim.messages import answer_in, batch, frame_of, produce_to

from tidelog.api.listeners import ListenerKind
from tidelog.model.errors import ErrorCode
from tidelog.testing import Cluster

PATIENCE = 240
"""If a test waits longer than this many seconds, it fails. The limit is not a test of speed."""

BYSTANDER = "bystander"
TOPICS, PARTITIONS = 4, 50


class Client:
    """A connection with one request at a time."""

    def __init__(self, port: int) -> None:
        self._sock = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self._stream = self._sock.makefile("rb")

    def close(self) -> None:
        self._stream.close()
        self._sock.close()

    def ask(self, message: Any) -> Any:
        self._sock.sendall(frame_of(message))
        return answer_in(self.receive(), message)

    def send_frame(self, frame: bytes) -> bool:
        """Send a frame; return False if the node has closed the connection."""
        try:
            self._sock.sendall(frame)
        except ConnectionError:
            return False
        return True

    def receive(self) -> bytes:
        """The next answer, or no bytes if the connection was closed."""
        try:
            size = int.from_bytes(self._stream.read(4), "big")
            return self._stream.read(size)
        except ConnectionError:
            return b""


@contextmanager
def client(port: int) -> Iterator[Client]:
    made = Client(port)
    try:
        yield made
    finally:
        made.close()


class Bystander:
    """Produces small records with acks=all one after the other, and measures the time of each."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_over = Event()
        self._thread = Thread(target=self._produce)
        self.took_ms: list[float] = []
        self.failed: list[str] = []

    def __enter__(self) -> "Bystander":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _produce(self) -> None:
        request = produce_to(BYSTANDER, batch(b"x"))
        with client(self._port) as one:
            while not self._is_over.is_set():
                began = time.perf_counter()
                [(_, [produced])] = one.ask(request).topics
                self.took_ms.append(1000 * (time.perf_counter() - began))
                if produced.error is not ErrorCode.none:
                    self.failed.append(produced.error.name)
                self._is_over.wait(0.002)


def create_topics(cluster: Cluster) -> None:
    """Create the topics that hostile requests name, and the bystander's topic, led by node 1."""
    for number in range(TOPICS):
        cluster.create_topic(f"t{number}", partitions=PARTITIONS, replication_factor=3)
    cluster.create_topic(BYSTANDER, assignment=[[1, 2, 3]])


def outcome(cluster: Cluster, node: int, request: LongRequest) -> str:
    """Send the request on a new connection; return whether the node answered or disconnected."""
    is_for_brokers = ListenerKind.BROKER in request.api.listeners
    port = cluster.port(node) if is_for_brokers else cluster.controller_port(node)
    with client(port) as one:
        if not one.send_frame(request.frame):
            return "closed"
        return "answered" if one.receive() else "closed"


def peak_mib(pid: int) -> float:
    """The peak resident memory of the process, in MiB."""
    (line,) = [
        line
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) / 1024
