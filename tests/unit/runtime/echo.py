"""A small node whose answer depends on a frame's first byte, and a host that runs the node."""

import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event as ThreadEvent
from threading import Thread
from time import thread_time_ns

from tidelog.model.disk import File, FileSlice
from tidelog.model.events import (
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    FrameReceived,
    PeerConnected,
    Ran,
    ResponsesUnread,
    Ticked,
    WallClockMoved,
)
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import (
    CloseConnection,
    Connect,
    Outbound,
    RequestFailed,
    Run,
    Send,
    StartReading,
    Stop,
    StopReading,
)
from tidelog.node.jobs import SyncFiles
from tidelog.runtime.clock import HostClock
from tidelog.runtime.loop import Host
from tidelog.runtime.transport.limits import Limits
from tidelog.runtime.transport.listeners import bind
from tidelog.runtime.transport.tls_contexts import NO_TLS, TlsContexts

SLICE = struct.Struct(">qi")
NUMBER = struct.Struct(">i")
PEER: ConnId = -1
ANSWER = 32 * 1024 * 1024
"""The longest allowed answer of the peer."""


def framed(payload: bytes) -> bytes:
    return NUMBER.pack(len(payload)) + payload


class EchoNode:
    """Answers frames. The first byte of a frame selects the answer.

    e: the rest of the frame. x: the same, then closes the connection. !: raises an error.
    m: this many bytes of memory. f: a slice of the file, sent from the file.
    y: fsyncs the file with this index, and answers when the fsync has ended.
    p: answers after this many ms, and reads nothing else until then.
    c: connects to this address, and answers with the result. h: closes the connection to the peer.
    r: forwards the rest to the peer, and the peer's answer back to the client.
    w: waits. b: lets a waiting request fail, and answers this one with the rest.
    """

    def __init__(self, files: list[File] | None = None) -> None:
        self.files = files or []
        self.was_closed = False
        self.connected: list[str] = []
        self.subjects: list[str] = []
        self.tls_listener = ""
        self.disconnected: list[ConnId] = []
        self.wall_moves: list[Millis] = []
        self.is_much_unread: list[bool] = []
        self.frames = 0
        self.announced = ThreadEvent()
        self._asker: ConnId = 0
        self.unlucky: ConnId = 0
        self._open: set[ConnId] = set()
        self._flushing: dict[int, ConnId] = {}
        self._parked: list[tuple[Millis, ConnId]] = []

    def start(self) -> list[Outbound]:
        return []

    def in_work(self) -> str:
        return ""

    @property
    def is_ready(self) -> bool:
        return True

    def handle(self, event: Event, now: Millis) -> list[Outbound]:
        match event:
            case FrameReceived() if event.conn == PEER:
                return [Send(self._asker, [framed(bytes(event.frame))])]
            case FrameReceived():
                assert event.conn in self._open
                self.frames += 1
                return self._answer(event.conn, bytes(event.frame), now)
            case Connected():
                self._open.add(event.conn)
                self.connected.append(event.peer)
                self.subjects.append(event.subject)
            case PeerConnected():
                return [Send(self._asker, [framed(b"connected")])]
            case ConnectFailed():
                answer = b"refused" if event.was_refused else b"failed: " + event.reason.encode()
                return [Send(self._asker, [framed(answer)])]
            case Disconnected() if event.conn == PEER:
                return [Send(self._asker, [framed(b"lost")])]
            case Disconnected():
                self._open.remove(event.conn)
                self.disconnected.append(event.conn)
            case Ran():
                answer = str(event.value or event.error or "ok").encode()
                return [Send(self._flushing.pop(event.token), [framed(answer)])]
            case ResponsesUnread():
                self.is_much_unread.append(event.is_much)
            case WallClockMoved():
                self.wall_moves.append(event.ahead_ms)
            case Ticked():
                return self._unpark(now)
        return []

    def next_deadline(self) -> Millis | None:
        return min(self._parked)[0] if self._parked else None

    def shutdown(self, now: Millis) -> list[Outbound]:
        return [Stop(0, "asked to")]

    def stop_now(self, now: Millis) -> list[Outbound]:
        self.was_closed = True
        return [Stop(1, "asked to twice")]

    def _answer(self, conn: ConnId, frame: bytes, now: Millis) -> list[Outbound]:
        kind, rest = frame[:1], frame[1:]
        match kind:
            case b"e":
                return [Send(conn, [NUMBER.pack(len(rest)), rest])]
            case b"m":
                return [Send(conn, [framed(bytes(NUMBER.unpack(rest)[0]))])]
            case b"f":
                position, length = SLICE.unpack(rest)
                part = FileSlice(self.files[0], position, length)
                return [Send(conn, [NUMBER.pack(length), part])]
            case b"y":
                token = len(self._flushing)
                self._flushing[token] = conn
                return [Run(token, SyncFiles((self.files[rest[0]],)))]
            case b"p":
                self._parked.append((now + NUMBER.unpack(rest)[0], conn))
                return [StopReading(conn)]
            case b"c":
                self._asker = conn
                port, host = NUMBER.unpack(rest[:4])[0], rest[4:].decode()
                return [Connect(PEER, host, port, ANSWER, self.tls_listener)]
            case b"r":
                return [Send(PEER, [framed(rest)])]
            case b"h":
                return [CloseConnection(PEER, ""), Send(conn, [framed(b"hung up")])]
            case b"w":
                self.unlucky = conn
                return []
            case b"b":
                bug = RequestFailed(self.unlucky, RuntimeError("a bug"))
                return [bug, Send(conn, [framed(rest)])]
            case b"x":
                return [Send(conn, [framed(rest)]), CloseConnection(conn, "asked to")]
        raise AssertionError(f"unknown {kind!r}")

    def _unpark(self, now: Millis) -> list[Outbound]:
        due = [conn for at, conn in sorted(self._parked) if at <= now]
        self._parked = [entry for entry in self._parked if entry[0] > now]
        return [out for c in due for out in (Send(c, [framed(b"late")]), StartReading(c))]


