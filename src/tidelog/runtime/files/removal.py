"""Removes files and directories without waiting for the blocks of large files to be freed."""

import errno
import os
import stat
from contextlib import suppress

from tidelog.runtime.files.disposal import close_elsewhere

LARGE_BYTES = 1024 * 1024
"""Freeing the blocks of a file of this size or more takes a long time."""


def unlink(path: str) -> None:
    """Remove the name; a background thread frees the blocks of a large file."""
    found = os.lstat(path)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if found.st_size < LARGE_BYTES:
        os.unlink(path)
        return
    try:
        number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        os.unlink(path)  # too many files are open, so free the blocks in this thread
        return
    try:
        os.unlink(path)
    finally:
        close_elsewhere(number)


def remove_tree(path: str) -> None:
    with suppress(FileNotFoundError):
        if os.path.islink(path):
            os.unlink(path)  # remove the link, not its target
            return
        for entry in list(os.scandir(path)):
            if entry.is_dir(follow_symlinks=False):
                remove_tree(entry.path)
            else:
                with suppress(FileNotFoundError):
                    unlink(entry.path)
        os.rmdir(path)
