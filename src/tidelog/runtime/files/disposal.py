"""Gives the blocks of removed files back to the file system, off the node's own thread.

To remove a name is quick. To free what a large file takes can hold the caller up for a second, more
where a volume discards blocks at once. The kernel does that when the last descriptor of a file
without a name is closed, so it is enough that somebody else closes it.
"""

import os
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread

_descriptors: SimpleQueue[int] = SimpleQueue()
_start = Lock()
_threads: list[Thread] = []


def close_elsewhere(number: int) -> None:
    """Close this descriptor in a thread that nobody waits for."""
    try:
        with _start:
            if not _threads:
                # A process may end while it works: the kernel frees the rest.
                thread = Thread(target=_work, name="disposal", daemon=True)
                thread.start()
                _threads.append(thread)
    except RuntimeError:
        _close(number)  # the interpreter is ending, or the system has no thread to give
    else:
        _descriptors.put(number)


def _work() -> None:
    while True:
        _close(_descriptors.get())


def _close(number: int) -> None:
    with suppress(OSError):
        os.close(number)
