"""Outgoing connections to other nodes: each request gets an answer or a failure.

A channel is one connection to one address for one purpose. Fetches and votes, for example, use
different channels, so that a waiting fetch never delays a vote. A channel connects when it is first
used, and again after its connection is lost. If a connection is refused, no process listens at the
address, and the channel calls `refused`.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

from tidelog.model.events import ConnectFailed, Disconnected, FrameReceived, PeerConnected
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import Chunk, CloseConnection, Connect, Outbound, Send
from tidelog.node.clock import Clock
from tidelog.node.login import PLAINTEXT, LoginSteps, PeerSecurity, PeersSecurity
from tidelog.node.ready import ReadyQueue
from tidelog.node.timers import Timer
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.messages import correlation_id_of, decode_response, encode_request

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a request has no answer."""

    reason: str
    was_refused: bool = False
    """Whether the connection was refused, because no process listens at the address."""
    was_lost: bool = False
    """Whether the peer closed the open connection."""
    was_connected: bool = False
    """Whether the connection was open, but no usable answer arrived."""


Encode: TypeAlias = Callable[[int], list[Chunk]]
"""A function that encodes the whole request frame with this correlation id."""
Decode: TypeAlias = Callable[[memoryview], Any]
"""A function that decodes the answer in a frame. It changes nothing else."""
Done: TypeAlias = Callable[[Any], None]
"""Called once from the ready queue, with the result of `Decode` or with `Unanswered`.

The bytes of an answer are valid only during this call.
"""


_NEVER: Millis = 1 << 62

RECONNECT_MS: Millis = 100
QUICK_RECONNECTS = 3
"""If this many connections in a row end within `RECONNECT_MS`, the next attempt is delayed. The
first attempts are not delayed, so that the end of a process is noticed at once. Later attempts are
delayed, so that a peer that closes every connection is not flooded.
"""
ANSWER_BYTES = 100 << 20
"""The default limit on the length of an answer. Ordinary answers are far shorter."""
LONG_ANSWER_BYTES = 2**31 - 1
"""The limit for answers that may be long. A fetch returns batches of any size, and some answers
have an entry for each name in a client's request. The host allocates memory only for received
bytes, not for the length that a frame announces.
"""
PROBE_MS: Millis = 500
"""How long a probe must stay connected before its peer counts as alive."""


def ignore_refusal() -> None:
    """Do nothing, for a channel whose caller retries by its own timer."""


class _Pending:
    __slots__ = ("chunks", "deadline", "decode", "done")

    def __init__(self, chunks: list[Chunk], decode: Decode, done: Done, deadline: Millis) -> None:
        self.chunks: list[Chunk] | None = chunks
        self.decode = decode
        self.done = done
        self.deadline = deadline


