"""The interface (port) through which the log engine reads and writes files.

Two hosts implement it. `runtime` uses real files. `sim` models the page cache, so unsynced writes
can be lost or torn at a crash. Paths are relative to the log directory and use `/`. Every method
may raise `OSError`. If a method raises it, the node treats the log directory as failed.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


class File(Protocol):
    """An open, append-only file. It stays readable after `Disk.remove` while it is referenced."""

    @property
    def size(self) -> int: ...

    def append(self, chunks: Sequence[Buffer]) -> None:
        """Write all chunks at the end; on an error, restore the former size and raise."""

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite bytes in place; only index files need this."""

    def read(self, position: int, length: int) -> bytes:
        """Read `length` bytes from `position` on; fewer only at the end of the file.

        Raises `NotCached` if `Disk.only_cached` is set and the read would wait for the disk.
        """

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """fsync the file, and its directory if the file is new, so that it survives power loss.

        The call blocks, so production code calls it in a job, or at start and shutdown.
        """

    def close(self) -> None: ...


class Disk(Protocol):
    only_cached: bool
    """While True, `File.read` does not wait for the disk.

    The log engine sets it for a read that can be repeated in a job if its bytes are not cached. It
    applies only to the thread that owns the disk, so reads in jobs always wait. If the file system
    does not report which bytes are cached, a read waits.
    """

    def open(self, path: str) -> File:
        """Open a file, and create it if it is absent; the same path returns the same `File`."""

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int:
        """The size of a file in bytes; raises IsADirectoryError for a directory."""

    def list(self, directory: str) -> list[str]:
        """The names in a directory, sorted; empty if the directory does not exist."""

    def list_directories(self, directory: str) -> tuple[str, ...]:
        """The names of the subdirectories, sorted; links to directories are included."""

    def list_non_files(self, directory: str) -> tuple[str, ...]:
        """The names of all entries except files and links to files, sorted."""

    def make_directory(self, path: str) -> bool:
        """Create a directory whose parent exists. Returns False if the directory already exists."""

    def read_file(self, path: str) -> bytes:
        """The content of a file; raises FileNotFoundError, or IsADirectoryError for a directory."""

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Replace a file atomically.

        Writes a temporary file, fsyncs it, renames it and fsyncs the directory.

        With durable=False nothing is fsynced, so the file may be old, empty or torn after power
        loss.
        """

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in a directory survive power loss ("": the root)."""

    def sync_all(self) -> None:
        """Make all writes, creations and renames so far survive power loss."""

    def remove_tree(self, directory: str) -> None:
        """Remove a directory and its content, if it exists."""

    def boot_id(self) -> str | None:
        """The id of the machine's current boot; None if it is unknown.

        As long as this id stays the same, no unsynced write has been lost.
        """

    def space(self) -> tuple[int, int]:
        """Total bytes of the volume, and bytes that this process may still use."""


class FileSlice(NamedTuple):
    """Bytes that the host sends directly from a file."""

    file: File
    position: int
    length: int


class NotCached(Exception):
    """These bytes are not in the page cache, so a read of them would wait for the disk."""

    def __init__(self, part: FileSlice) -> None:
        super().__init__(f"{part.length} bytes from position {part.position} on are not cached")
        self.part = part