class Client:
    """A blocking client."""

    def __init__(self) -> None:
        self.sock = socket.socket()

    def encrypt(self, context: ssl.SSLContext, host: str = "localhost") -> "Client":
        """Encrypt an open connection."""
        self.sock = context.wrap_socket(self.sock, server_hostname=host)
        return self

    def connect(self, address: tuple[str, int]) -> "Client":
        self.sock.connect(address)
        return self

    def ask(self, payload: bytes) -> bytes:
        self.sock.sendall(framed(payload))
        return self.answer()

    def answer(self) -> bytes:
        return self.read(NUMBER.unpack(self.read(4))[0])

    def read(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            part = self.sock.recv(size - len(received))
            if not part:
                raise EOFError(bytes(received))
            received += part
        return bytes(received)

    def is_closed_by_peer(self) -> bool:
        """Wait until the peer closes the connection."""
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:
            return True


class Served:
    """A running host with its node."""

    def __init__(
        self,
        node: EchoNode,
        limits: Limits,
        clock: HostClock,
        cpu_clock: Callable[[], int],
        contexts: TlsContexts,
    ) -> None:
        listening = bind("PLAINTEXT", "127.0.0.1", 0)
        self.node = node
        self.address: tuple[str, int] = listening.sock.getsockname()
        self.host = Host(node, [listening], limits, clock, contexts=contexts, cpu_clock=cpu_clock)
        self.status: int | None = None
        self._thread = Thread(target=self._run)
        self._thread.start()
        self._clients: list[Client] = []

    def client(self) -> Client:
        self._clients.append(Client().connect(self.address))
        return self._clients[-1]

    def stop(self) -> int | None:
        self.host.interrupt()
        self._thread.join()
        return self.status

    def close(self) -> None:
        self.stop()
        for client in self._clients:
            client.sock.close()

    def _run(self) -> None:
        self.status = self.host.run(self.node.announced.set)


@contextmanager
def serving(
    node: EchoNode | None = None,
    limits: Limits | None = None,
    clock: HostClock | None = None,
    cpu_clock: Callable[[], int] = thread_time_ns,
    contexts: TlsContexts = NO_TLS,
) -> Iterator[Served]:
    served = Served(
        node or EchoNode(), limits or Limits(), clock or HostClock(), cpu_clock, contexts
    )
    try:
        yield served
    finally:
        served.close()
