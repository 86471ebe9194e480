"""Splits a byte stream into frames: a 4-byte length, then that many bytes. Does no I/O.

There is one `FrameSplitter` per connection. The host owns the socket and one large shared buffer:

    space = splitter.space()
    if space is None:                       # the common case: any number of small frames
        count = sock.recv_into(shared)
        frames = splitter.feed(shared[:count])
    else:                                   # inside a large frame: receive it in place
        count = sock.recv_into(space)
        frames = splitter.received(count)

A frame is a writable view of its bytes, without the length. If all bytes of a frame lie in the fed
buffer, the frame is a view of that buffer, and nothing is copied. Otherwise the frame is a view of
a buffer of its own. A frame is valid until the host receives the next bytes. A frame longer than
`SHARED_BYTES` is valid as long as a view of it exists.

Invariants: between frames a splitter holds no buffer. Inside a frame, a splitter reuses an existing
buffer, or allocates at most `GROWTH` times the bytes received, whatever length the frame claims.
Each byte is copied at most a few times. For a frame larger than `SPARE_BYTES`, the system allocates
memory page by page as bytes are written. The memory is freed with the last view of the frame.
"""

from collections.abc import Mapping
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from struct import Struct
from sys import getrefcount
from typing import TypeAlias

from tidelog.protocol.foreign_protocols import foreign_protocol

GROWTH = 4
"""The maximum ratio of a buffer's size to the bytes received into it."""

DIRECT = 64 * 1024
"""If at least this many bytes of a frame are received and at least this many are missing, the rest
is received in place."""

SHARED_BYTES = 256 * 1024
"""The size of the buffer that all connections share. A longer frame has its own buffer, which its
views keep alive, so the frame may be kept beyond the call that delivers it.
"""

SPARE_BYTES = 16 * 1024 * 1024
"""The maximum size of all buffers that are kept for later frames."""

_GRAIN = 128 * 1024
_KEY_BYTES = 2
_MAP_NORESERVE = 0x4000
"""A Linux flag that reserves only address space. Python's mmap module has it from 3.13 on."""

Store: TypeAlias = bytearray | mmap

_LENGTH = Struct(">i")
_EMPTY = bytearray()


def _references(buffers: list[bytearray], index: int) -> int:
    return getrefcount(buffers[index])


_UNSHARED = _references([bytearray()], 0)
"""The reference count, in this interpreter, of a buffer that only a list refers to."""


class Buffers:
    """Reuses large buffers, because fresh memory costs a page fault for every 4 KiB.

    A buffer is reused only when no view of its last frame exists.
    """

    __slots__ = ("_size", "_spares")

    def __init__(self) -> None:
        self._spares: list[bytearray] = []  # the least recently used first
        self._size = 0

    def take(self, size: int) -> bytearray | None:
        """A free buffer of at least `size` bytes, if there is one."""
        spares = self._spares
        for index in range(len(spares)):
            if len(spares[index]) >= size and _references(spares, index) == _UNSHARED:
                self._size -= len(spares[index])
                return spares.pop(index)
        return None

    def keep(self, buffer: bytearray) -> None:
        """Register a buffer for reuse after its current frame has been handled."""
        if not DIRECT <= len(buffer) <= SPARE_BYTES:
            return
        self._spares.append(buffer)
        self._size += len(buffer)
        while self._size > SPARE_BYTES:
            self._size -= len(self._spares.pop(0))


class BadFrame(Exception):
    """The stream is invalid from here on, so the host closes the connection.

    `frames` are the whole frames that the same call completed before the bad length.
    """

    def __init__(self, reason: str, frames: list[memoryview]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.frames = frames


class FrameSplitter:
    """Splits the bytes that one connection receives into frames."""

    __slots__ = ("_apis", "_buffers", "_frame", "_head", "_max_size", "_size", "filled")

    def __init__(
        self,
        max_request_size: int,
        buffers: Buffers | None = None,
        apis: Mapping[int, tuple[str, int]] | None = None,
    ) -> None:
        self._apis = apis  # API key -> name and largest request; None for responses
        self._max_size = max_request_size
        self._buffers = buffers
        self._head = b""  # the first bytes of a length, at most three
        self._size = -1  # the length of the current frame; -1 between frames
        self._frame: Store = _EMPTY  # the first `filled` bytes are received
        self.filled = 0
        """The received bytes of an incomplete frame."""

    def feed(self, data: memoryview) -> list[memoryview]:
        """The frames that these bytes complete, in order; remaining bytes are copied and kept."""
        position, end = 0, len(data)
        is_between = self._size < 0 and not self._head
        if is_between and end >= 4 and _LENGTH.unpack_from(data)[0] == end - 4 <= self._max_size:
            return [data[4:]]  # most reads return one whole frame
        frames: list[memoryview] = []
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
                # The length was split across two reads and is complete now.
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
        """The buffer for the rest of a large frame; None if the host should call `feed`."""
        missing = self._size - self.filled
        if missing < DIRECT or self.filled < DIRECT:
            return None
        self._reserve(self.filled + min(missing, DIRECT), self.filled)
        return memoryview(self._frame)[self.filled : self._size]

    def received(self, count: int) -> list[memoryview]:
        """Count the bytes received into `space()`; returns the frame if it is complete."""
        assert 0 <= count <= len(self._frame) - self.filled
        self.filled += count
        return [self._finish()] if self.filled == self._size else []

    def _checked(self, size: int, frames: list[memoryview]) -> int:
        if 0 <= size <= self._max_size:
            return size
        foreign = foreign_protocol(size)
        if foreign is not None:
            raise BadFrame(f"sent {foreign} to a Kafka port", frames)
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
        """Extract the frame at `start`, or keep its first part; returns the next position."""
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
            # Do not resize the old buffer, because the host may still hold a view of it. Sizes are
            # rounded, so that the buffer fits the next frame of about this length as well.
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
    """Memory that is allocated page by page when it is written; None if the system refuses."""
    try:
        return mmap(-1, size, flags=MAP_PRIVATE | MAP_ANONYMOUS | _MAP_NORESERVE)
    except OSError:
        return None
