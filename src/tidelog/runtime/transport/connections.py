"""The connections of a host: tracks which to read, which to send to, and which were just closed.

Invariants: if a peer does not read its responses, its connection is not read either. Each queue of
responses, and the sum of all queues, is therefore bounded. In one pass, all responses to a
connection are sent together. A dropped connection is reported once, by `take_events`, and nothing
more is sent to it.
"""

import logging
import select
from collections.abc import Collection, Iterator
from heapq import nsmallest

from tidelog.model.events import Disconnected, Event, ResponsesUnread
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import LimitConnections, RequestFailed, Send
from tidelog.protocol.framing import SHARED_BYTES, Buffers, FrameSplitter
from tidelog.runtime.transport.connection import (
    DISK,
    SENDFILE_BYTES,
    SOCKET,
    Connection,
    HeldFrames,
    ShortFile,
)
from tidelog.runtime.transport.connection_quotas import ConnectionQuotas
from tidelog.runtime.transport.half_received import HalfReceived
from tidelog.runtime.transport.limits import (
    NEW_FOR_MS,
    SILENT_MS,
    SPARED_AT_ONCE,
    SPARED_IDLE_MS,
    Limits,
)
from tidelog.runtime.transport.listeners import Accepted
from tidelog.runtime.transport.plain import Transport
from tidelog.runtime.transport.unread_responses import UnreadResponses
from tidelog.runtime.workers import Workers

FEWER_READ_BYTES, FEWEST_READ_BYTES = 16 * 1024, 4 * 1024
"""How many bytes to read at once while held or half-received requests take a lot of memory."""

CHECK_MS: Millis = 1_000
SWEEPS_PER_IDLE = 8
"""How many times to look for idle connections within connections.max.idle.ms."""

FEW = 2
"""If at most this many connections send in a pass, each may send `SENDFILE_BYTES` from files."""
FEWEST_SENT_BYTES = 32 * 1024

BY_NODE, BY_UNSENT, BY_CLOSE, BY_MEMORY = 1, 2, 4, 8
"""Reasons not to read: the node has sent `StopReading`, too many responses are unsent, the
connection is closing, or half-received requests take too much memory."""

_IN, _OUT = select.EPOLLIN, select.EPOLLOUT

log = logging.getLogger(__name__)


