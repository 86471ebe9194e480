"""What carries the bytes of a connection, and the plain one: a socket, with sendfile for files.

A `Connection` uses a transport and does not know whether it encrypts. Plaintext costs no call more
than a bare socket: `send` of `PlainTransport` is the socket's own method.
"""

import os
import socket
from typing import Protocol

from tidelog.model.disk import Buffer
from tidelog.protocol.framing import FrameSplitter

BULK_READ_BYTES = 64 * 1024
"""The size of the first read from a connection with large frames. After the first read, the rest of
a frame is received directly into the frame's own buffer.
"""


class Receiver(Protocol):
    """The part of a connection that a transport fills."""

    splitter: FrameSplitter
    is_bulk: bool


class Transport(Protocol):
    """Bytes to and from one peer. Each method raises BlockingIOError if it would have to wait."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...

    def receive(self, conn: Receiver, shared: memoryview) -> list[memoryview] | None:
        """Read once; returns the frames that are now complete, or None at the end of the stream."""
        ...

    def send(self, data: Buffer, flags: int = 0, /) -> int:
        """Send a beginning of the data; returns its length. The caller sends the rest later."""
        ...

    def send_file(self, source: int, position: int, count: int) -> int:
        """Send a beginning of this part of a file; returns its length, or 0 past the end."""
        ...


class PlainTransport:
    __slots__ = ("_sock", "send")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.send = sock.send

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def receive(self, conn: Receiver, shared: memoryview) -> list[memoryview] | None:
        splitter = conn.splitter
        space = splitter.space()
        if space is not None:
            conn.is_bulk = True
            count = self._sock.recv_into(space)
            return splitter.received(count) if count else None
        most = min(BULK_READ_BYTES, len(shared)) if conn.is_bulk else 0
        count = self._sock.recv_into(shared, most)
        if not count:
            return None
        frames = splitter.feed(shared[:count])
        if len(frames) > 1:
            conn.is_bulk = False
        return frames

    def send_file(self, source: int, position: int, count: int) -> int:
        return os.sendfile(self._sock.fileno(), source, position, count)
