"""The listening sockets, which stop accepting while there is no room for a connection."""

import logging
import select
import socket
from collections.abc import Callable, Iterator
from typing import NamedTuple

from tidelog.model.ids import Millis
from tidelog.runtime.logs import LineLimit
from tidelog.runtime.transport.connection_quotas import ConnectionQuotas
from tidelog.runtime.transport.descriptors import EXHAUSTED

ACCEPTS_PER_PASS = 64
RETRY_MS = 100
"""If there is no room, a listener pauses for this long, or until a connection closes."""

log = logging.getLogger(__name__)


class ListeningSocket(NamedTuple):
    name: str
    sock: socket.socket
    awaits_ready: bool = False
    """Whether this listener accepts clients only once the node is ready and knows its topics."""


class Accepted(NamedTuple):
    listener: str
    sock: socket.socket
    address: str
    peer: str


def bind(name: str, host: str, port: int, *, awaits_ready: bool = False) -> ListeningSocket:
    """Bind the address without listening; an empty host means every interface."""
    family, _, _, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return ListeningSocket(name, sock, awaits_ready)


class Acceptor:
    """Accepts connections on every listener, within the quotas.

    If there is no room, a listener leaves clients in the kernel's queue until a connection closes
    or `RETRY_MS` have passed. `spare` closes idle connections and returns how many it closed.
    """

    def __init__(
        self,
        epoll: select.epoll,
        listeners: list[ListeningSocket],
        backlog: int,
        quotas: ConnectionQuotas,
        spare: Callable[[], int],
    ) -> None:
        self._epoll = epoll
        self._backlog = backlog
        self._quotas = quotas
        self._spare = spare
        self._waiting = [listener for listener in listeners if listener.awaits_ready]
        self._by_fd: dict[int, ListeningSocket] = {}
        self._paused: set[int] = set()
        self._full_lines = LineLimit(burst=1, every_ms=10_000)
        self._refusal_lines = LineLimit(burst=3, every_ms=10_000)
        self.resume_at: Millis | None = None
        """When to retry while a listener is paused."""
        for listener in listeners:
            if not listener.awaits_ready:
                self._listen(listener)

    def node_is_ready(self) -> None:
        for listener in self._waiting:
            self._listen(listener)
        self._waiting.clear()

    def listens_on(self, fd: int) -> bool:
        return fd in self._by_fd

    def accept(self, fd: int, now: Millis) -> Iterator[Accepted]:
        """Accept the clients that wait on `fd`, as many as there is room for."""
        listener = self._by_fd[fd]
        for _ in range(ACCEPTS_PER_PASS):
            obstacle = self._obstacle(listener.name)
            if obstacle is not None:
                self._pause(fd, obstacle, now)
                return
            try:
                sock, address = listener.sock.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in EXHAUSTED and not self._spare():
                    self._pause(fd, str(error.strerror), now)
                    return
                continue  # the client gave up, or a descriptor is free now
            refusal = self._quotas.refusal(listener.name, address[0])
            if refusal is not None:
                sock.close()
                if self._refusal_lines.allow(now):
                    log.warning("refused: %s%s", refusal, self._refusal_lines.omitted())
                continue
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield Accepted(listener.name, sock, address[0], f"{address[0]}:{address[1]}")

    def resume(self) -> None:
        """Resume paused listeners, because there may be room again."""
        if self.resume_at is not None:
            self.resume_at = None
            for fd in self._paused:
                self._epoll.modify(fd, select.EPOLLIN)
            self._paused.clear()

    def close(self) -> None:
        for listener in (*self._by_fd.values(), *self._waiting):
            listener.sock.close()

    def _listen(self, listener: ListeningSocket) -> None:
        listener.sock.listen(self._backlog)
        self._by_fd[listener.sock.fileno()] = listener
        self._epoll.register(listener.sock.fileno(), select.EPOLLIN)

    def _obstacle(self, listener: str) -> str | None:
        obstacle = self._quotas.obstacle(listener)
        if obstacle is None and self._quotas.lacks_descriptors(listener) and not self._spare():
            return "all file descriptors for client connections are in use"
        return obstacle

    def _pause(self, fd: int, reason: str, now: Millis) -> None:
        self._epoll.modify(fd, 0)
        self._paused.add(fd)
        self.resume_at = now + RETRY_MS
        if self._full_lines.allow(now):
            log.warning(
                "cannot accept connections on %s: %s; new clients wait until a connection closes%s",
                self._by_fd[fd].name,
                reason,
                self._full_lines.omitted(),
            )