class Connections:
    """The connections of a host, by id and by descriptor."""

    def __init__(
        self,
        epoll: select.epoll,
        limits: Limits,
        listeners: Collection[str],
        readers: Workers,
        now: Millis,
    ) -> None:
        self._buffers = Buffers()
        self._epoll = epoll
        self._limits = limits
        self.quotas = ConnectionQuotas(
            limits.connections,
            listeners,
            controllers=limits.controller_listeners,
            inter_broker=limits.inter_broker_listener,
            shares=limits.descriptors,
        )
        self._readers = readers
        self._by_id: dict[ConnId, Connection] = {}
        self.by_fd: dict[int, Connection] = {}
        """The connections by descriptor."""
        self._answered: list[Connection] = []  # connections with responses to send in this pass
        self._holding: list[Connection] = []  # connections with frames to handle in the next pass
        self.events: list[Event] = []
        """The events that `take_events` returns."""
        self._unread = UnreadResponses(limits.stalled_bytes, limits.unsent_bytes)
        self._held = 0
        self._half_received = HalfReceived(limits.half_received_bytes)
        self._sweep_at = now + limits.idle_ms // SWEEPS_PER_IDLE
        self.check_at = self._sweep_at
        """When to call `check`, which closes idle connections and slow connections that block
        others."""
        self.share = SENDFILE_BYTES
        """The bytes that a connection may send from a file per pass."""
        self._whole = self.shared = memoryview(bytearray(SHARED_BYTES))
        """`shared` is the read buffer, or only its beginning while many requests are held."""
        self.now = now
        """The time of this pass, set by the loop."""

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._by_id.values()))

    def __contains__(self, conn: Connection) -> bool:
        return conn.id in self._by_id

    @property
    def is_holding(self) -> bool:
        return bool(self._holding)

    def find(self, conn: ConnId) -> Connection | None:
        return self._by_id.get(conn)

    def admit(
        self, conn: ConnId, transport: Transport, peer: str, answer_bytes: int | None = None
    ) -> None:
        """Serve a connection that epoll already watches for input.

        `answer_bytes` bounds the frames of a connection that this node opened. These frames are
        responses, so the limit for requests does not apply to them (F60).
        """
        longest = self._limits.request_bytes if answer_bytes is None else answer_bytes
        apis = self._limits.apis if answer_bytes is None else None
        splitter = FrameSplitter(longest, self._buffers, apis)
        admitted = Connection(conn, transport, peer, splitter, self.now, interest=_IN)
        self._by_id[conn] = self.by_fd[transport.fileno()] = admitted

    def admit_client(self, conn: ConnId, accepted: Accepted, transport: Transport) -> None:
        """Serve a client.

        If max.connections is exceeded, close the connections that have been idle for longest.
        """
        listener, _, address, peer = accepted
        self.admit(conn, transport, peer)
        admitted = self._by_id[conn]
        admitted.listener, admitted.address = listener, address
        # As `active_at` is before `opened_at`, `is_silent` is true until the first request.
        admitted.opened_at, admitted.active_at = self.now, self.now - 1
        admitted.costly_until = self.now + NEW_FOR_MS  # the cost of its requests is unknown
        self.quotas.opened(listener, address)
        self.drop_excess()

    # -- Reading -------------------------------------------------------------------------------

    def hold(self, conn: Connection, frames: list[memoryview]) -> None:
        """Keep frames that cannot be handled in this pass."""
        conn.held = HeldFrames(frames)
        self._count_held(conn.held.capacity)
        self.hold_on(conn)

    def hold_on(self, conn: Connection) -> None:
        if not conn.muted:
            self._holding.append(conn)

    def half_received(self, conn: Connection) -> None:
        """Count the bytes of a half-received request; above the limit, stop reading."""
        if conn.id < 0:
            return  # this node opened the connection; `answer_bytes` limits its responses
        if not self._half_received.changed(conn, conn.splitter.filled):
            conn.muted |= BY_MEMORY
        self._choose_read_size()
        self._read_on()

    def check(self) -> None:
        """Close idle connections, and slow connections that block other connections."""
        if self._sweep_at <= self.now:
            self._sweep_at = self.now + self._limits.idle_ms // SWEEPS_PER_IDLE
            self.drop_idle()
        for conn in self._half_received.check():
            self._log_closed(conn, "its request arrives slowly, and others wait for memory")
            self.drop(conn)
        self._drop_unread(self._unread.idle(self, self.now))
        self.check_at = self._sweep_at
        if self._unread.is_much:
            self.check_at = min(self.check_at, self.now + CHECK_MS)
        self._read_on()

    def _read_on(self) -> None:
        if self._half_received.has_waiting:
            for conn in self._half_received.take_ready():
                self.unmute(conn, BY_MEMORY)
            self.check_at = min(self.check_at, self.now + CHECK_MS)

    def resume_first(self, conns: list[Connection]) -> None:
        """Serve these connections first in the next pass. This pass has no time left for them."""
        self._holding[:0] = conns

    def release(self, conn: Connection) -> None:
        """Release held frames that are handled or no longer needed."""
        if conn.held is not None:
            self._count_held(-conn.held.capacity)
            conn.held = None

    def _count_held(self, change: int) -> None:
        self._held += change
        self._choose_read_size()

    def _choose_read_size(self) -> None:
        """Read less from each connection while many requests are held or half received."""
        held, half = self._held, self._half_received.bytes
        most_held, most_half = self._limits.held_bytes, self._limits.half_received_bytes
        if held > 2 * most_held or half > most_half:
            self.shared = self._whole[:FEWEST_READ_BYTES]
        elif held > most_held or 2 * half > most_half:
            self.shared = self._whole[:FEWER_READ_BYTES]
        else:
            self.shared = self._whole

    def take_resumable(self) -> list[Connection]:
        """Remove and return the connections whose held frames may be handled now."""
        holding, self._holding = self._holding, []
        return [conn for conn in holding if conn.held is not None and not conn.muted]

    def unmute(self, conn: Connection, reason: int) -> None:
        conn.muted &= ~reason
        if not conn.muted:
            if conn.held is not None:
                self._holding.append(conn)
            self.watch(conn)

    def watch(self, conn: Connection) -> None:
        """Let epoll watch for the events that the connection can handle now.

        When a connection is muted or gets held frames, epoll still watches its input. The loop
        calls this method only if input arrives in that state. Usually the connection can be read
        again before input arrives, so no call is necessary.
        """
        interest = (0 if conn.muted or conn.held is not None else _IN) | (
            _OUT if conn.waits_for == SOCKET else 0
        )
        if interest != conn.interest:
            conn.interest = interest
            self._epoll.modify(conn.transport.fileno(), interest)

    # -- Sending -------------------------------------------------------------------------------

    def enqueue(self, answer: Send) -> None:
        conn = self._by_id.get(answer.conn)
        if conn is None or conn.muted & BY_CLOSE:
            return  # the connection is closed
        if not conn.waiting:
            self._answered.append(conn)
        conn.enqueue(answer.chunks)
        if conn.waits_for:
            self._count_stalled(conn, conn.unsent)
        if conn.unsent > self._unread.per_connection:
            if not conn.waits_for:
                self.send(conn)
            if conn.unsent > self._unread.per_connection:
                conn.muted |= BY_UNSENT

    def share_sending(self, connections: int) -> None:
        """Divide the bytes that a pass may send from files among this many connections."""
        if connections <= FEW:
            self.share = SENDFILE_BYTES
        else:
            self.share = max(FEWEST_SENT_BYTES, 2 * SENDFILE_BYTES // connections)

    def send_answers(self) -> None:
        answered, self._answered = self._answered, []
        if len(answered) > FEW or self.share < SENDFILE_BYTES:
            self.share_sending(len(answered))
        for conn in answered:
            if not conn.waits_for:
                self.send(conn)

    def send(self, conn: Connection, *, is_warm: bool = False) -> None:
        try:
            conn.send(self.share, is_warm=is_warm)
        except ConnectionError:
            self.drop(conn)
            return
        except (OSError, ShortFile) as error:
            self._log_closed(conn, error)
            self.drop(conn)
            return
        conn.active_at = self.now
        if conn.waits_for or conn.stalled:
            self._count_stalled(conn, conn.unsent if conn.waits_for else 0)
            if conn not in self:
                return  # the connection was closed, because it had the most unread bytes
        if conn.waits_for == DISK:
            self._readers.submit(conn.cold_read(), lambda _: self._warmed(conn))
        elif not conn.waits_for and conn.muted & BY_CLOSE:
            self.drop(conn)
            return
        if conn.muted & BY_UNSENT and 2 * conn.unsent <= self._unread.per_connection:
            self.unmute(conn, BY_UNSENT)
        if conn.waits_for == SOCKET or conn.interest & _OUT:
            self.watch(conn)

    def _count_stalled(self, conn: Connection, unsent: int) -> None:
        self._note_unread(conn, unsent)
        if self._unread.is_far_over:
            self._drop_unread(self._unread.to_close(self))

    def _note_unread(self, conn: Connection, unsent: int) -> None:
        if self._unread.changed(conn, unsent):
            self.events.append(ResponsesUnread(self._unread.is_much))
            self.check_at = min(self.check_at, self.now + CHECK_MS)

    def _drop_unread(self, conns: list[Connection]) -> None:
        for slow in conns:
            self._log_closed(slow, f"its peer does not read {slow.stalled} bytes of responses")
            self.drop(slow)

    def _log_closed(self, conn: Connection, reason: object) -> None:
        log.warning("%s: closed: %s", conn.peer, reason)

    def _warmed(self, conn: Connection) -> None:
        if conn in self:
            self.send(conn, is_warm=True)

    # -- Closing connections -------------------------------------------------------------------

    def end(self, conn: Connection, reason: str) -> None:
        """Close the connection once its queue is sent; read nothing more from it."""
        if reason and not conn.muted & BY_CLOSE:
            self._log_closed(conn, reason)
        conn.muted |= BY_CLOSE
        self.release(conn)
        self._answered.append(conn)

    def fail(self, failed: RequestFailed) -> None:
        conn = self.find(failed.conn)
        log.error(
            "%s: a request could not be handled",
            "a closed connection" if conn is None else conn.peer,
            exc_info=failed.error,
        )
        if conn is not None:
            self.drop(conn)

    def drop(self, conn: Connection) -> None:
        """Close the connection immediately, even if its queue is not sent."""
        if self._by_id.pop(conn.id, None) is None:
            return
        del self.by_fd[conn.transport.fileno()]
        conn.transport.close()
        conn.muted |= BY_CLOSE
        self.release(conn)
        conn.waiting.clear()
        conn.unsent = 0
        if conn.stalled:
            self._note_unread(conn, 0)
        if conn.half_received:
            self._half_received.changed(conn, 0)
            self._choose_read_size()
            self._read_on()
        self.events.append(Disconnected(conn.id))
        if conn.listener:
            self.quotas.closed(conn.listener, conn.address)

    def drop_idle(self) -> None:
        oldest = self.now - self._limits.idle_ms
        for conn in self:
            if conn.active_at < oldest:
                self.drop(conn)

    def limit(self, limits: LimitConnections) -> None:
        """Apply new limits, and close connections that exceed them."""
        self.quotas.limit(limits)
        self.drop_excess()

    def drop_excess(self) -> None:
        """If max.connections is exceeded, close the connections that have been idle for longest."""
        excess = self.quotas.excess
        if excess:
            may_be_closed = self.quotas.may_be_closed
            clients = (conn for conn in self if conn.listener and may_be_closed(conn.listener))
            for conn in nsmallest(excess, clients, key=lambda conn: conn.active_at):
                self.drop(conn)

    def spare(self) -> int:
        """Close a few idle connections to free descriptors; returns how many were closed."""
        silent_since, idle_since = self.now - SILENT_MS, self.now - SPARED_IDLE_MS
        clients = (
            conn
            for conn in self
            if conn.listener and conn.active_at <= (silent_since if conn.is_silent else idle_since)
        )
        spared = nsmallest(SPARED_AT_ONCE, clients, key=lambda c: (not c.is_silent, c.active_at))
        for conn in spared:
            self.drop(conn)
        return len(spared)

    def take_events(self) -> list[Event]:
        """The events for the node: connections that ended, and changes of `ResponsesUnread`."""
        events, self.events = self.events, []
        return events

    def close(self) -> None:
        for conn in self:
            conn.transport.close()
