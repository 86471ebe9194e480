"""The state of a machine's memory before a timed run."""

import os
import time
from pathlib import Path

LEFT_FREE = 256 << 20
"""What a machine that has run for a while leaves unused of its memory, about."""


def fill_page_cache(work: Path) -> None:
    """Leave the machine as one that has run for a while: its free memory holds files.

    A virtual machine may give free memory back to its host, and whoever uses it next pays for
    that: a file written to such memory cost ten times the system time of the same file written
    again. Memory that holds the cache of a file is still there, and is taken from it when needed.
    A file that is one hole fills the cache without being on the disk. What the load before has
    left unwritten goes to the disk first: past a fifth of the memory the kernel holds writers
    back, and the disk's pace would be measured instead of the broker's.
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
    """Until the files of topics that were deleted before are gone, and their blocks are free.

    Where a volume discards blocks at once that takes seconds, in which nobody writes much.
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
    """In bytes: used by nobody and for nothing, unlike what is *available*."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
