"""Connections that this node makes to others: requests out, answers or failures back, in order.

A channel is one connection to one address for one purpose, so that a fetch that waits never holds
up a vote. It connects when first needed and again when needed after a loss. A loss followed by a
refused reconnect is told to `refused`: no process is there any more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

from tidelog.model.events import ConnectFailed, Disconnected, FrameReceived, PeerConnected
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import Chunk, CloseConnection, Connect, Outbound, Send
from tidelog.node.clock import Clock
from tidelog.node.timers import Timer, Timers
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.messages import correlation_id_of, decode_response, encode_request


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why a request has no answer."""

    reason: str
    was_refused: bool = False
    """Nobody listens at the address."""
    was_lost: bool = False
    """There was a connection, and the other side ended it."""
    was_connected: bool = False
    """There was a connection: no answer came by it, or none that can be used."""


Encode: TypeAlias = Callable[[int], list[Chunk]]
"""A whole request frame with this correlation id."""
Decode: TypeAlias = Callable[[memoryview], Any]
"""The answer in a frame, which is valid only during the call."""
Done: TypeAlias = Callable[[Any], None]
"""Called once, with what `Decode` returned or with `Unanswered`."""


_NEVER: Millis = 1 << 62

RECONNECT_MS: Millis = 100
QUICK_RECONNECTS = 3
"""So many connections in a row may end within that time before the next one waits for it: a process
that is dying is still to be found out at once, one that turns everyone away is not to be pestered.
"""
ANSWER_BYTES = 100 << 20
"""How long an answer may be where nothing asks for more: far more than any of them is."""
LONG_ANSWER_BYTES = 2**31 - 1
"""How long one may be that carries what somebody else has sized: a batch of any size that a leader
holds, or a line for each thing that a client has named. What arrives takes memory, a length does
not.
"""
PROBE_MS: Millis = 500
"""How long a probe stays connected before it is taken for a sign of life."""


def ignore_refusal() -> None:
    """For a channel whose user retries by its own timer."""


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
    ) -> None:
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
        """When to see whether an answer is late: no later than the first of them would be.

        Almost all come in time, so a request sets no timer while one is set for its elders, and
        that one finds nothing to do.
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
        """Connect, only to see whether somebody is there."""
        if self._conn is None:
            self._is_probe = True
            self._connect()

    def close(self) -> None:
        """Give up the connection and everything that waits on it."""
        self._is_closed = True
        if self._conn is not None:
            self._peers.emit(CloseConnection(self._conn, ""))
        self._lose(Unanswered("closed"))

    # -- told by the host --------------------------------------------------------------------------

    def connected(self) -> None:
        self._is_connected = True
        self._connected_at = self._peers.clock.now
        if self._is_probe:
            # A dying process is still listening while its connections go: wait and see.
            peers = self._peers
            peers.timers.at(peers.clock.now + PROBE_MS, self._end_probe)
        for pending in list(self._pending.values()):
            self._send(pending)

    def connect_failed(self, was_refused: bool, reason: str) -> None:
        self._lose(Unanswered(reason, was_refused))
        if was_refused:
            self._refused()

    def disconnected(self) -> None:
        """Lost: whoever waits is told, and a reconnect shows whether a process is still there."""
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
        try:
            pending = self._pending.pop(correlation_id_of(frame), None)
        except MalformedMessage as malformed:
            self._refuse(malformed)
            return
        if pending is None:
            return  # timed out before
        try:
            answer = pending.decode(frame)
        except MalformedMessage as malformed:
            answer = self._refuse(malformed)
        except OSError as failure:
            # This node could not write what the peer sent, and the node ends or gives up a log.
            pending.done(self._give_up(f"this node's own disk: {failure}"))
            raise
        except Exception as bug:
            # Ours, not the peer's; whoever waits is to ask again and not to wait for ever.
            pending.done(self._refuse(bug))
            raise
        pending.done(answer)

    def _end_probe(self) -> None:
        if self._is_probe and not self._pending:
            self.close()

    # -- inside ------------------------------------------------------------------------------------

    def _connect(self) -> None:
        self._conn = self._peers.open(self)
        self._peers.emit(Connect(self._conn, self._host, self._port, self._answer_bytes))

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
        """One that came late could be taken for another's: the connection is given up."""
        self._timer, self._look_at = None, _NEVER
        first = min((pending.deadline for pending in self._pending.values()), default=_NEVER)
        if first <= self._peers.clock.now:
            if self._conn is not None:
                self._peers.emit(CloseConnection(self._conn, ""))
            self._lose(Unanswered("no answer in time", was_connected=self._is_connected))
        elif self._pending:
            self._look_again(first)

    def _refuse(self, why_not: Exception) -> Unanswered:
        """What this peer says cannot be taken: nobody is to wait for it."""
        return self._give_up(f"a bad answer: {why_not}", f"sent a bad answer: {why_not}")

    def _give_up(self, reason: str, complaint: str = "") -> Unanswered:
        """Close the connection; the complaint, if any, is about the peer."""
        if self._conn is not None:
            self._peers.emit(CloseConnection(self._conn, complaint))
        why = Unanswered(reason, was_connected=True)
        self._lose(why)
        return why

    def _lose(self, why: Unanswered) -> None:
        if self._conn is not None:
            self._peers.forget(self._conn)
        self._conn, self._is_connected = None, False
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._look_at = None, _NEVER
        lost, self._pending = self._pending, {}
        for pending in lost.values():
            pending.done(why)


class Peers:
    """The node's outgoing connections; their ids are negative, those of clients positive."""

    def __init__(self, clock: Clock, timers: Timers, emit: Callable[[Outbound], None]) -> None:
        self.clock = clock
        self.timers = timers
        self.emit = emit
        self._ids = count(1)
        self._channels: dict[ConnId, Channel] = {}

    def channel(
        self,
        host: str,
        port: int,
        refused: Callable[[], None] = ignore_refusal,
        answer_bytes: int = ANSWER_BYTES,
    ) -> Channel:
        return Channel(self, host, port, refused, answer_bytes)

    def find(self, conn: ConnId) -> Channel | None:
        return self._channels.get(conn)

    def handle(self, event: FrameReceived | Disconnected | PeerConnected | ConnectFailed) -> None:
        """Something has come by, or happened to, a connection that the node made."""
        channel = self.find(event.conn)
        if channel is None:
            return  # given up meanwhile
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
    """How a channel writes a request and reads its answer."""
    key = message.__api_key__

    def encode(correlation_id: int) -> list[Chunk]:
        return [encode_request(message, version, correlation_id, None)]

    def decode(frame: memoryview) -> Any:
        return decode_response(key, version, frame)

    return encode, decode
