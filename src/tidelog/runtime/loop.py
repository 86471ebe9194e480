"""The real host of a node: one thread, one epoll, bytes in, events to the node, bytes out.

A pass: wait, read every ready connection once, hand its frames to the node, tick, then send. All
answers of one pass leave in one send per connection.

Invariants: no connection takes more than its share of a pass (one read, `FRAMES_PER_PASS` frames).
A connection whose peer does not read its answers is itself not read, so nothing grows without
bound. The node hears `Connected` first and `Disconnected` last of every connection, and each event
in a call of its own.
"""

import logging
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Protocol, assert_never

from tidelog.model.events import (
    Connected,
    ConnectFailed,
    Disconnected,
    Event,
    Flushed,
    FrameReceived,
    PeerConnected,
    Ticked,
)
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import (
    CloseConnection,
    Connect,
    Flush,
    Outbound,
    Send,
    StartReading,
    Stop,
    StopReading,
)
from tidelog.protocol.framing import BadFrame, FrameSplitter
from tidelog.runtime.alarm import Alarm
from tidelog.runtime.connection import DISK, SOCKET, Connection, HeldFrames, ShortFile
from tidelog.runtime.dialling import Dialler
from tidelog.runtime.listeners import Acceptor, ListeningSocket
from tidelog.runtime.workers import Workers

READ_BYTES = 256 * 1024
FRAMES_PER_PASS = 64
EVENTS_PER_PASS = 256
THREADS = 4
SWEEPS_PER_IDLE = 8
"""Idle connections are looked for this often in connections.max.idle.ms."""

_IN, _OUT = select.EPOLLIN, select.EPOLLOUT
_BY_NODE, _BY_UNSENT, _BY_CLOSE = 1, 2, 4
"""Why a connection is not being read: the node's wish, its unsent answers, its coming end."""

log = logging.getLogger(__name__)


class HostedNode(Protocol):
    """What the loop asks of a node."""

    def handle(self, event: Event, now: Millis) -> list[Outbound]: ...

    def next_deadline(self) -> Millis | None: ...

    def start(self) -> list[Outbound]:
        """Comes before the first event."""

    @property
    def is_ready(self) -> bool:
        """Whether it takes writes."""

    def shutdown(self, now: Millis) -> list[Outbound]:
        """Begin a controlled shutdown; its end is a `Stop`."""


@dataclass(frozen=True, slots=True)
class Limits:
    connections: int = 2**31 - 1
    idle_ms: int = 10 * 60 * 1000
    request_bytes: int = 100 * 1024 * 1024
    unsent_bytes: int = 2 * 1024 * 1024
    backlog: int = 1024


