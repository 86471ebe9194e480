"""Bounds the total memory of responses that peers do not read, over all connections.

Above the limit, a connection with unread responses is not read until its peer has read them all,
and the node starts no long request. A client that reads slowly is slowed down, as with Kafka, and
not closed (F96). If a peer reads nothing for `PATIENCE_MS` while the limit is exceeded, its
connection is closed; connections with the most unread bytes are closed first. Above `LAST_RESORT`
times the limit, the connections with the most unread bytes are closed at once.
"""

from collections.abc import Iterable

from tidelog.model.ids import Millis
from tidelog.runtime.transport.connection import Connection

PATIENCE_MS: Millis = 10_000
LAST_RESORT = 4
"""Long requests that have begun when the limit is reached are still answered. Their responses can
add up to 96 MB. This factor leaves room for them, so clients that read are not closed.
"""


class UnreadResponses:
    __slots__ = ("_bytes", "_most", "_per_connection", "is_much", "per_connection")

    def __init__(self, most: int, per_connection: int) -> None:
        self._bytes = 0
        self._most = most
        self._per_connection = per_connection
        self.per_connection = per_connection
        """A connection with more unsent bytes than this is not read."""
        self.is_much = False
        """Whether the limit was exceeded. It stays True until half of the limit is free again."""

    def changed(self, conn: Connection, unsent: int) -> bool:
        """Record the bytes that wait in a connection's queue; 0 if the queue is not waiting.

        Returns whether `is_much` has changed.
        """
        self._bytes += unsent - conn.stalled
        conn.stalled = unsent
        was_much = self.is_much
        if self._bytes > self._most:
            self.is_much, self.per_connection = True, 0
        elif 2 * self._bytes <= self._most:
            self.is_much, self.per_connection = False, self._per_connection
        return self.is_much is not was_much

    @property
    def is_far_over(self) -> bool:
        return self._bytes > LAST_RESORT * self._most

    def to_close(self, connections: Iterable[Connection]) -> list[Connection]:
        """The connections with the most unread bytes, as many as must be closed.

        Closing them brings the total back to the limit.
        """
        return self._largest(connections, self._bytes - self._most)

    def idle(self, connections: Iterable[Connection], now: Millis) -> list[Connection]:
        """The connections to close because their peers read nothing, so long requests must wait."""
        if not self.is_much:
            return []
        unread = (conn for conn in connections if conn.stalled)
        silent = [conn for conn in unread if now - conn.active_at >= PATIENCE_MS]
        return self._largest(silent, self._bytes - self._most // 2)

    def _largest(self, connections: Iterable[Connection], too_much: int) -> list[Connection]:
        slowest = []
        for conn in sorted(connections, key=lambda conn: conn.stalled, reverse=True):
            if too_much <= 0:
                break
            too_much -= conn.stalled
            slowest.append(conn)
        return slowest
