"""One direction of one connection: reads bytes from the sender and delivers them when due."""

import socket
from collections import deque
from itertools import islice

from tidelog.network.conditions import CHUNK, Conditions, Way

MAX_ON_THE_WAY = 4 * 1024 * 1024
"""The maximum number of bytes in transit. At the maximum, the flow stops reading its sender."""

END = b""
"""The end of the sender's stream, delivered in order like other bytes."""

_forward_buffer = memoryview(bytearray(CHUNK))
"""The buffer for direct forwarding. All flows share it, because no flow leaves bytes in it."""


class Flow:
    def __init__(self, way: Way, source: socket.socket, sink: socket.socket) -> None:
        self.way = way
        self.source = source
        self.sink = sink
        self.is_over = False
        """Whether the end of the stream has been delivered."""
        self._has_ended = False
        self._next_at = 0.0
        self._on_the_way: deque[tuple[float, bytes]] = deque()
        self._size = 0
        self._rest = memoryview(b"")

    def wants_to_take(self, conditions: Conditions, now: float) -> bool:
        return (
            not self._has_ended
            and self._size < MAX_ON_THE_WAY
            and now >= self._next_at
            and not conditions.is_cut(self.way)
        )

    def wants_to_bring(self, conditions: Conditions, now: float) -> bool:
        if conditions.is_cut(self.way):
            return False
        return bool(self._rest) or bool(self._on_the_way and self._on_the_way[0][0] <= now)

    def due_at(self, now: float) -> float | None:
        """The next time at which this flow has work to do."""
        moments = (self._next_at, *(at for at, _ in islice(self._on_the_way, 1)))
        return min((at for at in moments if at > now), default=None)

    @property
    def has_ended(self) -> bool:
        """Whether the sender has ended its stream."""
        return self._has_ended

    def take(self, conditions: Conditions, now: float) -> None:
        """Read bytes from the sender; raises OSError if the connection is broken."""
        try:
            received = self.source.recv(conditions.chunk(self.way))
        except BlockingIOError:
            return
        self._has_ended = not received
        arrives = now
        if conditions.is_slow(self.way):
            self._next_at, arrives = conditions.send(self.way, len(received), now)
        self._on_the_way.append((arrives, received))
        self._size += len(received)

    def pass_on(self) -> bool:
        """Forward bytes directly; the caller checks that no way is cut or slow.

        Returns True if nothing is left to deliver. Raises OSError if either end is gone.
        """
        if self._size or self._has_ended:
            return False
        try:
            received = _forward_buffer[: self.source.recv_into(_forward_buffer)]
        except BlockingIOError:
            return True
        if not received:
            self._has_ended = True
            self._on_the_way.append((0.0, END))
            return False
        try:
            sent = self.sink.send(received)
        except BlockingIOError:
            sent = 0
        self._rest = memoryview(bytes(received[sent:]))
        self._size = len(self._rest)
        return self._size == 0

    def bring(self, now: float) -> None:
        """Deliver the bytes that are due; raises OSError if the receiver is gone."""
        while True:
            if not self._rest:
                if not self._on_the_way or self._on_the_way[0][0] > now:
                    return
                _, received = self._on_the_way.popleft()
                if received == END:
                    self.is_over = True
                    self.sink.shutdown(socket.SHUT_WR)
                    return
                self._rest = memoryview(received)
            try:
                sent = self.sink.send(self._rest)
            except BlockingIOError:
                return
            self._size -= sent
            self._rest = self._rest[sent:]
