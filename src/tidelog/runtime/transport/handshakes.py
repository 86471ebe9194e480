"""TLS handshakes, of clients that connect to this node and of this node with others.

Invariants: a connection takes memory for TLS only after its first bytes, and at most `MOST_BEGUN`
handshakes of clients have begun; if there are more, the oldest is closed. Each handshake ends
within `DEADLINE_MS` (F89). A pass spends `SHARE_MS` on handshakes, those of nodes first, because
each needs about a millisecond of CPU time.
"""

import logging
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from tidelog.model.ids import ConnId, Millis
from tidelog.runtime.logs import LineLimit
from tidelog.runtime.transport.limits import SILENT_MS, SPARED_AT_ONCE
from tidelog.runtime.transport.tls_session import TlsFailure, TlsSession

DEADLINE_MS: Millis = 10_000
SHARE_MS: Millis = 4
MOST_BEGUN = 500
"""A begun handshake takes about 50 KB, in OpenSSL."""
READ_BYTES = 16 * 1024
MOST_BYTES = 256 * 1024
"""OpenSSL accepts chains of certificates up to 100 KB."""
UNSENT_BYTES = 64 * 1024

_HANDSHAKE_RECORD = 0x16

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Handshake:
    """A connection before its handshake is complete."""

    sock: socket.socket
    peer: str
    begin: Callable[[], TlsSession]
    """Makes the session."""
    deadline: Millis
    listener: str = ""  # empty for a connection that this node has opened
    address: str = ""
    conn: ConnId = 0
    answer_bytes: int = 0
    session: TlsSession | None = None
    unsent: bytes = field(default=b"", repr=False)
    received: int = 0


