"""One client's socket: frames come in, answers wait here until the socket takes them.

Invariants: an idle connection owns no buffer. What waits to be sent is bounded by whoever stops
reading at `unsent`, which counts the memory that the queue holds; bytes still in a file cost almost
nothing there.
"""

import os
import socket
from array import array
from typing import cast

from tidelog.model.disk import Buffer, FileSlice
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import Chunk
from tidelog.protocol.framing import FrameSplitter
from tidelog.runtime.disk import RealFile

INLINE_BYTES = 16 * 1024
"""A slice up to this size is read and joined to its neighbours: cheaper than a sendfile."""

BULK_READ_BYTES = 64 * 1024
"""Where frames are large, a small first read leaves most of each to be received in place."""

JOIN_BYTES = 64 * 1024
"""Chunks are joined into one send up to this size; larger ones go out without a copy."""

SENDFILE_BYTES = 4 * 1024 * 1024
"""One connection's share of a pass."""

CHUNK_COST = 128
"""What a queued chunk costs in memory beside its bytes."""


class ShortFile(Exception):
    """A file ended before the slice that was promised from it: the answer cannot be completed."""


class HeldFrames:
    """Frames received and not yet handled, in one buffer: thousands of small ones stay small."""

    __slots__ = ("_bytes", "_sizes")

    def __init__(self, frames: list[memoryview]) -> None:
        self._bytes = memoryview(bytearray().join(frames))
        self._sizes = array("I", map(len, frames))

    def __len__(self) -> int:
        return len(self._sizes)

    def first(self, limit: int) -> list[memoryview]:
        frames, start = [], 0
        for size in self._sizes[:limit]:
            frames.append(self._bytes[start : start + size])
            start += size
        return frames

    def drop(self, handled: int) -> None:
        self._bytes = self._bytes[sum(self._sizes[:handled]) :]
        del self._sizes[:handled]


class Connection:
    """A socket with its frame splitter, its queue of unsent chunks and why it is not being read."""

    __slots__ = (
        "active_at",
        "blocked",
        "held",
        "id",
        "interest",
        "is_bulk",
        "muted",
        "peer",
        "sock",
        "splitter",
        "unsent",
        "waiting",
    )

    def __init__(
        self, conn: ConnId, sock: socket.socket, peer: str, max_request_bytes: int, now: Millis
    ) -> None:
        self.id = conn
        self.sock = sock
        self.peer = peer
        self.splitter = FrameSplitter(max_request_bytes)
        self.waiting: list[Chunk] = []
        self.unsent = 0
        self.held: HeldFrames | None = None
        self.muted = 0  # a bit for each reason not to read
        self.interest = 0  # what epoll watches
        self.blocked = False  # the socket took no more
        self.is_bulk = False  # its last frames were large
        self.active_at = now

    def receive(self, shared: memoryview) -> list[memoryview] | None:
        """The frames that one read completes; None at the end of the stream."""
        space = self.splitter.space()
        if space is not None:
            self.is_bulk = True
            count = self.sock.recv_into(space)
            return self.splitter.received(count) if count else None
        count = self.sock.recv_into(shared, BULK_READ_BYTES if self.is_bulk else 0)
        if not count:
            return None
        frames = self.splitter.feed(shared[:count])
        if len(frames) > 1:
            self.is_bulk = False
        return frames

    def enqueue(self, chunks: list[Chunk]) -> None:
        self.waiting += chunks
        for chunk in chunks:
            self.unsent += _cost(chunk)

    def send(self) -> bool:
        """Write what waits. -> whether all of it has left; False when the socket is full."""
        try:
            while self.waiting:
                head = self.waiting[0]
                if isinstance(head, FileSlice) and head.length > INLINE_BYTES:
                    done = self._send_slice(head)
                else:
                    done = self._send_joined()
                if not done:
                    return False
        except BlockingIOError:
            return False
        return True

    def _send_slice(self, part: FileSlice) -> bool:
        # Held while it is used, since a file may let its descriptor go at any time.
        source = cast(RealFile, part.file).descriptor()
        share = min(part.length, SENDFILE_BYTES)
        sent = os.sendfile(self.sock.fileno(), source.number, part.position, share)
        if sent == 0:
            raise ShortFile(f"the file ends before position {part.position}")
        if sent < part.length:
            self.waiting[0] = FileSlice(part.file, part.position + sent, part.length - sent)
            return False
        self.unsent -= CHUNK_COST
        del self.waiting[0]
        return True

    def _send_joined(self) -> bool:
        """Send the chunks before the next that is too large to be joined, or a large one alone."""
        parts: list[Buffer] = []
        size = cost = 0
        for chunk in self.waiting:
            if isinstance(chunk, FileSlice):
                if chunk.length > INLINE_BYTES or (parts and size + chunk.length > JOIN_BYTES):
                    break
                part: Buffer = _read(chunk)
            elif parts and size + len(chunk) > JOIN_BYTES:
                break
            else:
                part = chunk
            parts.append(part)
            size += len(part)
            cost += _cost(chunk)
        joined = parts[0] if len(parts) == 1 else b"".join(parts)
        # More to come: let the kernel fill the packet instead of sending a small one of its own.
        flags = socket.MSG_MORE if len(parts) < len(self.waiting) else 0
        sent = self.sock.send(joined, flags)
        self.unsent -= cost
        if sent == size:
            del self.waiting[: len(parts)]
            return True
        rest = memoryview(joined)[sent:]
        self.waiting[: len(parts)] = [rest]
        self.unsent += _cost(rest)
        return False


def _cost(chunk: Chunk) -> int:
    return CHUNK_COST if isinstance(chunk, FileSlice) else CHUNK_COST + len(chunk)


def _read(part: FileSlice) -> bytes:
    read = part.file.read(part.position, part.length)
    if len(read) < part.length:
        raise ShortFile(f"the file ends before position {part.position + part.length}")
    return read
