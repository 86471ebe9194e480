"""A disk in memory with a page cache: a power loss may lose or tear unsynced data.

A write goes to the cache. `sync` makes a file's bytes durable, and `sync_directory` makes the names
in a directory durable. At a crash, every unsynced page is kept, lost or torn. An unsynced file gets
a size between its durable and its cached size. Of the unsynced changes to a directory, a random
number of the first ones survive. All random numbers come from the dice, so the same seed has the
same outcome.
"""

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from tidelog.model.dice import Dice
from tidelog.model.disk import Buffer, FileSlice, NotCached
from tidelog.sim.machines.inodes import (
    PAGE,
    Directory,
    Inode,
    Node,
    inodes_below,
    paths_below,
    sync_below,
)


@dataclass
class DiskFaults:
    """The current faults of the disk."""

    capacity: int | None = None
    """The maximum size of all files together, in bytes. Further appends fail with ENOSPC."""
    is_read_only: bool = False
    fails_sync: bool = False
    sync_ms: int = 0
    """The largest added duration of an fsync or a cold read."""
    fails_reads: set[str] = field(default_factory=set)
    """Paths with a bad sector."""

    @property
    def is_any(self) -> bool:
        """Whether there is a fault that could stop a node."""
        return (
            self.capacity is not None
            or self.is_read_only
            or self.fails_sync
            or self.sync_ms > 0
            or bool(self.fails_reads)
        )


