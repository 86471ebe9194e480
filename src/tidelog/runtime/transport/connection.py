"""One client's socket: frames come in, answers wait here until the socket takes them.

Invariants: an idle connection owns no buffer. What waits to be sent is bounded by whoever stops
reading at `unsent`, which counts the memory that the queue holds; bytes still in a file cost almost
nothing there.
"""

import os
import socket
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from tidelog.model.disk import Buffer, FileSlice
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import Chunk
from tidelog.protocol.framing import FrameSplitter
from tidelog.runtime.files.disk import RealFile

INLINE_BYTES = 16 * 1024
"""A slice up to this size is read and joined to its neighbours: cheaper than a sendfile."""

BULK_READ_BYTES = 64 * 1024
"""Where frames are large, a small first read leaves most of each to be received in place."""

JOIN_BYTES = 64 * 1024
"""Chunks are joined into one send while they make less than this; larger ones are not copied."""

SENDFILE_BYTES = 4 * 1024 * 1024
"""One connection's share of a pass, at most."""

TAIL_BYTES = 8 * 1024 * 1024
"""What was written last is in memory; only slices further back are looked at."""

COLD_READ_BYTES = 256 * 1024

CHUNK_COST = 128
"""What a queued chunk costs in memory beside its bytes."""

NOTHING, SOCKET, DISK = range(3)
"""What the queue of a connection waits for."""

_PROBE = bytearray(1)


class ShortFile(Exception):
    """A file ended before the slice that was promised from it: the answer cannot be completed."""


class HeldFrames:
    """Frames received and not yet handled, in one buffer: thousands of small ones stay small."""

    __slots__ = ("_bytes", "_sizes", "capacity")

    def __init__(self, frames: list[memoryview]) -> None:
        self._bytes = memoryview(bytearray().join(frames))
        self._sizes = array("I", map(len, frames))
        self.capacity = len(self._bytes) + self._sizes.itemsize * len(self._sizes)
        """The memory that it takes until the last frame is dropped."""

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


