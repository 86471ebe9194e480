"""Descriptors of this process: how they are shared out, and what is done when there are none (F65).

Clients, peers and log files draw on one limit. Each has a share, so that clients who open all
the connections they can get leave the node its files and its peers. If the system refuses a
descriptor all the same, that is no fault of a disk: `Room` closes what can be opened again, and
waits where nothing is left to close.
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
"""The system has no descriptor, or no memory for one, at the moment."""

FILES_PER_DIRECTORY = 512
OWN = 48
"""Standard streams, epoll, listeners, metrics, and files that are open for a moment."""
PEERS = 32
"""For connections to and from other nodes, where client connections may not take them."""

RETRY_SECONDS = 0.02

T = TypeVar("T")

log = logging.getLogger(__name__)


class Shares(NamedTuple):
    """How many descriptors each may use at once."""

    files: int
    """Of one log directory."""
    clients: int
    peers: int = PEERS


UNLIMITED = Shares(FILES_PER_DIRECTORY, 2**31 - 1)


def raise_limit() -> int:
    """Take every descriptor that the system allows this process. -> how many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return 2**31 - 1 if hard == resource.RLIM_INFINITY else hard


def fewest(directories: int) -> int:
    """How many descriptors a node needs at least."""
    return 128 + 8 * directories


def share_out(limit: int, directories: int) -> Shares:
    """Files get what they can use, up to half; clients get the rest. Each directory has a lock."""
    assert limit >= fewest(directories)
    free = limit - OWN - PEERS - directories
    files = min(FILES_PER_DIRECTORY * directories, free // 2)
    return Shares(files // directories, free - files)


class Room:
    """Makes room for a descriptor that the system has refused, and tries again.

    `sources` give descriptors back, each a few at a time, and return how many; they are called in
    their order, in the thread that made this object, until one of them has some. Another thread
    waits, and has that thread make room.
    """

    def __init__(self) -> None:
        self._owner = get_ident()
        self._wake: Callable[[], None] = _nobody
        self._is_awaited = False
        self._sources: list[Callable[[], int]] = []
        self._lines = LineLimit(burst=3, every_ms=10_000)

    def add_source(self, give_back: Callable[[], int]) -> None:
        self._sources.append(give_back)

    def wake_with(self, wake: Callable[[], None]) -> None:
        """How another thread wakes the owner, who calls `relieve` then."""
        self._wake = wake

    def relieve(self) -> None:
        """Make room if another thread waits for it."""
        if self._is_awaited:
            self._is_awaited = False
            self.make()

    def make(self) -> bool:
        """Close something that can be opened again. -> whether there was anything."""
        return get_ident() == self._owner and any(give_back() for give_back in self._sources)

    def retry(self, attempt: Callable[[], T]) -> T:
        """Its result, as soon as the system has a descriptor for it."""
        while True:
            try:
                return attempt()
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                reason = error.strerror
            if not self.make():
                if self._lines.allow(time.monotonic_ns() // 1_000_000):
                    log.error(
                        "waits for a descriptor: %s; the limit of open files is too low%s",
                        reason,
                        self._lines.omitted(),
                    )
                self._is_awaited = True
                self._wake()
                time.sleep(RETRY_SECONDS)


def _nobody() -> None:
    """Where there is one thread only."""
