"""One connection: its place in the host, and its queue of responses until they are sent.

Invariants: an idle connection owns no buffer. The queue of responses is bounded, because the caller
stops reading requests when `unsent` exceeds a limit. `unsent` counts the memory of the queue.
Queued bytes that are still in a file take almost no memory.
"""

import socket
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

from tidelog.model.disk import Buffer, FileSlice
from tidelog.model.ids import ConnId, Millis
from tidelog.model.outbound import Chunk
from tidelog.protocol.framing import FrameSplitter
from tidelog.runtime.files.file import RealFile
from tidelog.runtime.transport.limits import COSTLY_FOR_MS
from tidelog.runtime.transport.plain import Transport

INLINE_BYTES = 16 * 1024
"""A file slice up to this size is read and joined with other chunks, because sendfile would cost
more.
"""

JOIN_BYTES = 64 * 1024
"""Chunks are joined into one send of at most this size. A larger chunk is sent without a copy."""

SENDFILE_BYTES = 4 * 1024 * 1024
"""The maximum number of bytes that one connection sends from files per pass."""

COLD_READ_BYTES = 256 * 1024

CHUNK_COST = 128
"""The memory in bytes that a queued chunk takes in addition to its content."""

NOTHING, SOCKET, DISK = range(3)
"""The event that a connection's queue waits for."""


class ShortFile(Exception):
    """A file ends inside a slice that was queued for sending, so a response is incomplete."""


class HeldFrames:
    """Received frames that wait to be handled, in one buffer to save memory if they are small."""

    __slots__ = ("_bytes", "_sizes", "capacity")

    def __init__(self, frames: list[memoryview]) -> None:
        self._bytes = memoryview(bytearray().join(frames))
        self._sizes = array("I", map(len, frames))
        self.capacity = len(self._bytes) + self._sizes.itemsize * len(self._sizes)
        """The memory that the buffer takes until its last frame is dropped."""

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
    """A transport with its splitter, its queue of unsent chunks, and its reasons not to read."""

    id: ConnId
    transport: Transport
    peer: str
    splitter: FrameSplitter
    active_at: Millis
    listener: str = ""  # empty for a connection that this node has opened
    address: str = ""
    opened_at: Millis = 0
    waiting: list[Chunk] = field(default_factory=list)
    unsent: int = 0
    half_received: int = 0  # bytes of an incomplete request, as counted by HalfReceived
    stalled: int = 0  # `unsent` while `waits_for` is set, else 0, for UnreadResponses
    waits_for: int = NOTHING
    held: HeldFrames | None = None
    muted: int = 0  # one bit for each reason not to read
    interest: int = 0  # the events that epoll watches
    is_bulk: bool = False  # whether its last frames were large
    costly_until: Millis = 0  # until this time, other connections are served first
    was_slow: bool = False  # whether its last request was slow

    @property
    def is_silent(self) -> bool:
        """Whether the client has not sent a whole request yet."""
        return self.active_at < self.opened_at

    def served(self, now: Millis, *, is_slow: bool) -> None:
        """After two slow requests in a row, serve this client last for a while.

        One request can be slow by chance. Connections that this node has opened are exempt.
        """
        if is_slow and self.was_slow and self.id > 0:
            self.costly_until = now + COSTLY_FOR_MS
        self.was_slow = is_slow

    def enqueue(self, chunks: list[Chunk]) -> None:
        self.waiting += chunks
        self.unsent += _cost(chunks)

    def send(self, share: int = SENDFILE_BYTES, *, is_warm: bool = False) -> None:
        """Send until the queue is empty or must wait; `waits_for` names the event to wait for.

        At most `share` bytes are sent from files, because other connections send in this pass too.
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
        """Returns a job that another thread runs before the next slice is sent.

        The job reads the slice into the page cache.
        """
        head = self.waiting[0]
        assert isinstance(head, FileSlice)

        def read() -> None:
            for offset in range(0, min(head.length, SENDFILE_BYTES), COLD_READ_BYTES):
                head.file.read(head.position + offset, COLD_READ_BYTES)

        return read

    def _send_slice(self, part: FileSlice, share: int) -> None:
        # Hold the descriptor while it is used, because the file may release it at any time.
        source = cast(RealFile, part.file).descriptor()
        count = min(part.length, share)
        sent = self.transport.send_file(source.number, part.position, count)
        if sent == 0:
            raise ShortFile(f"the file ends before position {part.position}")
        if sent < part.length:
            self.waiting[0] = FileSlice(part.file, part.position + sent, part.length - sent)
            self.waits_for = SOCKET
        else:
            self.unsent -= CHUNK_COST
            del self.waiting[0]

    def _send_joined(self) -> None:
        """Send the small chunks before the next large chunk in one call, or a large chunk alone."""
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
        # If more chunks follow, let the kernel fill the packet instead of sending a small one.
        flags = socket.MSG_MORE if len(parts) < len(waiting) else 0
        sent = self.transport.send(joined, flags)
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
    """The memory that the chunks take while they wait."""
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
        return chunk.length <= INLINE_BYTES and not _is_cold(chunk)
    return len(chunk) <= JOIN_BYTES


def _is_cold(part: FileSlice) -> bool:
    """Whether sending the slice would wait for the disk."""
    file = cast(RealFile, part.file)
    return not file.is_cached(part.position, min(part.length, SENDFILE_BYTES))
