"""One direction of one connection: bytes taken from the speaker, brought to the hearer in time."""

import socket
from collections import deque
from itertools import islice

from tidelog.network.conditions import CHUNK, Conditions, Way

MAX_ON_THE_WAY = 4 * 1024 * 1024
"""What a way holds at most; beyond, the speaker feels that nobody takes its bytes."""

END = b""
"""On the way like any bytes: the speaker has nothing more to say."""

_in_hand = memoryview(bytearray(CHUNK))
"""What is handed over at once; all flows share it, since none keeps anything there."""


class Flow:
    def __init__(self, way: Way, source: socket.socket, sink: socket.socket) -> None:
        self.way = way
        self.source = source
        self.sink = sink
        self.is_over = False
        """The end has been brought to the hearer."""
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
        """When time alone will have something to do here."""
        moments = (self._next_at, *(at for at, _ in islice(self._on_the_way, 1)))
        return min((at for at in moments if at > now), default=None)

    @property
    def has_ended(self) -> bool:
        """The speaker has nothing more to say."""
        return self._has_ended

    def take(self, conditions: Conditions, now: float) -> None:
        """Read what the speaker says; raises OSError when the connection is broken."""
        try:
            said = self.source.recv(conditions.chunk(self.way))
        except BlockingIOError:
            return
        self._has_ended = not said
        arrives = now
        if conditions.is_slow(self.way):
            self._next_at, arrives = conditions.send(self.way, len(said), now)
        self._on_the_way.append((arrives, said))
        self._size += len(said)

    def pass_on(self) -> bool:
        """In a calm network: read, and hand over at once. -> whether nothing is left to do.

        Raises OSError when either end is gone.
        """
        if self._size or self._has_ended:
            return False
        try:
            said = _in_hand[: self.source.recv_into(_in_hand)]
        except BlockingIOError:
            return True
        if not said:
            self._has_ended = True
            self._on_the_way.append((0.0, END))
            return False
        try:
            sent = self.sink.send(said)
        except BlockingIOError:
            sent = 0
        self._rest = memoryview(bytes(said[sent:]))
        self._size = len(self._rest)
        return self._size == 0

    def bring(self, now: float) -> None:
        """Hand over what is due; raises OSError when the hearer is gone."""
        while True:
            if not self._rest:
                if not self._on_the_way or self._on_the_way[0][0] > now:
                    return
                _, said = self._on_the_way.popleft()
                if said == END:
                    self.is_over = True
                    self.sink.shutdown(socket.SHUT_WR)
                    return
                self._rest = memoryview(said)
            try:
                sent = self.sink.send(self._rest)
            except BlockingIOError:
                return
            self._size -= sent
            self._rest = self._rest[sent:]
