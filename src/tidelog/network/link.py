"""One connection through the network, from the dialling process to a node."""

import errno
import os
import selectors
import socket
import struct
from typing import NamedTuple

from tidelog.network.conditions import Conditions, Party, Way
from tidelog.network.flow import Flow

HOST = "127.0.0.1"
_RESET = struct.pack("ii", 1, 0)
_LATER = (0, errno.EINPROGRESS, errno.EAGAIN)


class Interest(NamedTuple):
    """The events to wait for on a socket."""

    sock: socket.socket
    events: int


class Broken(Exception):
    """The connection has ended or is broken, so both of its sockets must be closed."""


class Link:
    def __init__(self, dialler: Party, node: Party, listener: str, sock: socket.socket) -> None:
        self._dialler = sock
        self._target = socket.socket()
        self._flows: tuple[Flow, ...] = ()
        self._node, self._listener = node, listener
        self.identify(dialler)
        self._is_dialling = False
        for each in (sock, self._target):
            each.setblocking(False)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def identify(self, dialler: Party) -> None:
        """Set the dialling party, which may be known only after the connection was opened."""
        self.dialler = dialler
        self._forth_way = Way(dialler, self._node, self._listener)
        self._back_way = Way(self._node, dialler, self._listener)
        for flow, way in zip(self._flows, (self._forth_way, self._back_way), strict=False):
            flow.way = way

    @property
    def sockets(self) -> tuple[socket.socket, socket.socket]:
        return self._dialler, self._target

    def advance(self, port: int, conditions: Conditions, now: float) -> None:
        """Do the work that is possible now; raises `Broken` if the connection ends."""
        try:
            if self._flows:
                self._bring(conditions, now)
            elif self._is_dialling:
                self._finish_dialling()
            elif not conditions.is_cut(self._forth_way):
                self._dial(port)
        except OSError as error:
            raise Broken from error

    def pass_on(self, sock: socket.socket) -> bool:
        """Forward the bytes from this socket directly; return True if nothing is left to deliver.

        The caller has checked that no way is cut or slow.
        """
        for flow in self._flows:
            if flow.source is sock:
                try:
                    return flow.pass_on()
                except OSError as error:
                    raise Broken from error
        return False

    def take(self, sock: socket.socket, conditions: Conditions, now: float) -> bool:
        """Read from this socket.

        Return True if the node has ended its stream and the dialler has not.
        """
        for flow in self._flows:
            if flow.source is sock and flow.wants_to_take(conditions, now):
                try:
                    flow.take(conditions, now)
                except OSError as error:
                    raise Broken from error
        if not self._flows:
            return False
        forth, back = self._flows
        return sock is back.source and back.has_ended and not forth.has_ended

    def interests(self, conditions: Conditions, now: float) -> list[Interest]:
        if not self._flows:
            return [Interest(self._target, selectors.EVENT_WRITE if self._is_dialling else 0)]
        forth, back = self._flows
        return [
            Interest(self._dialler, _events(forth, back, conditions, now)),
            Interest(self._target, _events(back, forth, conditions, now)),
        ]

    def due_at(self, now: float) -> float | None:
        """The next time at which this link has work to do."""
        moments = (flow.due_at(now) for flow in self._flows)
        return min((at for at in moments if at is not None), default=None)

    def close(self, *, reset: bool) -> None:
        for sock in self.sockets:
            if reset:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            sock.close()

    def _dial(self, port: int) -> None:
        number = self._target.connect_ex((HOST, port))
        if number not in _LATER:
            raise OSError(number, os.strerror(number))
        self._is_dialling = True

    def _finish_dialling(self) -> None:
        number = self._target.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            raise OSError(number, os.strerror(number))
        try:
            self._target.getpeername()
        except OSError:
            return  # not connected yet
        self._flows = (
            Flow(self._forth_way, self._dialler, self._target),
            Flow(self._back_way, self._target, self._dialler),
        )

    def _bring(self, conditions: Conditions, now: float) -> None:
        for flow in self._flows:
            if flow.wants_to_bring(conditions, now):
                flow.bring(now)
        if all(flow.is_over for flow in self._flows):
            raise Broken


def _events(outgoing: Flow, incoming: Flow, conditions: Conditions, now: float) -> int:
    """The events to wait for on the socket that is read by `outgoing` and written by `incoming`."""
    events = selectors.EVENT_READ if outgoing.wants_to_take(conditions, now) else 0
    return events | (selectors.EVENT_WRITE if incoming.wants_to_bring(conditions, now) else 0)
