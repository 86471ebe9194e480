"""Cuts a connection's byte stream into frames: a 4-byte length, then that many bytes. Does no I/O.

One `FrameSplitter` per connection; the host owns the socket and one large buffer for all of them:

    space = splitter.space()
    if space is None:                       # the common case: any number of small frames
        count = sock.recv_into(shared)
        frames = splitter.feed(shared[:count])
    else:                                   # inside a large frame: receive it where it will stay
        count = sock.recv_into(space)
        frames = splitter.received(count)

A frame is a writable view, without its length: of the fed buffer when it lies there whole (nothing
is copied), else of a buffer of its own. It is valid until the host receives the next bytes, or, if
it is longer than `SHARED_BYTES`, as long as anybody holds a view of it.

Invariants: between frames a splitter holds no buffer. Inside one it takes at most `GROWTH` times
the memory of the bytes that really came, whatever the length says, or a buffer that was there
already; each byte is copied at most a few times. A frame larger than `SPARE_BYTES` gets pages that
cost nothing before they are written to, and go back to the system with its last view.
"""

from collections.abc import Mapping
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from struct import Struct
from sys import getrefcount
from typing import TypeAlias

from tidelog.protocol.strangers import stranger

GROWTH = 4
"""How far a buffer may run ahead of the bytes received."""

DIRECT = 64 * 1024
"""A frame that has shown, and still lacks, this many bytes is worth receiving in place."""

SHARED_BYTES = 256 * 1024
"""The buffer that all connections share. A longer frame has a buffer of its own, and its views
keep that: it may be kept beyond the call that hands it over."""

SPARE_BYTES = 16 * 1024 * 1024
"""What is kept for frames to come, all connections together."""

_GRAIN = 128 * 1024
_KEY_BYTES = 2
_MAP_NORESERVE = 0x4000
"""Linux: address space only. Python's module names it from 3.13 on."""

Store: TypeAlias = bytearray | mmap

_LENGTH = Struct(">i")
_EMPTY = bytearray()


def _references(buffers: list[bytearray], index: int) -> int:
    return getrefcount(buffers[index])


_UNSEEN = _references([bytearray()], 0)
"""References to a buffer that nobody but the list holds, as this interpreter counts them."""


class Buffers:
    """Large buffers for frame after frame: fresh memory costs a page fault for every 4 KiB.

    A buffer is used again only when no view of its last frame is left anywhere.
    """

    __slots__ = ("_size", "_spares")

    def __init__(self) -> None:
        self._spares: list[bytearray] = []  # those used longest ago first
        self._size = 0

    def take(self, size: int) -> bytearray | None:
        """A buffer for at least `size` bytes, if there is one whose last frame is forgotten."""
        spares = self._spares
        for index in range(len(spares)):
            if len(spares[index]) >= size and _references(spares, index) == _UNSEEN:
                self._size -= len(spares[index])
                return spares.pop(index)
        return None

    def keep(self, buffer: bytearray) -> None:
        """A frame in this buffer is on its way to whoever handles it; it may serve again later."""
        if not DIRECT <= len(buffer) <= SPARE_BYTES:
            return
        self._spares.append(buffer)
        self._size += len(buffer)
        while self._size > SPARE_BYTES:
            self._size -= len(self._spares.pop(0))


