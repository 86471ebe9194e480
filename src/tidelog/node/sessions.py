"""One client connection: requests begin as they come and are answered in that same order.

Invariant: a connection has a bounded number of requests in work; over it the host stops reading.
"""

from collections import deque
from collections.abc import Callable, Mapping

from tidelog.api.registry import Api
from tidelog.model.ids import ConnId
from tidelog.model.outbound import (
    Chunk,
    CloseConnection,
    Outbound,
    RequestFailed,
    Send,
    StartReading,
    StopReading,
)

MAX_IN_WORK = 64
RESUME_AT = 32


class Answer:
    """A place in the connection's order of answers, filled when its request is done."""

    __slots__ = ("chunks", "is_ready")

    def __init__(self) -> None:
        self.chunks: list[Chunk] | None = None
        self.is_ready = False


class Session:
    __slots__ = (
        "_emit",
        "_in_work",
        "_is_paused",
        "apis",
        "conn",
        "host",
        "is_closed",
        "listener",
    )

    def __init__(
        self,
        conn: ConnId,
        peer: str,
        listener: str,
        apis: Mapping[int, Api],
        emit: Callable[[Outbound], None],
    ) -> None:
        self.conn = conn
        self.apis = apis
        """What this listener serves, by the APIs' keys."""
        self.host = peer.rpartition(":")[0].strip("[]")
        self.listener = listener
        self.is_closed = False
        self._emit = emit
        self._in_work: deque[Answer] = deque()
        self._is_paused = False

    @property
    def is_busy(self) -> bool:
        """Whether a request waits for its answer."""
        return bool(self._in_work)

    def expect(self) -> Answer:
        """Take the next place in the order of answers."""
        answer = Answer()
        self._in_work.append(answer)
        if len(self._in_work) >= MAX_IN_WORK and not self._is_paused:
            self._is_paused = True
            self._emit(StopReading(self.conn))
        return answer

    def fill(self, answer: Answer, chunks: list[Chunk] | None) -> None:
        """The answer is there (None: nothing to send); send all that waits for no elder."""
        assert not answer.is_ready
        answer.chunks, answer.is_ready = chunks, True
        if self.is_closed:
            return
        in_work = self._in_work
        while in_work and in_work[0].is_ready:
            ready = in_work.popleft().chunks
            if ready is not None:
                self._emit(Send(self.conn, ready))
        if self._is_paused and len(in_work) <= RESUME_AT:
            self._is_paused = False
            self._emit(StartReading(self.conn))

    def close(self, reason: str) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._emit(CloseConnection(self.conn, reason))

    def fail(self, error: Exception) -> None:
        """A request could not be handled, and nobody but its sender is to notice."""
        self.is_closed = True
        self._emit(RequestFailed(self.conn, error))
