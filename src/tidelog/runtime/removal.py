"""Removes files and directories without waiting until the blocks of large files are free."""

import os
from contextlib import suppress

from tidelog.runtime.disposal import close_elsewhere

LARGE_BYTES = 1024 * 1024
"""A file from this size on takes long to be freed."""


def unlink(path: str) -> None:
    """Remove the name; what a large file takes behind it is freed elsewhere."""
    if os.lstat(path).st_size < LARGE_BYTES:
        os.unlink(path)
        return
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        os.unlink(path)  # too many files are open: better slowly than not at all
        return
    try:
        os.unlink(path)
    finally:
        close_elsewhere(number)


def remove_tree(path: str) -> None:
    with suppress(FileNotFoundError):
        for entry in list(os.scandir(path)):
            if entry.is_dir(follow_symlinks=False):
                remove_tree(entry.path)
            else:
                with suppress(FileNotFoundError):
                    unlink(entry.path)
        os.rmdir(path)
