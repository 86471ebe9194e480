"""Bring a machine's memory into a defined state before a timed run."""

import os
import time
from pathlib import Path

LEFT_FREE = 256 << 20
"""How much memory `fill_page_cache` leaves free, as on a machine that has run for a while."""


def fill_page_cache(work: Path) -> None:
    """Fill the free memory with cached files, as on a machine that has run for a while.

    A virtual machine may return free memory to its host. The next process that uses this memory
    then needs more system time. In a test, the first write of a file to returned memory took ten
    times the system time of the second write. Memory that caches a file is not returned to the
    host, and the kernel reuses it when needed. This function reads a sparse file without data,
    which fills the cache without using the disk.

    Before that, it writes the unwritten pages of earlier loads to the disk. If these pages exceed a
    fifth of the memory, the kernel slows writers down. The run would then measure the disk instead
    of the broker.
    """
    os.sync()
    hole = work / "hole"
    with hole.open("wb") as file:
        file.truncate(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    with hole.open("rb", buffering=0) as file:
        piece = bytearray(1 << 20)
        while free_memory() > LEFT_FREE and file.readinto(piece):
            pass


def await_deletions(work: Path) -> None:
    """Wait until the files of deleted topics are gone and their blocks are free.

    If the volume discards freed blocks immediately, deletion takes seconds, and other writes are
    slow during that time.
    """
    while any(work.rglob("*-delete")):
        time.sleep(0.2)
    before, free = 0, _free_space(work)
    while free - before > _A_LITTLE:
        time.sleep(1)
        before, free = free, _free_space(work)


_A_LITTLE = 1 << 20


def _free_space(work: Path) -> int:
    volume = os.statvfs(work)
    return volume.f_frsize * volume.f_bfree


def free_memory() -> int:
    """The memory in bytes that is not used at all, not even as a cache."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
