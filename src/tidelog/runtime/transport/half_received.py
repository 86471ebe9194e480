"""Bounds the total memory of half-received requests, over all clients (F65).

Many clients may announce large requests and send them slowly. Above the limit, only the connection
whose request began first is read. All other connections with half-received requests wait until
there is room. If connections have to wait, the host closes connections whose requests began some
time ago, oldest first, until there is room again. It keeps the connection that is being read while
that connection makes progress.
"""

from typing import NamedTuple

from tidelog.model.ids import ConnId
from tidelog.runtime.transport.connection import Connection

ENOUGH_BYTES = 64 * 1024
"""The first connection is kept only if it sends at least this many bytes between two checks."""
PATIENCE = 2
"""After this many checks, a connection with a half-received request may be closed."""


class _Begun(NamedTuple):
    conn: Connection
    check: int


class HalfReceived:
    def __init__(self, most: int) -> None:
        self._most = most
        self.bytes = 0
        self._begun: dict[ConnId, _Begun] = {}
        """Connections with a half-received request, in the order in which the requests began."""
        self._waiting: dict[ConnId, Connection] = {}
        self._checks = 0
        self._before: tuple[ConnId, int] = (0, 0)
        """The first connection at the last check, and how many bytes it had sent."""

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def changed(self, conn: Connection, received: int) -> bool:
        """Record how many bytes of a request have arrived, or 0 when the request is complete.

        Returns whether to continue reading from the connection.
        """
        self.bytes += received - conn.half_received
        conn.half_received = received
        if not received:
            self._begun.pop(conn.id, None)
            self._waiting.pop(conn.id, None)
            return True
        if conn.id not in self._begun:
            self._begun[conn.id] = _Begun(conn, self._checks)
        if self.bytes <= self._most or conn is self._first():
            return True
        self._waiting[conn.id] = conn
        return False

    def take_ready(self) -> list[Connection]:
        """The waiting connections that may be read now."""
        if 2 * self.bytes <= self._most:
            ready = list(self._waiting.values())
        else:
            ready = [conn for conn in self._waiting.values() if conn is self._first()]
        for conn in ready:
            del self._waiting[conn.id]
        return ready

    def check(self) -> list[Connection]:
        """Returns the slow connections to close, so that waiting connections can continue."""
        if not self._waiting:
            return []
        self._checks += 1
        first = self._first()
        assert first is not None
        before, self._before = self._before, (first.id, first.half_received)
        gets_on = before[0] != first.id or first.half_received - before[1] >= ENOUGH_BYTES
        too_much = self.bytes - self._most // 2
        slow: list[Connection] = []
        # Keep the newest connection, which may be read once all older connections are closed.
        for conn, began in list(self._begun.values())[:-1]:
            if too_much <= 0 or self._checks - began < PATIENCE:
                break
            if conn is not first or not gets_on:
                slow.append(conn)
                too_much -= conn.half_received
        return slow

    def _first(self) -> Connection | None:
        return next((begun.conn for begun in self._begun.values()), None)
