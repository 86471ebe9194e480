"""Divides the descriptors of this process, and frees some when they run out (F65).

Clients, peers and log files share one limit. Each of the three has its own share, so that clients
with many connections cannot take the descriptors of files and peers. If the system still refuses a
descriptor, `DescriptorReserve` closes descriptors that can be reopened, or waits if there are none.
A refused descriptor does not count as a disk error.
"""

import errno
import logging
import resource
import time
from collections.abc import Callable
from threading import get_ident
from typing import NamedTuple, TypeVar

from tidelog.runtime.logs import LineLimit

EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
"""The errors that indicate a temporary lack of descriptors, or of memory for a descriptor."""

FILES_PER_DIRECTORY = 512
OWN = 48
"""The descriptors reserved for standard streams, epoll, listeners, metrics, brief file access."""
PEERS = 32
"""The descriptors reserved for connections to and from other nodes."""

RETRY_SECONDS = 0.02

T = TypeVar("T")

log = logging.getLogger(__name__)


class Shares(NamedTuple):
    """How many descriptors each kind of user may have open at once."""

    files: int
    """The maximum number of open files per log directory."""
    clients: int
    peers: int = PEERS


UNLIMITED = Shares(FILES_PER_DIRECTORY, 2**31 - 1)


def raise_limit() -> int:
    """Raise this process's limit on descriptors to the hard limit, and return that limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 2**31 - 1 if hard == resource.RLIM_INFINITY else hard


def fewest(directories: int) -> int:
    """The minimum number of descriptors that a node needs."""
    return 128 + 8 * directories


def share_out(limit: int, directories: int) -> Shares:
    """Divide the descriptors that remain after the fixed shares and the locks.

    Files get up to half of these descriptors, and clients get the rest.
    """
    assert limit >= fewest(directories)
    free = limit - OWN - PEERS - directories
    files = min(FILES_PER_DIRECTORY * directories, free // 2)
    return Shares(files // directories, free - files)


class DescriptorReserve:
    """Frees descriptors that can be opened again, after the system has refused a new descriptor.

    Each source is a function that releases a few descriptors and returns how many it released.
    Sources are called in order until one source has released descriptors. Only the owner thread,
    which created this object, calls the sources. Any other thread waits until the owner has called
    the sources.
    """

    def __init__(self) -> None:
        self._owner = get_ident()
        self._wake: Callable[[], None] = _no_wake
        self._is_awaited = False
        self._sources: list[Callable[[], int]] = []
        self._lines = LineLimit(burst=3, every_ms=10_000)

    def add_source(self, give_back: Callable[[], int]) -> None:
        self._sources.append(give_back)

    def wake_with(self, wake: Callable[[], None]) -> None:
        """Set the function that wakes the owner thread, which then calls `free_for_waiters`."""
        self._wake = wake

    def free_for_waiters(self) -> None:
        """Free descriptors if a thread waits for one; the owner thread calls this regularly."""
        if self._is_awaited:
            self._is_awaited = False
            self.free_some()

    def free_some(self) -> bool:
        """Close descriptors that can be reopened; returns whether there were any."""
        return get_ident() == self._owner and any(give_back() for give_back in self._sources)

    def retry(self, attempt: Callable[[], T]) -> T:
        """Repeat the attempt until the system has a descriptor for it; returns its result."""
        while True:
            try:
                return attempt()
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                reason = error.strerror
            if not self.free_some():
                if self._lines.allow(time.monotonic_ns() // 1_000_000):
                    log.error(
                        "waiting for a file descriptor: %s; the limit of open files is too low%s",
                        reason,
                        self._lines.omitted(),
                    )
                self._is_awaited = True
                self._wake()
                time.sleep(RETRY_SECONDS)


def _no_wake() -> None:
    """Do nothing, because a process with one thread has no other thread to wake."""