class SimFile:
    """An open file, which stays valid until the disk crashes, even if its name is removed."""

    __slots__ = ("__weakref__", "_disk", "_inode", "_is_new", "path")

    def __init__(self, disk: "SimDisk", inode: Inode, path: str, is_new: bool) -> None:
        self._disk = disk
        self._inode = inode
        self.path = path
        self._is_new = is_new

    @property
    def size(self) -> int:
        return len(self._inode.content)

    def append(self, chunks: Sequence[Buffer]) -> None:
        """Append all chunks, or raise and leave the file unchanged."""
        joined = b"".join(chunks)
        self._disk.check_write(len(joined))
        size = len(self._inode.content)
        self._inode.dirty(size, size + len(joined))
        self._inode.content += joined

    def write_at(self, position: int, data: Buffer) -> None:
        """Overwrite in place."""
        self._disk.check_write(max(0, position + len(data) - self.size))
        self._inode.dirty(position, position + len(data))
        self._inode.content[position : position + len(data)] = data

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes from `position`; fewer only at the end of the file."""
        self._disk.check_read(self.path)
        if position < 0 or length < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if self._inode.uncached:
            self._load(position, min(position + length, self.size))
        return bytes(self._inode.content[position : position + length])

    def _load(self, start: int, end: int) -> None:
        """Read pages that are not in the page cache, or raise NotCached."""
        page = self._inode.first_uncached(start, end)
        if page is not None:
            if self._disk.only_cached:
                first = max(start, page * PAGE)
                raise NotCached(FileSlice(self, first, end - first))
            self._disk.pages_loaded += self._inode.load(start, end)

    def truncate(self, size: int) -> None:
        self._disk.check_write(0)
        if size < self.size:
            self._inode.dirty(size, self.size)
            del self._inode.content[size:]
        elif size > self.size:
            self._inode.dirty(self.size, size)
            self._inode.content += bytes(size - self.size)

    def sync(self) -> None:
        """Sync the file, and its directory if the file is new."""
        self._disk.check_sync()
        self._inode.sync()
        if self._is_new:
            self._disk.sync_directory(_split(self.path)[0])
            self._is_new = False

    def close(self) -> None:
        """Do nothing, because there is no resource to release."""


_ENDLESS = 1 << 40
"""The reported capacity of a disk without a limit."""


class SimDisk:
    """The `Disk` of one simulated log directory."""

    def __init__(self) -> None:
        self._root = Directory()
        self._new_directories: set[str] = set()
        self._crashes = 0
        self.only_cached = False
        self.pages_loaded = 0
        """The number of pages for which a read waited for the disk."""
        self.faults = DiskFaults()

    # -- faults of the disk

    def crash(self, dice: Dice) -> None:
        """Simulate a power loss. Unsynced data is kept, lost or torn. Open files become invalid."""
        self._root = self._root.survive(dice)
        self._crashes += 1
        self._new_directories.clear()

    def kill(self) -> None:
        """Simulate the end of the process. The cache survives. Open files become invalid."""
        for inode in inodes_below(self._root):
            inode.handle = None
        self._new_directories.clear()

    def evict(self, dice: Dice) -> None:
        """Drop random synced pages from the page cache, as if other programs used the memory."""
        for path in self.files():
            self._inode(path).evict(dice)

    def evict_all(self, ending: str = "") -> None:
        """Drop every synced page of the files with this ending from the page cache."""
        for path in self.files():
            if path.endswith(ending):
                self._inode(path).evict_first(self.size(path))

    def flip_bit(self, path: str, bit: int) -> None:
        """Flip a bit on the disk without a write."""
        inode = self._inode(path)
        inode.content[bit // 8] ^= 1 << bit % 8

    def rot(self, path: str, content: bytes | None) -> None:
        """Replace the content of a file, or remove the file (None), without a write by the node."""
        parent, name = self._parent(path)
        for entries in (parent.entries, parent.durable):
            if content is None:
                entries.pop(name, None)
            else:
                entries[name] = Inode(content)
        parent.steps.clear()

    def files(self) -> list[str]:
        """The path of every file."""
        return sorted(paths_below(self._root, ""))

    def durable_size(self, path: str) -> int:
        """The durable size of an append-only file."""
        return self._inode(path).durable_size

    def check_write(self, growth: int) -> None:
        if self.faults.is_read_only:
            raise OSError(errno.EROFS, "Read-only file system")
        capacity = self.faults.capacity
        if capacity is not None and growth and self.used + growth > capacity:
            raise OSError(errno.ENOSPC, "No space left on device")

    def check_read(self, path: str) -> None:
        if path in self.faults.fails_reads:
            raise OSError(errno.EIO, "Input/output error", path)

    def check_sync(self) -> None:
        if self.faults.fails_sync:
            raise OSError(errno.EIO, "Input/output error")

    @property
    def used(self) -> int:
        """The number of bytes in all named files."""
        return sum(len(inode.content) for inode in inodes_below(self._root))

    # -- the interface `Disk`

    def open(self, path: str) -> SimFile:
        parent, name = self._parent(path)
        node = parent.entries.get(name)
        is_new = node is None
        if node is None:
            self.check_write(0)
            node = Inode()
            self._link(parent, name, node)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        if node.handle is None:
            node.handle = SimFile(self, node, path, is_new)
        return node.handle

    def exists(self, path: str) -> bool:
        return self._find(path) is not None

    def size(self, path: str) -> int:
        return len(self._inode(path).content)

    def list(self, directory: str) -> list[str]:
        node = self._find(directory)
        return sorted(node.entries) if isinstance(node, Directory) else []

    def list_directories(self, directory: str) -> tuple[str, ...]:
        inside = ((name, self._find(f"{directory}/{name}")) for name in self.list(directory))
        return tuple(name for name, node in inside if isinstance(node, Directory))

    def list_non_files(self, directory: str) -> tuple[str, ...]:
        return self.list_directories(directory)

    def make_directory(self, path: str) -> bool:
        if self._find(path) is not None:
            return False
        self.check_write(0)
        parent, name = self._parent(path)
        self._link(parent, name, Directory())
        self._new_directories.add(path)
        return True

    def read_file(self, path: str) -> bytes:
        self.check_read(path)
        inode = self._inode(path)
        self.pages_loaded += inode.load(0, len(inode.content))
        return bytes(inode.content)

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Replace a file atomically. If not `durable`, a later sync makes the change durable."""
        temporary = f"{path}.tmp"
        self.remove(temporary)
        file = self.open(temporary)
        file.append((data,))
        if durable:
            self.check_sync()
            self._inode(temporary).sync()
        self.rename(temporary, path)
        if durable:
            self.sync_directory(_split(path)[0])

    def rename(self, old: str, new: str) -> None:
        self.check_write(0)
        parent, name = self._parent(old)
        new_parent, new_name = self._parent(new)
        assert parent is new_parent, "a rename stays in its directory"
        node = parent.entries[name]
        _follow(node, new)

        def step(entries: dict[str, Node]) -> None:
            entries.pop(name, None)
            entries[new_name] = node

        parent.change(step)

    def remove(self, path: str) -> None:
        if isinstance(self._find(path), Directory):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        self._unlink(path)

    def sync_directory(self, path: str) -> None:
        self.check_sync()
        node = self._find(path)
        assert isinstance(node, Directory), path
        node.sync()
        if path in self._new_directories:
            self._new_directories.discard(path)
            self.sync_directory(_split(path)[0])

    def sync_all(self) -> None:
        self.check_sync()
        sync_below(self._root)
        self._new_directories.clear()

    def remove_tree(self, directory: str) -> None:
        self._unlink(directory)

    def boot_id(self) -> str:
        return f"boot {self._crashes}"

    def space(self) -> tuple[int, int]:
        capacity = self.faults.capacity
        total = _ENDLESS if capacity is None else capacity
        return total, max(0, total - self.used)

    # -- finding files by path

    def _find(self, path: str) -> Node | None:
        node: Node = self._root
        for part in filter(None, path.split("/")):
            if not isinstance(node, Directory) or part not in node.entries:
                return None
            node = node.entries[part]
        return node

    def _inode(self, path: str) -> Inode:
        node = self._find(path)
        if isinstance(node, Directory):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return node

    def _parent(self, path: str) -> tuple[Directory, str]:
        directory, name = _split(path)
        node = self._find(directory)
        if not isinstance(node, Directory):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        return node, name

    def _link(self, parent: Directory, name: str, node: Node) -> None:
        parent.change(lambda entries: entries.update({name: node}))

    def _unlink(self, path: str) -> None:
        if self._find(path) is not None:
            self.check_write(0)
            parent, name = self._parent(path)

            def step(entries: dict[str, Node]) -> None:
                entries.pop(name, None)

            parent.change(step)


def _split(path: str) -> tuple[str, str]:
    directory, _, name = path.rpartition("/")
    return directory, name


def _follow(node: Node, path: str) -> None:
    """Update the paths of open files after a rename."""
    if isinstance(node, Directory):
        for name, inside in node.entries.items():
            _follow(inside, f"{path}/{name}")
    elif node.handle is not None:
        node.handle.path = path
