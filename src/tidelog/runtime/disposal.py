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
    with _start:
        if not _threads:
            # A process may end while it works: the kernel frees the rest.
            _threads.append(Thread(target=_work, name="disposal", daemon=True))
            _threads[0].start()
    _descriptors.put(number)


def _work() -> None:
    while True:
        with suppress(OSError):
            os.close(_descriptors.get())
