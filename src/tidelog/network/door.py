"""The proxy address of one listener of a node: open while the node itself listens.

A door that stayed open for a dead node would hide its death, because no connection would be
refused.
"""

import socket
from typing import NamedTuple

from tidelog.network.link import HOST

BACKLOG = 128


class Place(NamedTuple):
    """A listener of a node."""

    node: int
    listener: str
    port: int
    """The port on which the node itself listens."""
    door_port: int
    """The port that the node advertises."""


class Door:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.sock = socket.socket()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((HOST, place.door_port))
        self.sock.setblocking(False)
        self.is_open = False

    def open(self) -> None:
        self.sock.listen(BACKLOG)
        self.is_open = True

    def shut(self) -> None:
        """Stop listening and keep the port; pending connections are reset."""
        self.sock.shutdown(socket.SHUT_RDWR)
        self.is_open = False