class Host:
    """Serves one node on its listeners until the node says `Stop`."""

    def __init__(
        self,
        node: HostedNode,
        listeners: list[ListeningSocket],
        limits: Limits,
        clock: Callable[[], Millis],
    ) -> None:
        self._node = node
        self._limits = limits
        self._clock = clock
        self._now = clock()
        self._epoll = select.epoll()
        self._alarm = Alarm()
        self._epoll.register(self._alarm.fileno(), _IN)
        self._dialler = Dialler(self._epoll)
        self._acceptor = Acceptor(self._epoll, listeners, limits.backlog)
        self._flushers = Workers(THREADS, self._alarm.ring)
        self._readers = Workers(THREADS, self._alarm.ring)
        self._shared = memoryview(bytearray(READ_BYTES))
        self._ids = count(1)
        self.connections: dict[ConnId, Connection] = {}
        self._by_fd: dict[int, Connection] = {}
        self._holding: list[Connection] = []  # have frames to be handled in the next pass
        self._answered: list[Connection] = []  # have something to send in this pass
        self._news: list[Event] = []  # what the node hears before this pass ends
        self._sweep_at = self._now + limits.idle_ms // SWEEPS_PER_IDLE
        self._interrupts = 0
        self._shutting_down = False
        self._status: int | None = None

    def interrupt(self) -> None:
        """Begin a controlled shutdown; asked again, end at once. Safe in any thread or signal."""
        self._interrupts += 1
        self._alarm.ring()

    def alarm_fd(self) -> int:
        """For `signal.set_wakeup_fd`."""
        return self._alarm.button_fd()

    def run(self, ready: Callable[[], None]) -> int:
        """Serve. -> the exit status. `ready` is called once, when the node takes writes."""
        is_announced = False
        try:
            self._perform(self._node.start())
            while self._status is None:
                self._pass()
                if not is_announced and self._node.is_ready:
                    is_announced = True
                    ready()
        finally:
            self._close()
        return self._status

    # -- One pass ------------------------------------------------------------------------------

    def _pass(self) -> None:
        for fd, mask in self._epoll.poll(self._patience(), EVENTS_PER_PASS):
            self._now = self._clock()
            conn = self._by_fd.get(fd)
            if conn is not None:
                self._serve(conn, mask)
            elif fd == self._alarm.fileno():
                self._answer_alarm()
            elif self._dialler.dials_on(fd):
                self._finish_connecting(fd)
            elif self._acceptor.listens_on(fd):
                self._accept(fd)
        self._now = self._clock()
        self._resume_held()
        self._keep_time()
        while self._answered or self._news:
            self._send_answers()
            news, self._news = self._news, []
            for event in news:
                self._tell(event)

    def _patience(self) -> float:
        """How long to wait for something to happen, in seconds."""
        if self._holding:
            return 0
        until = self._sweep_at
        if (deadline := self._node.next_deadline()) is not None:
            until = min(until, deadline)
        if (resume := self._acceptor.resume_at) is not None:
            until = min(until, resume)
        return max(0, until - self._clock()) / 1000

    def _serve(self, conn: Connection, mask: int) -> None:
        if mask & _OUT and conn.waits_for == SOCKET:
            self._send(conn)
        if conn.id not in self.connections:
            return
        if mask & _IN:
            if conn.muted:
                self._watch(conn)
            elif conn.held is None:
                self._read(conn)
        elif mask & ~_OUT:  # hung up or broken
            self._drop(conn)

    def _accept(self, fd: int) -> None:
        room = self._limits.connections - len(self.connections)
        for listener, sock, peer in self._acceptor.accept(fd, room, self._now):
            conn = next(self._ids)
            self._epoll.register(sock.fileno(), _IN)
            self._admit(conn, sock, peer)
            self._tell(Connected(conn, peer, listener))

    def _admit(self, conn: ConnId, sock: socket.socket, peer: str) -> None:
        splitter = FrameSplitter(self._limits.request_bytes)
        admitted = Connection(conn, sock, peer, splitter, self._now, interest=_IN)
        self.connections[conn] = self._by_fd[sock.fileno()] = admitted

    def _connect(self, wish: Connect) -> None:
        error = self._dialler.dial(wish.conn, wish.host, wish.port)
        if error is not None:
            self._news.append(_connect_failed(wish.conn, error))

    def _finish_connecting(self, fd: int) -> None:
        conn, sock, peer, error = self._dialler.finish(fd)
        if error is not None:
            self._tell(_connect_failed(conn, error))
            return
        self._epoll.modify(fd, _IN)
        self._admit(conn, sock, peer)
        self._tell(PeerConnected(conn))

    def _answer_alarm(self) -> None:
        self._alarm.quiet()
        self._flushers.finish()
        self._readers.finish()
        if self._interrupts > 1:
            log.warning("stopped at once, without a controlled shutdown")
            self._status = 1
        elif self._interrupts and not self._shutting_down:
            self._shutting_down = True
            self._perform(self._node.shutdown(self._now))

    def _keep_time(self) -> None:
        deadline = self._node.next_deadline()
        if deadline is not None and deadline <= self._now:
            self._tell(Ticked())
        if self._acceptor.resume_at is not None and self._acceptor.resume_at <= self._now:
            self._acceptor.resume()
        if self._sweep_at <= self._now:
            self._sweep_at = self._now + self._limits.idle_ms // SWEEPS_PER_IDLE
            oldest = self._now - self._limits.idle_ms
            for conn in [c for c in self.connections.values() if c.active_at < oldest]:
                self._drop(conn)

    # -- In ------------------------------------------------------------------------------------

    def _read(self, conn: Connection) -> None:
        try:
            frames = conn.receive(self._shared)
        except BlockingIOError:
            return
        except OSError:
            self._drop(conn)
            return
        except BadFrame as bad:
            self._deliver(conn, bad.frames)
            self._end(conn, bad.reason)
            return
        conn.active_at = self._now
        if frames is None:
            self._end(conn, "")
            return
        done = self._deliver(conn, frames)
        if done < len(frames) and not conn.muted & _BY_CLOSE:
            conn.held = HeldFrames(frames[done:])
            if not conn.muted:
                self._holding.append(conn)

    def _resume_held(self) -> None:
        holding, self._holding = self._holding, []
        for conn in holding:
            if conn.held is None or conn.muted:
                continue
            conn.held.drop(self._deliver(conn, conn.held.first(FRAMES_PER_PASS)))
            if not conn.held:
                conn.held = None
            elif not conn.muted:
                self._holding.append(conn)

    def _deliver(self, conn: Connection, frames: list[memoryview]) -> int:
        """Hand over frames up to the connection's share, or until it is muted. -> how many."""
        handle, perform = self._node.handle, self._perform
        done = 0
        try:
            for frame in frames[:FRAMES_PER_PASS]:
                if conn.muted:
                    break
                done += 1
                perform(handle(FrameReceived(conn.id, frame), self._now))
        except Exception:
            # A bug of ours that one client's request has found: the others are served on.
            log.exception("%s: a request could not be handled", conn.peer)
            self._drop(conn)
        return done

    # -- Out -----------------------------------------------------------------------------------

    def _tell(self, event: Event) -> None:
        self._perform(self._node.handle(event, self._now))

    def _perform(self, outbounds: list[Outbound]) -> None:
        for outbound in outbounds:
            match outbound:
                case Send():
                    self._enqueue(outbound)
                case Flush():
                    self._flush(outbound)
                case Stop():
                    log.info("stopped: %s", outbound.reason)
                    self._status = outbound.status
                case StopReading():
                    if (conn := self.connections.get(outbound.conn)) is not None:
                        conn.muted |= _BY_NODE
                case StartReading():
                    if (conn := self.connections.get(outbound.conn)) is not None:
                        self._unmute(conn, _BY_NODE)
                case CloseConnection():
                    if (conn := self.connections.get(outbound.conn)) is not None:
                        self._end(conn, outbound.reason)
                    else:
                        self._dialler.hang_up(outbound.conn)
                case Connect():
                    self._connect(outbound)
                case _:
                    assert_never(outbound)

    def _flush(self, wish: Flush) -> None:
        def sync() -> None:
            for file in wish.files:
                file.sync()

        self._flushers.submit(sync, lambda error: self._tell(Flushed(wish.token, error)))

    def _enqueue(self, answer: Send) -> None:
        conn = self.connections.get(answer.conn)
        if conn is None or conn.muted & _BY_CLOSE:
            return  # nobody is there to read it
        if not conn.waiting:
            self._answered.append(conn)
        conn.enqueue(answer.chunks)
        if conn.unsent > self._limits.unsent_bytes:
            if not conn.waits_for:
                self._send(conn)
            if conn.unsent > self._limits.unsent_bytes:
                conn.muted |= _BY_UNSENT

    def _send_answers(self) -> None:
        answered, self._answered = self._answered, []
        for conn in answered:
            if not conn.waits_for:
                self._send(conn)

    def _send(self, conn: Connection, *, is_warm: bool = False) -> None:
        try:
            conn.send(is_warm=is_warm)
        except (OSError, ShortFile) as error:
            log.info("%s: closed: %s", conn.peer, error)
            self._drop(conn)
            return
        conn.active_at = self._now
        if conn.waits_for == DISK:
            self._readers.submit(conn.cold_read(), lambda _: self._warmed(conn))
        elif not conn.waits_for and conn.muted & _BY_CLOSE:
            self._drop(conn)
            return
        if conn.muted & _BY_UNSENT and 2 * conn.unsent <= self._limits.unsent_bytes:
            self._unmute(conn, _BY_UNSENT)
        if conn.waits_for == SOCKET or conn.interest & _OUT:
            self._watch(conn)

    def _warmed(self, conn: Connection) -> None:
        if conn.id in self.connections:
            self._send(conn, is_warm=True)

    def _unmute(self, conn: Connection, reason: int) -> None:
        conn.muted &= ~reason
        if not conn.muted:
            if conn.held is not None:
                self._holding.append(conn)
            self._watch(conn)

    def _watch(self, conn: Connection) -> None:
        """Let epoll watch for what the connection can do now.

        A muting comes into force here only when input has come: most end before.
        """
        interest = (0 if conn.muted else _IN) | (_OUT if conn.waits_for == SOCKET else 0)
        if interest != conn.interest:
            conn.interest = interest
            self._epoll.modify(conn.sock.fileno(), interest)

    # -- The end of a connection ---------------------------------------------------------------

    def _end(self, conn: Connection, reason: str) -> None:
        """Close once what waits has left; take nothing more."""
        if reason and not conn.muted & _BY_CLOSE:
            log.warning("%s: closed: %s", conn.peer, reason)
        conn.muted |= _BY_CLOSE
        conn.held = None
        self._answered.append(conn)

    def _drop(self, conn: Connection) -> None:
        """Close now. The node hears of it before this pass ends."""
        if self.connections.pop(conn.id, None) is None:
            return
        del self._by_fd[conn.sock.fileno()]
        conn.sock.close()
        conn.muted |= _BY_CLOSE
        conn.held = None
        conn.waiting.clear()
        self._news.append(Disconnected(conn.id))
        self._acceptor.resume()

    def _close(self) -> None:
        self._flushers.stop()
        self._readers.stop()
        self._acceptor.close()
        self._dialler.close()
        for conn in self.connections.values():
            conn.sock.close()
        self._epoll.close()
        self._alarm.close()


def _connect_failed(conn: ConnId, error: OSError) -> ConnectFailed:
    return ConnectFailed(
        conn, isinstance(error, ConnectionRefusedError), error.strerror or str(error)
    )
