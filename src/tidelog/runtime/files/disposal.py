"""Frees the blocks of removed files in a background thread.

Removing a name is quick. Freeing the blocks of a large file can block the caller for a second. It
takes longer on a volume that is mounted with `discard`. The kernel frees the blocks when the last
descriptor of the removed file is closed. A background thread therefore closes this descriptor.
"""

import os
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread

_descriptors: SimpleQueue[int] = SimpleQueue()
_start = Lock()
_threads: list[Thread] = []


class Descriptor:
    """An open file descriptor, closed when its last holder releases it."""

    __slots__ = ("is_of_removed", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.is_of_removed = False
        """Whether the file is removed. If so, closing the descriptor frees blocks, and is slow."""

    def __del__(self) -> None:
        if self.is_of_removed:
            close_elsewhere(self.number)
        else:
            _close(self.number)


def close_elsewhere(number: int) -> None:
    """Close this descriptor in a background thread."""
    try:
        with _start:
            if not _threads:
                # Use a daemon thread. If the process ends first, the kernel frees the blocks.
                thread = Thread(target=_work, name="disposal", daemon=True)
                thread.start()
                _threads.append(thread)
    except RuntimeError:
        _close(number)  # the interpreter is shutting down, or no thread is available
    else:
        _descriptors.put(number)


def _work() -> None:
    while True:
        _close(_descriptors.get())


def _close(number: int) -> None:
    with suppress(OSError):
        os.close(number)
