"""Fills disks: with a small file system, which needs root, or with a limit on the size of files."""

import errno
import resource
import subprocess
from pathlib import Path

BALLAST = ".ballast"
_BLOCK = 64 * 1024


class DiskRefused(Exception):
    """No file system can be mounted here; the message says why."""


class SmallDisk:
    """A file system of a given size, mounted on a directory."""

    def __init__(self, directory: Path, size: int) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tidelog-test", str(directory)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise DiskRefused(f"disk_bytes needs the right to mount: {done.stderr.strip()}")

    def fill(self) -> None:
        """Fill the file system to its last byte."""
        with (self._directory / BALLAST).open("ab", buffering=0) as ballast:
            size = _BLOCK
            while size:
                try:
                    ballast.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    size //= 2

    def free(self) -> None:
        (self._directory / BALLAST).unlink(missing_ok=True)

    def remove(self) -> None:
        subprocess.run(["umount", "--lazy", str(self._directory)], check=True)


def take_room(pid: int) -> None:
    """Set the file size limit of the process to 0, so that its files cannot grow."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))


def give_room(pid: int) -> None:
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
