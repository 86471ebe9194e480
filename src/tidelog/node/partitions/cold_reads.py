"""Reads bytes that are not in the page cache, in jobs, while the requests for them wait.

The node's thread reads a log only as far as its bytes are cached. At the first byte that is not
cached, the node starts a job that reads a window of the file, and tries again when the job ends.
The job only fills the page cache and returns nothing. So if the log was truncated, rolled or
deleted in the meantime, there is no stale result to discard.

Invariant: at most `JOBS` windows are read at a time. A connection waits for at most
`WINDOWS_PER_CONNECTION` windows.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, TypeAlias

from tidelog.model.disk import File, FileSlice
from tidelog.model.ids import ConnId
from tidelog.model.jobs import Steps, Work
from tidelog.node.jobs import Jobs

WINDOW = 1 << 20
"""The number of bytes that one job reads, starting at a multiple of this number."""
STEP = 1 << 18
JOBS = 16
WINDOWS_PER_CONNECTION = 4

Waiter: TypeAlias = Callable[[], None]
_Key: TypeAlias = tuple[File, int]


@dataclass(slots=True)
class ReadIntoCache:
    """Reads a range of a file, so that the next read of it does not wait for the disk."""

    work: ClassVar[Work] = Work.READ
    part: FileSlice

    def run(self) -> Steps[None]:
        file, position, length = self.part
        for start in range(position, position + length, STEP):
            file.read(start, STEP)
            yield


@dataclass(slots=True)
class _Window:
    waiters: dict[Waiter, ConnId] = field(default_factory=dict)
    token: int | None = None
    """The token of the job; None until the job starts."""


class ColdReads:
    def __init__(self, jobs: Jobs) -> None:
        self._jobs = jobs
        self._windows: dict[_Key, _Window] = {}
        """The windows that are being read, and the windows that wait for their turn."""
        self._queue: deque[_Key] = deque()
        self._of: dict[ConnId, dict[_Key, None]] = {}
        self._just_read: _Key | None = None
        """The window whose waiters are being called."""

    def begin(self, part: FileSlice, conn: ConnId, waiter: Waiter) -> None:
        """Read the start of this range; calls `waiter` once afterwards, in a later event.

        If the connection already waits for `WINDOWS_PER_CONNECTION` windows, `waiter` is called
        after one of those windows instead.
        """
        key = part.file, part.position // WINDOW
        own = self._of.setdefault(conn, {})
        if key not in own and len(own) == WINDOWS_PER_CONNECTION:
            key = next(iter(own))
        own[key] = None
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = _Window()
            self._queue.append(key)
            self._start_next()
        window.waiters[waiter] = conn

    def was_just_read(self, part: FileSlice) -> bool:
        """Whether the job that has just ended has read the start of this range.

        If so, the kernel has already dropped the bytes again. The caller must therefore wait for
        the disk, because another job might not help either.
        """
        return self._just_read == (part.file, part.position // WINDOW)

    def connection_lost(self, conn: ConnId) -> None:
        """Drop the waiters of a connection, and cancel jobs that no other connection waits for."""
        for key in self._of.pop(conn, ()):
            window = self._windows[key]
            window.waiters = {w: other for w, other in window.waiters.items() if other != conn}
            if not window.waiters:
                del self._windows[key]
                if window.token is None:
                    self._queue.remove(key)
                else:
                    self._jobs.cancel(window.token)
        self._start_next()

    def __len__(self) -> int:
        """The number of windows that are being read or wait for their turn."""
        return len(self._windows)

    def _start_next(self) -> None:
        while self._queue and len(self._windows) - len(self._queue) < JOBS:
            key = self._queue.popleft()
            file, number = key
            job = ReadIntoCache(FileSlice(file, number * WINDOW, WINDOW))
            # If the job fails, the next read of these bytes gets the same error, and its caller
            # handles the error.
            ended = partial(self._ended, key)
            self._windows[key].token = self._jobs.start(job, ended, ended)

    def _ended(self, key: _Key, _: Exception | None) -> None:
        window = self._windows.pop(key)
        for conn in dict.fromkeys(window.waiters.values()):
            own = self._of[conn]
            del own[key]
            if not own:
                del self._of[conn]
        self._start_next()
        self._just_read = key
        for waiter in window.waiters:
            waiter()
        self._just_read = None
