"""A disk that can hang. While it hangs, writes and syncs block."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tidelog.model.ids import NodeId
from tidelog.testing import Cluster


class FrozenDisk:
    """A separate file system on a directory, which the kernel can freeze."""

    def __init__(self, directory: Path, image: Path, size: int) -> None:
        self._directory = directory
        with image.open("wb") as file:
            file.truncate(size)
        self._run("mkfs.ext4", "-q", str(image))
        self._run("mount", "-o", "loop", str(image), str(directory))
        (directory / "lost+found").rmdir()

    def freeze(self) -> None:
        self._run("fsfreeze", "--freeze", str(self._directory))

    def thaw(self) -> None:
        self._run("fsfreeze", "--unfreeze", str(self._directory))

    def remove(self) -> None:
        self._run("umount", "--lazy", str(self._directory))

    def _run(self, *command: str) -> None:
        subprocess.run(command, check=True, capture_output=True)


@contextmanager
def disk_that_can_hang(directory: Path, image: Path, size: int) -> Iterator[FrozenDisk | None]:
    """A disk that can hang; None if this process is not allowed to mount one."""
    directory.mkdir(parents=True)
    disk = None
    if os.geteuid() == 0:
        try:
            disk = FrozenDisk(directory, image, size)
        except (OSError, subprocess.CalledProcessError):
            disk = None
    try:
        yield disk
    finally:
        if disk is not None:
            disk.remove()


@contextmanager
def hanging(cluster: Cluster, node: NodeId, disk: FrozenDisk | None) -> Iterator[None]:
    """Let a node's disk hang; if there is no separate disk, pause the process instead."""
    if disk is None:
        cluster.pause(node)
    else:
        disk.freeze()
    try:
        yield
    finally:
        if disk is None:
            cluster.resume(node)
        else:
            disk.thaw()
