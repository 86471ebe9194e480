"""Real files under one log directory.

Invariant: the number of open descriptors is bounded, however many files are in use. A file opens
its descriptor on demand. If too many descriptors are open, the disk closes those that were used
least recently. A file without a descriptor stays usable, because it opens its path again on demand.
On a rename, the disk updates the path in the file. Before a path is removed, its file opens a
descriptor and keeps it open. A descriptor is closed when its last holder releases it.

Only the thread that owns the disk takes a descriptor away from a file. Other threads may call
`File.read` and `File.sync`. They may also call `File.append` for a file, and `Disk.write_file` for
a path, that nothing else uses.
If the system refuses a descriptor, the disk closes other descriptors or waits. Such a refusal never
counts as a disk error (F65).
"""

import errno
import os
import stat
from collections import deque
from contextlib import suppress
from ctypes import CDLL, get_errno
from pathlib import Path
from threading import get_ident
from weakref import ref

from tidelog.model.disk import File
from tidelog.runtime.files.disposal import Descriptor
from tidelog.runtime.files.file import READ_WRITE, RealFile, split
from tidelog.runtime.files.removal import remove_tree, unlink
from tidelog.runtime.transport.descriptors import FILES_PER_DIRECTORY, DescriptorReserve

_READ_ONLY = os.O_RDONLY | os.O_CLOEXEC
_REPLACE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_BOOT_ID = "/proc/sys/kernel/random/boot_id"

_syncfs = CDLL(None, use_errno=True).syncfs
"""Linux's syncfs, which Python does not expose."""


