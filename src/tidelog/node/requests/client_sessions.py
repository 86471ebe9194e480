"""One client connection: requests start as they arrive and are answered in the same order.

Invariants: the number of requests in progress is limited, because the host stops reading from the
connection at the limit. Between `hold` and `release`, no further request of the connection starts.
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
from tidelog.security.principal import ANONYMOUS

MAX_IN_WORK = 64
RESUME_AT = 32


class Answer:
    """The place of one response in the connection's order, filled when its request is done."""

    __slots__ = ("chunks", "is_ready")

    def __init__(self) -> None:
        self.chunks: list[Chunk] | None = None
        self.is_ready = False


class ClientSession:
    __slots__ = (
        "_emit",
        "_holds",
        "_is_full",
        "apis",
        "conn",
        "host",
        "in_work",
        "is_closed",
        "is_controllers",
        "listener",
        "principal",
        "take_token",
    )

    def __init__(
        self,
        conn: ConnId,
        peer: str,
        listener: str,
        apis: Mapping[int, Api],
        emit: Callable[[Outbound], None],
        *,
        is_controllers: bool = False,
    ) -> None:
        self.conn = conn
        self.apis = apis
        """The APIs that this listener serves, by key."""
        self.host = peer.rpartition(":")[0].strip("[]")
        self.listener = listener
        self.principal = ANONYMOUS
        """The identity on whose behalf the requests of this connection are handled."""
        self.take_token: Callable[[memoryview], None] | None = None
        """Takes a frame that is a bare message of SASL, without a header (SaslHandshake 0)."""
        self.is_closed = False
        self.is_controllers = is_controllers
        """Whether the client has connected to a controller listener."""
        self._emit = emit
        self.in_work: deque[Answer] = deque()
        """The places of requests that wait for their response, or whose response waits."""
        self._is_full = False
        self._holds = 0

    def expect(self) -> Answer:
        """Reserve the next place in the order of responses."""
        answer, in_work = Answer(), self.in_work
        in_work.append(answer)
        if len(in_work) >= MAX_IN_WORK and not self._is_full:
            self._is_full = True
            if not self._holds:
                self._emit(StopReading(self.conn))
        return answer

    def hold(self) -> None:
        """Make the next request wait until `release`, because the current one is not finished."""
        self._holds += 1
        if self._holds == 1 and not self._is_full:
            self._emit(StopReading(self.conn))

    def release(self) -> None:
        assert self._holds > 0
        self._holds -= 1
        if not (self._holds or self._is_full or self.is_closed):
            self._emit(StartReading(self.conn))

    def fill(self, answer: Answer, chunks: list[Chunk] | None) -> None:
        """Set a response, or None if there is none; send all responses whose turn has come."""
        assert not answer.is_ready
        answer.chunks, answer.is_ready = chunks, True
        if self.is_closed:
            return
        in_work = self.in_work
        while in_work and in_work[0].is_ready:
            ready = in_work.popleft().chunks
            if ready is not None:
                self._emit(Send(self.conn, ready))
        if self._is_full and len(in_work) <= RESUME_AT:
            self._is_full = False
            if not self._holds:
                self._emit(StartReading(self.conn))

    def close(self, reason: str) -> None:
        if not self.is_closed:
            self.is_closed = True
            self._emit(CloseConnection(self.conn, reason))

    def fail(self, error: Exception) -> None:
        """Close the connection, because its request could not be handled."""
        self.is_closed = True
        self._emit(RequestFailed(self.conn, error))
