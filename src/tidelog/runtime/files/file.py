"""One real file. Its descriptor opens on demand, and the disk may close it while it is unused.

Only the thread that owns the disk takes a descriptor away from a file. Other threads may call
`File.read` and `File.sync`, and `File.append` for a file that nothing else uses.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from tidelog.model.disk import Buffer
from tidelog.runtime.files.disposal import Descriptor
from tidelog.runtime.files.page_cache import is_cached, read_cached

if TYPE_CHECKING:
    from tidelog.runtime.files.disk import RealDisk

READ_WRITE = os.O_RDWR | os.O_CLOEXEC
RECENT_BYTES = 8 * 1024 * 1024
"""Bytes count as cached until this many bytes are appended after them, to any file of the
directory.
"""
_MAX_CHUNKS = 512
"""The maximum number of buffers per pwritev, well below IOV_MAX."""


class RealFile:
    """A file of a `RealDisk`."""

    __slots__ = (
        "__weakref__",
        "_appended_at",
        "_descriptor",
        "_disk",
        "_is_new",
        "_is_wanted",
        "_size_at_open",
        "path",
        "size",
    )

    def __init__(self, disk: "RealDisk", path: str, descriptor: Descriptor, is_new: bool) -> None:
        self._disk = disk
        self._descriptor: Descriptor | None = descriptor
        self._is_new = is_new
        self._is_wanted = True
        self.path = path
        self.size = self._size_at_open = os.fstat(descriptor.number).st_size
        self._appended_at = 0

    def fileno(self) -> int:
        """The number of an open descriptor, valid until the next call in the owning thread."""
        return self.descriptor().number

    def descriptor(self) -> Descriptor:
        """An open descriptor, which stays open while the caller holds it."""
        self._is_wanted = True
        return self._descriptor or self._reopen()

    def append(self, chunks: Sequence[Buffer]) -> None:
        """Write all chunks at the end; on an error, restore the former size and raise."""
        descriptor = self.descriptor()
        size = self.size
        total = len(chunks[0]) if len(chunks) == 1 else sum(map(len, chunks))
        try:
            # Write at an explicit position, so that the next append overwrites the bytes of a
            # failed append.
            written = os.pwritev(descriptor.number, chunks[:_MAX_CHUNKS], size)
            if written != total:
                rest = memoryview(b"".join(chunks))[written:]
                self._write(descriptor, size + written, rest)
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor.number, size)
            raise
        self.size = size + total
        self._disk.appended += total
        self._appended_at = self._disk.appended

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite bytes in place."""
        self._write(self.descriptor(), position, memoryview(data))
        self.size = max(self.size, position + len(data))

    def _write(self, descriptor: Descriptor, position: int, rest: memoryview) -> None:
        """Write until the disk has accepted all bytes or raises an error."""
        while rest:
            count = os.pwrite(descriptor.number, rest, position)
            rest, position = rest[count:], position + count

    def read(self, position: int, length: int) -> bytes:
        """Read `length` bytes from `position` on; fewer only at the end of the file."""
        descriptor = self.descriptor()
        if self._disk.only_cached and self._disk.is_owner():
            return read_cached(self, descriptor.number, position, length)
        found = os.pread(descriptor.number, length, position)
        if len(found) == length or not found:
            return found
        parts, got = [found], len(found)
        while got < length and (more := os.pread(descriptor.number, length - got, position + got)):
            parts.append(more)
            got += len(more)
        return b"".join(parts)

    def is_recent(self, position: int) -> bool:
        """Whether the bytes from `position` on were just appended, so they are surely cached."""
        later = self._disk.appended - self._appended_at
        return position >= self._size_at_open and later + self.size - position <= RECENT_BYTES

    def is_cached(self, position: int, length: int) -> bool:
        """Whether these bytes can probably be read without waiting for the disk."""
        return self.is_recent(position) or is_cached(self.descriptor().number, position, length)

    def truncate(self, size: int) -> None:
        descriptor = self.descriptor()
        os.ftruncate(descriptor.number, size)
        self.size = size
        self._size_at_open = min(self._size_at_open, size)

    def sync(self) -> None:
        """fsync the file, and its directory if the file is new."""
        descriptor = self.descriptor()
        os.fsync(descriptor.number)
        if self._is_new and self.path:
            self._disk.sync_directory(split(self.path)[0])
            self._is_new = False

    def close(self) -> None:
        self._descriptor = None

    def _reopen(self) -> Descriptor:
        descriptor = self._open()
        if self._disk.is_owner():
            self._descriptor = descriptor
            self._disk.opened(self)
        return descriptor

    def _open(self) -> Descriptor:
        while True:
            path = self.path
            try:
                return Descriptor(self._disk.open_number(path, READ_WRITE))
            except FileNotFoundError:
                # The file does not exist, or another thread has just renamed or removed it.
                if self._descriptor is not None:
                    return self._descriptor
                if self.path == path:
                    raise

    def pin(self) -> None:
        """Keep a descriptor open from now on, because the path is about to be removed or reused."""
        with suppress(FileNotFoundError):
            self._descriptor = self._descriptor or self._open()
            self._descriptor.is_of_removed = True
        self.path = ""

    def let_go(self) -> bool:
        """Release the descriptor; returns False if there is none or it must stay open (`pin`)."""
        if not self.path or self._descriptor is None:
            return False
        self._descriptor = None
        return True

    def give_up(self) -> bool:
        """Release the descriptor; returns False if the file was used since the last call."""
        if self.path and self._is_wanted:
            self._is_wanted = False
            return False
        if self.path:
            self._descriptor = None
        return True


def split(path: str) -> tuple[str, str]:
    """The directory and the name of a path."""
    directory, _, name = path.rpartition("/")
    return directory, name