class RealDisk:
    """The `Disk` of one log directory."""

    def __init__(
        self,
        root: str | Path,
        max_open_files: int = FILES_PER_DIRECTORY,
        reserve: DescriptorReserve | None = None,
    ) -> None:
        self._root = os.fspath(root)
        self._max_open = max_open_files
        self._reserve = reserve or DescriptorReserve()
        self._reserve.add_source(self._give_back)
        self._owner = get_ident()
        self._open: deque[ref[RealFile]] = deque()
        """Files with a descriptor, in the order in which `opened` checks them."""
        self._files: dict[str, dict[str, ref[RealFile]]] = {}
        """Files in use, by directory and name; unused files are dropped."""
        self._new_directories: set[str] = set()
        self.only_cached = False
        self.appended = 0
        """The number of bytes that were appended to files of this directory."""
        os.makedirs(self._root, exist_ok=True)

    def full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def is_owner(self) -> bool:
        return get_ident() == self._owner

    # -- open files

    def open(self, path: str) -> File:
        directory, name = split(path)
        known = self._files.setdefault(directory, {})
        used = known.get(name)
        file = used() if used is not None else None
        if file is None:
            file = self._open_new(path)
            known[name] = ref(file)
        return file

    def _open_new(self, path: str) -> RealFile:
        is_new = False
        try:
            number = self.open_number(path, READ_WRITE)
        except FileNotFoundError:
            number = self.open_number(path, READ_WRITE | os.O_CREAT)
            is_new = True
        file = RealFile(self, path, Descriptor(number), is_new)
        self.opened(file)
        return file

    def opened(self, file: RealFile) -> None:
        """Record that a file has opened a descriptor; close unused descriptors above the limit."""
        self._open.append(ref(file))
        excess = len(self._open) - self._max_open
        for _ in range(2 * len(self._open)):
            if excess <= 0:
                return
            oldest = self._open.popleft()
            held = oldest()
            if held is not None and (held is file or not held.give_up()):
                self._open.append(oldest)
            else:
                excess -= 1

    def open_number(self, path: str, flags: int) -> int:
        full = self.full(path)
        try:
            return os.open(full, flags, 0o644)
        except OSError:
            return self._reserve.retry(lambda: os.open(full, flags, 0o644))

    def _give_back(self) -> int:
        """Close the descriptors of half of the files, and return how many were closed.

        A file opens its descriptor again on demand.
        """
        given, half = 0, len(self._open) // 2
        while self._open and not (given and len(self._open) <= half):
            file = self._open.popleft()()
            if file is not None and file.let_go():
                given += 1
        return given

    # -- directories and whole files

    def exists(self, path: str) -> bool:
        return os.path.exists(self.full(path))

    def size(self, path: str) -> int:
        found = os.stat(self.full(path))
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return found.st_size

    def list(self, directory: str) -> list[str]:
        try:
            return sorted(self._reserve.retry(lambda: os.listdir(self.full(directory))))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def list_directories(self, directory: str) -> tuple[str, ...]:
        try:
            with self._reserve.retry(lambda: os.scandir(self.full(directory))) as found:
                return tuple(sorted(entry.name for entry in found if entry.is_dir()))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def list_non_files(self, directory: str) -> tuple[str, ...]:
        try:
            with self._reserve.retry(lambda: os.scandir(self.full(directory))) as found:
                return tuple(sorted(entry.name for entry in found if not entry.is_file()))
        except (FileNotFoundError, NotADirectoryError):
            return ()

    def make_directory(self, path: str) -> bool:
        try:
            os.mkdir(self.full(path))
        except FileExistsError:
            return False
        self._new_directories.add(path)
        return True

    def read_file(self, path: str) -> bytes:
        with open(self.open_number(path, _READ_ONLY), "rb") as file:
            return file.read()

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        full, temporary = self.full(path), self.full(path) + ".tmp"
        with open(self.open_number(path + ".tmp", _REPLACE), "wb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        self._forget(path)
        os.replace(temporary, full)
        if durable:
            self.sync_directory(split(path)[0])

    def boot_id(self) -> str | None:
        try:
            with open(_BOOT_ID, encoding="ascii") as file:
                return file.read().strip() or None
        except OSError:
            return None

    def rename(self, old: str, new: str) -> None:
        self._forget(new)
        os.rename(self.full(old), self.full(new))
        self._moved(old, new)

    def remove(self, path: str) -> None:
        self._forget(path)
        with suppress(FileNotFoundError):
            unlink(self.full(path))

    def sync_directory(self, path: str) -> None:
        number = self.open_number(path, _DIRECTORY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
        if path in self._new_directories:
            self.sync_directory(split(path)[0])
            self._new_directories.discard(path)

    def sync_all(self) -> None:
        """Sync the whole volume in one call, which can be slow but blocks no other thread."""
        number = self.open_number("", _DIRECTORY)
        try:
            if _syncfs(number):
                raise OSError(get_errno(), os.strerror(get_errno()), self._root)
        finally:
            os.close(number)
        self._new_directories.clear()

    def remove_tree(self, directory: str) -> None:
        for used in self._files.pop(directory, {}).values():
            file = used()
            if file is not None:
                file.pin()
        self._reserve.retry(lambda: remove_tree(self.full(directory)))

    def space(self) -> tuple[int, int]:
        volume = os.statvfs(self._root)
        return volume.f_frsize * volume.f_blocks, volume.f_frsize * volume.f_bavail

    # -- paths of files in use

    def _forget(self, path: str) -> None:
        """Detach a file in use from a path that is about to be removed or replaced."""
        file = self._take(path)
        if file is not None:
            file.pin()

    def _moved(self, old: str, new: str) -> None:
        file = self._take(old)
        if file is not None:
            file.path = new
            directory, name = split(new)
            self._files.setdefault(directory, {})[name] = ref(file)
        inside = self._files.pop(old, None)
        if inside is not None:
            self._files[new] = inside
            for name, used in inside.items():
                file = used()
                if file is not None:
                    file.path = f"{new}/{name}"

    def _take(self, path: str) -> RealFile | None:
        directory, name = split(path)
        used = self._files.get(directory, {}).pop(name, None)
        return used() if used is not None else None
