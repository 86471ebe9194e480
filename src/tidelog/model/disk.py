"""The port through which the log engine reaches bytes at rest.

Two hosts implement it: real files in `runtime`, a page-cache model in `sim` whose unsynced writes
can be lost or torn at a crash. Paths are relative to the log directory and use `/`.
Every method may raise `OSError`; the node turns that into a failed log directory.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

Buffer: TypeAlias = bytes | bytearray | memoryview


class File(Protocol):
    """An open file that grows at its end. It stays readable after `Disk.remove` until dropped."""

    @property
    def size(self) -> int: ...

    def append(self, chunks: Sequence[Buffer]) -> None:
        """Write all chunks at the end, or raise with the file cut back to its former size."""

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite in place (index files only)."""

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; shorter only at the end of the file."""

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """fsync, and the directory too when the file is new: after it, power loss takes nothing.

        Blocks: production calls it from a worker thread only (a job), or at start and shutdown.
        """

    def close(self) -> None: ...


class Disk(Protocol):
    def open(self, path: str) -> File:
        """Open for reading and appending, created if absent; the same path gives the same file."""

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int:
        """Bytes in a file; IsADirectoryError when the name is a directory's."""

    def list(self, directory: str) -> list[str]:
        """Names in a directory, sorted; empty when it does not exist."""

    def list_directories(self, directory: str) -> tuple[str, ...]:
        """Names of the directories in a directory, sorted; a link to one counts as one."""

    def list_misfits(self, directory: str) -> tuple[str, ...]:
        """Names of what is neither a file nor a link to one in a directory, sorted."""

    def make_directory(self, path: str) -> bool:
        """Create it in one that exists. -> False if it was there already."""

    def read_file(self, path: str) -> bytes:
        """The whole content; FileNotFoundError when absent, IsADirectoryError as for `size`."""

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Replace atomically: write a temporary, sync it, rename it over, sync the directory.

        With durable=False nothing is synced: after power loss the file may be old, empty or torn.
        """

    def rename(self, old: str, new: str) -> None: ...

    def remove(self, path: str) -> None:
        """Remove a file; no error when absent."""

    def sync_directory(self, path: str) -> None:
        """Make creations, renames and removals in a directory survive power loss ("": the root)."""

    def sync_all(self) -> None:
        """Make everything that was written or named here so far survive power loss."""

    def remove_tree(self, directory: str) -> None:
        """Remove a directory and all in it; no error when absent."""

    def space(self) -> tuple[int, int]:
        """Bytes in all of the volume, and bytes that this process may still use of it."""


class FileSlice(NamedTuple):
    """Bytes that the host sends straight from a file."""

    file: File
    position: int
    length: int
