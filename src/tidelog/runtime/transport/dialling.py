"""Connections to other nodes while they are being opened.

Host names are resolved in the loop's thread, so use numeric addresses where name servers may be
slow.
"""

import errno
import os
import select
import socket
from typing import NamedTuple

from tidelog.model.events import ConnectFailed
from tidelog.model.ids import ConnId
from tidelog.model.outbound import Connect
from tidelog.runtime.transport.descriptors import EXHAUSTED, DescriptorReserve


class Dialled(NamedTuple):
    wish: Connect
    sock: socket.socket
    error: OSError | None


class Dialler:
    """Starts connections, and reports their outcome once epoll reports the socket writable."""

    def __init__(self, epoll: select.epoll, reserve: DescriptorReserve) -> None:
        self._epoll = epoll
        self._reserve = reserve
        self._by_fd: dict[int, Dialled] = {}

    def dials_on(self, fd: int) -> bool:
        return fd in self._by_fd

    def dial(self, wish: Connect) -> OSError | None:
        """Start a connection attempt; returns the error if the attempt fails at once."""
        try:
            found = socket.getaddrinfo(wish.host, wish.port, type=socket.SOCK_STREAM)
            family, _, _, _, address = found[0]
            sock = self._new_socket(family)
        except OSError as error:
            return error
        except ValueError:  # the name cannot be written in a query, or has a zero byte
            return OSError(f"{wish.host!r} is not a host name")
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        error_number = sock.connect_ex(address)
        if error_number not in (0, errno.EINPROGRESS):
            sock.close()
            return OSError(error_number, os.strerror(error_number))
        self._by_fd[sock.fileno()] = Dialled(wish, sock, None)
        self._epoll.register(sock.fileno(), select.EPOLLOUT)
        return None

    def _new_socket(self, family: int) -> socket.socket:
        try:
            return socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:
            if error.errno not in EXHAUSTED or not self._reserve.free_some():
                raise
        return socket.socket(family, socket.SOCK_STREAM)

    def finish(self, fd: int) -> Dialled:
        """Returns the outcome of a connection attempt; after an error the socket is closed."""
        dialled = self._by_fd.pop(fd)
        error_number = dialled.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error_number:
            dialled.sock.close()
            return dialled._replace(error=OSError(error_number, os.strerror(error_number)))
        return dialled

    def hang_up(self, conn: ConnId) -> None:
        """Abandon a connection attempt, if it is still in progress."""
        for fd, dialled in list(self._by_fd.items()):
            if dialled.wish.conn == conn:
                self._by_fd.pop(fd).sock.close()

    def close(self) -> None:
        for dialled in self._by_fd.values():
            dialled.sock.close()


def connect_failed(conn: ConnId, error: OSError) -> ConnectFailed:
    was_refused = isinstance(error, ConnectionRefusedError)
    return ConnectFailed(conn, was_refused, error.strerror or str(error))
