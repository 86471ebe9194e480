"""The address in front of one listener of a node: open while the node itself listens.

A door that stood open before a dead node would hide its death, since nobody would be refused.
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
    """Where the node itself listens."""
    door_port: int
    """Where others are told that it does."""


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
        """Stop listening and keep the port; whoever has not been let in is reset."""
        self.sock.shutdown(socket.SHUT_RDWR)
        self.is_open = False
