"""Bounds the memory of responses that peers do not read, over all connections together.

Over the limit, a connection with unread responses is not read until its peer has read them all.
Over twice the limit, the connections with the most unread bytes are closed.
"""

from collections.abc import Iterable

from tidelog.runtime.transport.connection import Connection


class UnreadResponses:
    __slots__ = ("_bytes", "_most", "_per_connection", "per_connection")

    def __init__(self, most: int, per_connection: int) -> None:
        self._bytes = 0
        self._most = most
        self._per_connection = per_connection
        self.per_connection = per_connection
        """A connection with more unsent bytes than this is not read."""

    def changed(self, conn: Connection, unsent: int) -> None:
        """Record the bytes that wait in a connection's queue; 0 if the queue need not wait."""
        self._bytes += unsent - conn.stalled
        conn.stalled = unsent
        if self._bytes > self._most:
            self.per_connection = 0
        elif 2 * self._bytes <= self._most:
            self.per_connection = self._per_connection

    @property
    def is_far_over(self) -> bool:
        return self._bytes > 2 * self._most

    def to_close(self, connections: Iterable[Connection]) -> list[Connection]:
        """The connections with the most unread bytes.

        When they are closed, the total is within the limit.
        """
        too_much, slowest = self._bytes - self._most, []
        for conn in sorted(connections, key=lambda conn: conn.stalled, reverse=True):
            if too_much <= 0:
                break
            too_much -= conn.stalled
            slowest.append(conn)
        return slowest