class Channel:
    """One connection to one address for one purpose."""

    def __init__(
        self,
        peers: "Peers",
        host: str,
        port: int,
        refused: Callable[[], None],
        answer_bytes: int,
        security: PeerSecurity = PLAINTEXT,
    ) -> None:
        self._security = security
        self._login_steps: LoginSteps | None = None
        """The exchange with which this node authenticates, while it is not finished."""
        self._peers = peers
        self._host = host
        self._port = port
        self._refused = refused
        self._answer_bytes = answer_bytes
        self._conn: ConnId | None = None
        self._is_connected = False
        self._is_probe = False
        self._is_closed = False
        self._connected_at: Millis = 0
        self._short_lives = 0
        self._correlation_ids = count(1)
        self._pending: dict[int, _Pending] = {}
        self._timer: Timer | None = None
        self._look_at = _NEVER
        """The time of the next check for late answers, at or before the earliest deadline.

        Almost all answers arrive in time, so a request sets a timer only if no earlier timer is
        set.
        """

    @property
    def is_idle(self) -> bool:
        return not self._pending

    def request(self, encode: Encode, decode: Decode, done: Done, timeout_ms: Millis) -> None:
        correlation_id = next(self._correlation_ids) & 0x7FFFFFFF
        deadline = self._peers.clock.now + timeout_ms
        pending = _Pending(encode(correlation_id), decode, done, deadline)
        self._pending[correlation_id] = pending
        if deadline < self._look_at:
            self._look_again(deadline)
        if self._is_connected:
            self._send(pending)
        elif self._conn is None:
            self._connect()

    def probe(self) -> None:
        """Connect only to check whether a process listens at the address."""
        if self._conn is None:
            self._is_probe = True
            self._connect()

    def close(self) -> None:
        """Close the connection and fail every pending request."""
        self._is_closed = True
        if self._conn is not None:
            self._peers.emit(CloseConnection(self._conn, ""))
        self._lose(Unanswered("closed"))

    # -- called by the host ------------------------------------------------------------------------

    def connected(self) -> None:
        if self._security.login is not None:
            self._login_steps = self._security.login.steps()
            self._send_login(next(self._login_steps))
            return
        self._established()

    def _send_login(self, frame: bytes) -> None:
        assert self._conn is not None
        self._peers.emit(Send(self._conn, [frame]))

    def _logged_in(self, frame: memoryview) -> None:
        """Continue the login; the requests that wait are sent when it has succeeded."""
        assert self._login_steps is not None
        try:
            self._send_login(self._login_steps.send(frame))
        except StopIteration:
            self._login_steps = None
            self._established()
        except MalformedMessage as refused:
            log.warning("cannot log in to %s:%d: %s", self._host, self._port, refused)
            self.refuse(refused)

    def _established(self) -> None:
        self._is_connected = True
        self._connected_at = self._peers.clock.now
        if self._is_probe:
            # A process that is about to end may still accept connections, so a new connection alone
            # does not prove that the process is alive.
            peers = self._peers
            peers.timers.at(peers.clock.now + PROBE_MS, self._end_probe)
        for pending in list(self._pending.values()):
            self._send(pending)

    def connect_failed(self, was_refused: bool, reason: str) -> None:
        self._lose(Unanswered(reason, was_refused))
        if was_refused:
            self._refused()

    def disconnected(self) -> None:
        """Fail the pending requests, then reconnect to find out whether a process still listens."""
        peers = self._peers
        was_short = peers.clock.now - self._connected_at < RECONNECT_MS
        self._short_lives = self._short_lives + 1 if was_short else 0
        self._lose(Unanswered("the connection was lost", was_lost=True, was_connected=True))
        if self._short_lives <= QUICK_RECONNECTS:
            self._reconnect()
        else:
            peers.timers.at(peers.clock.now + RECONNECT_MS, self._reconnect)

    def _reconnect(self) -> None:
        if self._conn is None and not self._is_closed:
            self._connect()

    def received(self, frame: memoryview) -> None:
        if self._login_steps is not None:
            self._logged_in(frame)
            return
        try:
            pending = self._pending.pop(correlation_id_of(frame), None)
        except MalformedMessage as malformed:
            self.refuse(malformed)
            return
        if pending is None:
            return  # its request has timed out
        try:
            answer = pending.decode(frame)
        except MalformedMessage as malformed:
            answer = self.refuse(malformed)
        except Exception as bug:
            # An exception here is a bug in this node. Fail the request, so that its sender retries.
            self._peers.ready.add((pending.done, (self.refuse(bug),)))
            raise
        self._peers.ready.add((pending.done, (answer,)))

    def _end_probe(self) -> None:
        if self._is_probe and not self._pending:
            self.close()

    # -- connecting and failing requests -----------------------------------------------------------

    def _connect(self) -> None:
        self._conn = self._peers.open(self)
        tls_listener = self._security.tls_listener
        self._peers.emit(
            Connect(self._conn, self._host, self._port, self._answer_bytes, tls_listener)
        )

    def _send(self, pending: _Pending) -> None:
        assert self._conn is not None
        if pending.chunks is not None:
            self._peers.emit(Send(self._conn, pending.chunks))
            pending.chunks = None

    def _look_again(self, when: Millis) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._look_at = when
        self._timer = self._peers.timers.at(when, self._look_for_late_answers)

    def _look_for_late_answers(self) -> None:
        """Close the connection and fail its requests if an answer is late."""
        self._timer, self._look_at = None, _NEVER
        first = min((pending.deadline for pending in self._pending.values()), default=_NEVER)
        if first <= self._peers.clock.now:
            if self._conn is not None:
                self._peers.emit(CloseConnection(self._conn, ""))
            self._lose(Unanswered("no answer in time", was_connected=self._is_connected))
        elif self._pending:
            self._look_again(first)

    def refuse(self, why_not: Exception) -> Unanswered:
        """Close the connection and fail its requests, because an answer cannot be used."""
        if self._conn is not None:
            self._peers.emit(CloseConnection(self._conn, f"sent a bad answer: {why_not}"))
        why = Unanswered(f"a bad answer: {why_not}", was_connected=True)
        self._lose(why)
        return why

    def _lose(self, why: Unanswered) -> None:
        if self._conn is not None:
            self._peers.forget(self._conn)
        self._conn, self._is_connected, self._login_steps = None, False, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._look_at = None, _NEVER
        lost, self._pending = self._pending, {}
        for pending in lost.values():
            self._peers.ready.add((pending.done, (why,)))


class Peers:
    """The node's outgoing connections. Outgoing ids are negative, incoming ids are positive."""

    def __init__(
        self,
        clock: Clock,
        ready: ReadyQueue,
        emit: Callable[[Outbound], None],
        security: PeersSecurity | None = None,
    ) -> None:
        self.security = security or PeersSecurity()
        """How this node connects to brokers and to controllers."""
        self.clock = clock
        self.timers = clock.timers
        self.ready = ready
        self.emit = emit
        self._ids = count(1)
        self._channels: dict[ConnId, Channel] = {}

    def channel(
        self,
        host: str,
        port: int,
        refused: Callable[[], None] = ignore_refusal,
        answer_bytes: int = ANSWER_BYTES,
        security: PeerSecurity = PLAINTEXT,
    ) -> Channel:
        return Channel(self, host, port, refused, answer_bytes, security)

    def find(self, conn: ConnId) -> Channel | None:
        return self._channels.get(conn)

    def handle(self, event: FrameReceived | Disconnected | PeerConnected | ConnectFailed) -> None:
        """Handle an event of an outgoing connection."""
        channel = self._channels.get(event.conn)
        if channel is None:
            return  # closed in the meantime
        match event:
            case FrameReceived():
                channel.received(event.frame)
            case PeerConnected():
                channel.connected()
            case ConnectFailed():
                channel.connect_failed(event.was_refused, event.reason)
            case Disconnected():
                channel.disconnected()

    def open(self, channel: Channel) -> ConnId:
        conn = -next(self._ids)
        self._channels[conn] = channel
        return conn

    def forget(self, conn: ConnId) -> None:
        self._channels.pop(conn, None)


def coded(message: Any, version: int) -> tuple[Encode, Decode]:
    """The functions that encode a request and decode its response."""
    key = message.__api_key__

    def encode(correlation_id: int) -> list[Chunk]:
        return [encode_request(message, version, correlation_id, None)]

    def decode(frame: memoryview) -> Any:
        return decode_response(key, version, frame)

    return encode, decode