class Handshakes:
    """All handshakes of a host. `is_nodes` reports whether a listener is for other nodes only."""

    def __init__(
        self,
        epoll: select.epoll,
        is_nodes: Callable[[str], bool],
        closed: Callable[[Handshake, str], None],
    ) -> None:
        self._epoll = epoll
        self._is_nodes = is_nodes
        self._closed = closed
        self._by_fd: dict[int, Handshake] = {}
        """All handshakes, in the order of their deadlines."""
        self._begun: dict[int, Handshake] = {}
        """Handshakes of clients that have a session, oldest first."""
        self.ready: dict[int, Handshake] = {}
        """Handshakes that can continue."""
        self._lines = LineLimit(burst=5, every_ms=2_000)
        self._shared = memoryview(bytearray(READ_BYTES))

    def __len__(self) -> int:
        return len(self._by_fd)

    def __contains__(self, fd: int) -> bool:
        return fd in self._by_fd

    @property
    def next_deadline(self) -> Millis | None:
        return next((one.deadline for one in self._by_fd.values()), None)

    def add(self, handshake: Handshake) -> None:
        """Begin with a connection that epoll watches for input."""
        self._by_fd[handshake.sock.fileno()] = handshake
        if not handshake.listener:
            self.ready[handshake.sock.fileno()] = handshake  # a client speaks first

    def note_ready(self, fd: int) -> None:
        self.ready[fd] = self._by_fd[fd]

    def postpone(self, handshake: Handshake) -> None:
        """Continue a handshake in the next pass, because this one has no time left."""
        if handshake.sock.fileno() in self._by_fd:
            self.ready[handshake.sock.fileno()] = handshake

    # -- One pass ----------------------------------------------------------------------------------

    def take_turn(self) -> list[Handshake]:
        """The handshakes that are ready, in the order in which to call `step` for them."""
        ready = sorted(
            self.ready.values(),
            key=lambda one: bool(one.listener) and not self._is_nodes(one.listener),
        )
        self.ready.clear()
        return ready

    def _is_clients(self, handshake: Handshake) -> bool:
        return bool(handshake.listener) and not self._is_nodes(handshake.listener)

    def step(self, handshake: Handshake, now: Millis) -> TlsSession | None:
        """Continue a handshake; returns its session if it is complete now."""
        if handshake.sock.fileno() not in self._by_fd:
            return None  # closed in this pass
        try:
            self._receive(handshake)
            session = handshake.session
            if session is None:
                return None
            is_complete = session.shake_hands()
            self._send(handshake)
        except TlsFailure as failure:
            self._end(handshake, str(failure), now)
            return None
        except OSError as error:
            self._end(handshake, error.strerror or str(error), now)
            return None
        if not is_complete or handshake.unsent:
            self._epoll.modify(handshake.sock.fileno(), _interest(handshake))
            self._bound_begun(now)
            return None
        self._forget(handshake)
        return session

    def _receive(self, handshake: Handshake) -> None:
        if handshake.session is None and not handshake.listener:
            handshake.session = handshake.begin()
        try:
            count = handshake.sock.recv_into(self._shared)
        except BlockingIOError:
            return
        if not count:
            raise TlsFailure("it closed the connection")
        received = self._shared[:count]
        if handshake.session is None:
            if received[0] != _HANDSHAKE_RECORD:
                raise TlsFailure("it sent bytes that are not TLS, such as a plaintext request")
            handshake.session = handshake.begin()
            self._begun[handshake.sock.fileno()] = handshake
        handshake.received += count
        if handshake.received > MOST_BYTES:
            raise TlsFailure("it sent too much")
        handshake.session.feed(received)

    def _send(self, handshake: Handshake) -> None:
        assert handshake.session is not None
        handshake.unsent += handshake.session.take_output()
        if handshake.unsent:
            try:
                handshake.unsent = handshake.unsent[handshake.sock.send(handshake.unsent) :]
            except BlockingIOError:
                if len(handshake.unsent) > UNSENT_BYTES:
                    raise TlsFailure("it does not read") from None

    def _bound_begun(self, now: Millis) -> None:
        while len(self._begun) > MOST_BEGUN:
            oldest = next(iter(self._begun.values()))
            self._end(oldest, "too many handshakes have begun", now)

    # -- Ending ------------------------------------------------------------------------------------

    def expire(self, now: Millis) -> None:
        """Close the handshakes whose time is over."""
        late = []
        for handshake in self._by_fd.values():
            if handshake.deadline > now:
                break
            late.append(handshake)
        for handshake in late:
            self._end(handshake, f"it is not complete after {DEADLINE_MS // 1000} s", now)

    def spare(self, now: Millis) -> int:
        """Close a few of the oldest handshakes of clients, to free descriptors."""
        opened_before = now - SILENT_MS + DEADLINE_MS
        spared: list[Handshake] = []
        for one in self._by_fd.values():
            if len(spared) == SPARED_AT_ONCE or one.deadline > opened_before:
                break
            if self._is_clients(one):
                spared.append(one)
        for one in spared:
            self._end(one, "descriptors are needed", now)
        return len(spared)

    def hang_up(self, conn: ConnId) -> None:
        """Abandon a handshake that this node has begun."""
        for one in list(self._by_fd.values()):
            if one.conn == conn and not one.listener:
                self._forget(one)
                one.sock.close()

    def close(self) -> None:
        for one in self._by_fd.values():
            one.sock.close()

    def _end(self, handshake: Handshake, reason: str, now: Millis) -> None:
        if self._lines.allow(now):
            log.warning(
                "%s: closed: the TLS handshake failed: %s%s",
                handshake.peer,
                reason,
                self._lines.omitted(),
            )
        self._forget(handshake)
        try:
            if handshake.session is not None:
                # The last bytes are an alert that reports the reason to the peer.
                handshake.sock.send(handshake.unsent + handshake.session.take_output())
        except OSError:
            pass
        handshake.sock.close()
        self._closed(handshake, reason)

    def _forget(self, handshake: Handshake) -> None:
        fd = handshake.sock.fileno()
        self._by_fd.pop(fd, None)
        self._begun.pop(fd, None)
        self.ready.pop(fd, None)


def _interest(handshake: Handshake) -> int:
    return select.EPOLLOUT if handshake.unsent else select.EPOLLIN