class BadFrame(Exception):
    """The stream cannot be followed any further: close the connection.

    `frames` are the whole frames that came in the same call before the bad length.
    """

    def __init__(self, reason: str, frames: list[memoryview]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.frames = frames


class FrameSplitter:
    """Bytes in, whole frames out."""

    __slots__ = ("_apis", "_buffers", "_frame", "_head", "_max_size", "_size", "filled")

    def __init__(
        self,
        max_request_size: int,
        buffers: Buffers | None = None,
        apis: Mapping[int, tuple[str, int]] | None = None,
    ) -> None:
        self._apis = apis  # by key: name and largest request; None where frames are answers
        self._max_size = max_request_size
        self._buffers = buffers
        self._head = b""  # the first bytes of a length, never all four
        self._size = -1  # of the frame that has begun; -1 between frames
        self._frame: Store = _EMPTY  # its first `filled` bytes
        self.filled = 0
        """Bytes of a frame that is not whole yet."""

    def feed(self, data: memoryview) -> list[memoryview]:
        """The frames that these bytes complete, in order; what is left over is kept (copied)."""
        frames: list[memoryview] = []
        position, end = 0, len(data)
        if self._size >= 0:
            position = min(self._size - self.filled, end)
            self._keep(data[:position])
            if self.filled < self._size:
                self._check_api(frames)
                return frames
            frames.append(self._finish())
        elif self._head:
            position = min(4 - len(self._head), end)
            self._head += data[:position]
            if len(self._head) == 4:
                # The length was cut in two: from here on it is as if it had just been read.
                size = self._checked(_LENGTH.unpack(self._head)[0], frames)
                self._head = b""
                position = self._take(data, position, size, frames)
        while end - position >= 4:
            size = self._checked(_LENGTH.unpack_from(data, position)[0], frames)
            position = self._take(data, position + 4, size, frames)
        if position < end:
            self._head = bytes(data[position:])
        return frames

    def space(self) -> memoryview | None:
        """Where to receive the rest of a large frame, or None to `feed` from the shared buffer."""
        missing = self._size - self.filled
        if missing < DIRECT or self.filled < DIRECT:
            return None
        self._reserve(self.filled + min(missing, DIRECT), self.filled)
        return memoryview(self._frame)[self.filled : self._size]

    def received(self, count: int) -> list[memoryview]:
        """Account for `count` bytes received into `space()`; the frame, if they complete it."""
        assert 0 <= count <= len(self._frame) - self.filled
        self.filled += count
        return [self._finish()] if self.filled == self._size else []

    def _checked(self, size: int, frames: list[memoryview]) -> int:
        if 0 <= size <= self._max_size:
            return size
        foreign = stranger(size)
        if foreign is not None:
            raise BadFrame(f"sent {foreign} to a port of Kafka's protocol", frames)
        if size < 0:
            raise BadFrame(f"negative frame length {size}", frames)
        raise BadFrame(f"frame length {size} is over the limit of {self._max_size}", frames)

    def _check_api(self, frames: list[memoryview]) -> None:
        """Refuse a request that is too long for its API before the rest of it is received."""
        if self._apis is None or self._size <= DIRECT or self.filled < _KEY_BYTES:
            return
        key = int.from_bytes(memoryview(self._frame)[:_KEY_BYTES], "big")
        name, limit = self._apis.get(key, (f"unknown API key {key}", DIRECT))
        if self._size > limit:
            raise BadFrame(f"sent {name} of {self._size} bytes, over the limit of {limit}", frames)

    def _take(self, data: memoryview, start: int, size: int, frames: list[memoryview]) -> int:
        """Cut the frame at `start`, or keep its first part. -> the position after it."""
        stop = start + size
        if stop <= len(data):
            frames.append(data[start:stop])
            return stop
        self._size = size
        self._keep(data[start:])
        self._check_api(frames)
        return len(data)

    def _keep(self, part: memoryview) -> None:
        filled = self.filled + len(part)
        self._reserve(filled, filled)
        memoryview(self._frame)[self.filled : filled] = part
        self.filled = filled

    def _reserve(self, needed: int, received: int) -> None:
        if len(self._frame) >= needed:
            return
        grown: Store | None = None
        if self._size > SPARE_BYTES and received >= DIRECT:
            grown = _pages(self._size)
        elif self._size >= DIRECT and self._buffers is not None:
            grown = self._buffers.take(self._size)
        if grown is None:
            # A new buffer, not a resize: the host may still hold a view of the old one. In round
            # sizes, so that it fits the next frame of about this length as well.
            round_size = -(-self._size // _GRAIN) * _GRAIN if self._size >= DIRECT else self._size
            grown = bytearray(min(round_size, GROWTH * received))
        memoryview(grown)[: self.filled] = memoryview(self._frame)[: self.filled]
        self._frame = grown

    def _finish(self) -> memoryview:
        frame = memoryview(self._frame)[: self._size]
        assert len(frame) == self._size
        if self._buffers is not None and isinstance(self._frame, bytearray):
            self._buffers.keep(self._frame)
        self._size, self._frame, self.filled = -1, _EMPTY, 0
        return frame


def _pages(size: int) -> mmap | None:
    """Fresh memory that is there only where it was written to; None where there is none to have."""
    try:
        return mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS | _MAP_NORESERVE)
    except OSError:
        return None
