"""The proxy in front of one listener of a node. The proxy listens only while the node listens.

Connections to a dead node must be refused. If the proxy listened longer than its node, it would
accept them.
"""

import socket
from typing import NamedTuple

from tidelog.network.link import HOST

BACKLOG = 128


class Place(NamedTuple):
    """A listener of a node, and the port of its proxy."""

    node: int
    listener: str
    port: int
    """The port on which the node itself listens."""
    proxy_port: int
    """The port of the proxy, which the node advertises as its own."""


class ProxyListener:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((HOST, place.proxy_port))
        self.sock.setblocking(False)
        self.is_open = False

    def open(self) -> None:
        self.sock.listen(BACKLOG)
        self.is_open = True

    def shut(self) -> None:
        """Stop listening, but keep the port. Connections that are not accepted yet are reset."""
        self.sock.shutdown(socket.SHUT_RDWR)
        self.is_open = False