@dataclass(slots=True, eq=False)
class Connection:
    """A socket with its frame splitter, its queue of unsent chunks and why it is not being read."""

    id: ConnId
    sock: socket.socket
    peer: str
    splitter: FrameSplitter
    active_at: Millis
    listener: str = ""  # where it came in; empty for one that this node has opened
    address: str = ""
    opened_at: Millis = 0
    waiting: list[Chunk] = field(default_factory=list)
    unsent: int = 0
    half_received: int = 0  # bytes of a request that is not whole yet, as counted with all others
    stalled: int = 0  # what it contributes to the unsent answers of all that do not get on
    waits_for: int = NOTHING
    held: HeldFrames | None = None
    muted: int = 0  # a bit for each reason not to read
    interest: int = 0  # what epoll watches
    is_bulk: bool = False  # its last frames were large
    costly_until: Millis = 0  # others are served first until then

    @property
    def is_silent(self) -> bool:
        """Whether the client has not sent a whole request yet."""
        return self.active_at < self.opened_at

    def receive(self, shared: memoryview) -> list[memoryview] | None:
        """The frames that one read completes; None at the end of the stream."""
        space = self.splitter.space()
        if space is not None:
            self.is_bulk = True
            count = self.sock.recv_into(space)
            return self.splitter.received(count) if count else None
        most = min(BULK_READ_BYTES, len(shared)) if self.is_bulk else 0
        count = self.sock.recv_into(shared, most)
        if not count:
            return None
        frames = self.splitter.feed(shared[:count])
        if len(frames) > 1:
            self.is_bulk = False
        return frames

    def enqueue(self, chunks: list[Chunk]) -> None:
        self.waiting += chunks
        self.unsent += _cost(chunks)

    def send(self, share: int = SENDFILE_BYTES, *, is_warm: bool = False) -> None:
        """Write until all has left, or until `waits_for` says what is in the way.

        Of a file no more than `share` is sent: others have answers in this pass as well.
        """
        self.waits_for = NOTHING
        try:
            while self.waiting and not self.waits_for:
                head = self.waiting[0]
                if not isinstance(head, FileSlice):
                    self._send_joined()
                elif not is_warm and _is_cold(head):
                    self.waits_for = DISK
                elif head.length > INLINE_BYTES:
                    self._send_slice(head, share)
                else:
                    self._send_joined()
                is_warm = False
        except BlockingIOError:
            self.waits_for = SOCKET

    def cold_read(self) -> Callable[[], None]:
        """For another thread: reads what is next from the disk, so that sending it need not."""
        head = self.waiting[0]
        assert isinstance(head, FileSlice)

        def read() -> None:
            for offset in range(0, min(head.length, SENDFILE_BYTES), COLD_READ_BYTES):
                head.file.read(head.position + offset, COLD_READ_BYTES)

        return read

    def _send_slice(self, part: FileSlice, share: int) -> None:
        # Held while it is used, since a file may let its descriptor go at any time.
        source = cast(RealFile, part.file).descriptor()
        count = min(part.length, share)
        sent = os.sendfile(self.sock.fileno(), source.number, part.position, count)
        if sent == 0:
            raise ShortFile(f"the file ends before position {part.position}")
        if sent < part.length:
            self.waiting[0] = FileSlice(part.file, part.position + sent, part.length - sent)
            self.waits_for = SOCKET
        else:
            self.unsent -= CHUNK_COST
            del self.waiting[0]

    def _send_joined(self) -> None:
        """Send the chunks before the next that is too large to be joined, or a large one alone."""
        waiting = self.waiting
        parts: list[Buffer] = []
        size = 0
        for chunk in waiting:
            if parts and (size > JOIN_BYTES or not _may_join(chunk)):
                break
            part = _read(chunk) if isinstance(chunk, FileSlice) else chunk
            parts.append(part)
            size += len(part)
        joined = parts[0] if len(parts) == 1 else b"".join(parts)
        # More to come: let the kernel fill the packet instead of sending a small one of its own.
        flags = socket.MSG_MORE if len(parts) < len(waiting) else 0
        sent = self.sock.send(joined, flags)
        if sent == size and not flags:
            waiting.clear()
            self.unsent = 0
            return
        self.unsent -= _cost(waiting[: len(parts)])
        if sent == size:
            del waiting[: len(parts)]
            return
        rest = memoryview(joined)[sent:]
        waiting[: len(parts)] = [rest]
        self.unsent += _cost([rest])
        self.waits_for = SOCKET


def _cost(chunks: Sequence[Chunk]) -> int:
    """What they take in memory while they wait."""
    cost = CHUNK_COST * len(chunks)
    for chunk in chunks:
        if not isinstance(chunk, FileSlice):
            cost += len(chunk)
    return cost


def _read(part: FileSlice) -> bytes:
    read = part.file.read(part.position, part.length)
    if len(read) < part.length:
        raise ShortFile(f"the file ends before position {part.position + part.length}")
    return read


def _may_join(chunk: Chunk) -> bool:
    if isinstance(chunk, FileSlice):
        return chunk.length <= INLINE_BYTES and _is_tail(chunk)
    return len(chunk) <= JOIN_BYTES


def _is_tail(part: FileSlice) -> bool:
    return part.position + TAIL_BYTES > part.file.size


def _is_cold(part: FileSlice) -> bool:
    """Whether sending it now would wait for the disk, judged by the ends of what would be sent."""
    if _is_tail(part):
        return False
    source = cast(RealFile, part.file).descriptor()
    last = part.position + min(part.length, SENDFILE_BYTES) - 1
    try:
        for position in (part.position, last):
            os.preadv(source.number, [_PROBE], position, os.RWF_NOWAIT)
    except BlockingIOError:
        return True
    except OSError:
        return False  # a file system that cannot tell
    return False
