"""The sockets on which clients arrive, and the pause in accepting while there is no room."""

import errno
import logging
import select
import socket
from collections.abc import Iterator
from typing import NamedTuple

from tidelog.model.ids import Millis

ACCEPTS_PER_PASS = 64
RETRY_MS = 1_000
"""How long accepting rests after the system has refused a descriptor, if none is freed before."""

_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

log = logging.getLogger(__name__)


class ListeningSocket(NamedTuple):
    name: str
    sock: socket.socket
    awaits_ready: bool = False
    """Clients are let in only once the node is ready: before, it would deny topics it has."""


def bind(name: str, host: str, port: int, *, awaits_ready: bool = False) -> ListeningSocket:
    """Take the address without listening yet; an empty host is every interface."""
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
    """Accepts on every listener; while there is no room it leaves clients in the kernel's queue."""

    def __init__(self, epoll: select.epoll, listeners: list[ListeningSocket], backlog: int) -> None:
        self._epoll = epoll
        self._backlog = backlog
        self._waiting = [listener for listener in listeners if listener.awaits_ready]
        self._by_fd: dict[int, ListeningSocket] = {}
        self._complained = False
        self.resume_at: Millis | None = None
        """While accepting is paused: when to try again."""
        for listener in listeners:
            if not listener.awaits_ready:
                self._listen(listener)

    def node_is_ready(self) -> None:
        for listener in self._waiting:
            self._listen(listener)
        self._waiting.clear()

    def listens_on(self, fd: int) -> bool:
        return fd in self._by_fd

    def accept(self, fd: int, room: int, now: Millis) -> Iterator[tuple[str, socket.socket, str]]:
        """(listener, socket, peer) of clients that wait on `fd`, as many as there is room for."""
        listener = self._by_fd[fd]
        for _ in range(min(room, ACCEPTS_PER_PASS)):
            try:
                sock, address = listener.sock.accept()
            except BlockingIOError:
                self._complained = False
                return
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._pause(f"cannot accept connections: {error.strerror}", now)
                    return
                continue  # the client gave up while it waited
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            yield listener.name, sock, f"{address[0]}:{address[1]}"
        if room <= ACCEPTS_PER_PASS:
            self._pause("the limit max.connections is reached", now)

    def resume(self) -> None:
        """There may be room again."""
        if self.resume_at is not None:
            self.resume_at = None
            for fd in self._by_fd:
                self._epoll.modify(fd, select.EPOLLIN)

    def close(self) -> None:
        for listener in (*self._by_fd.values(), *self._waiting):
            listener.sock.close()

    def _listen(self, listener: ListeningSocket) -> None:
        listener.sock.listen(self._backlog)
        self._by_fd[listener.sock.fileno()] = listener
        self._epoll.register(listener.sock.fileno(), select.EPOLLIN)

    def _pause(self, reason: str, now: Millis) -> None:
        for fd in self._by_fd:
            self._epoll.modify(fd, 0)
        self.resume_at = now + RETRY_MS
        if not self._complained:
            self._complained = True
            log.warning("%s; new clients wait until a connection closes", reason)
