"""Threads for blocking work: fsync, and reads of files that are not in the page cache.

The loop's thread gets the results in the order in which the jobs end, so a slow job does not delay
the result of another job.
"""

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import TypeAlias

Job: TypeAlias = Callable[[], None]
Then: TypeAlias = Callable[[Exception | None], None]
"""Called in the loop's thread once the job has ended, with the job's error if it failed."""


class Workers:
    """A small pool; a worker calls `wake` each time a job has ended."""

    def __init__(self, threads: int, wake: Callable[[], None]) -> None:
        self._limit = threads
        self._wake = wake
        self._jobs: SimpleQueue[tuple[Job, Then] | None] = SimpleQueue()
        self._ended: deque[tuple[Then, Exception | None]] = deque()
        self._threads: list[Thread] = []

    def submit(self, job: Job, then: Then) -> None:
        if len(self._threads) < self._limit:
            # Use daemon threads, because a hanging disk must not keep the process from ending.
            thread = Thread(target=self._work, daemon=True)
            try:
                thread.start()
            except RuntimeError:
                # No new thread can start. If a worker is running, it does the job. Otherwise the
                # caller does the job.
                if not self._threads:
                    self._do(job, then)
                    return
            else:
                self._threads.append(thread)
        self._jobs.put((job, then))

    def finish(self) -> None:
        """Call `then` for every job that has ended since the last call."""
        for _ in range(len(self._ended)):
            then, error = self._ended.popleft()
            then(error)

    def stop(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while (work := self._jobs.get()) is not None:
            self._do(*work)
            # Drop the job, because an idle worker must not keep the files of its last job open.
            work = None

    def _do(self, job: Job, then: Then) -> None:
        error: Exception | None = None
        try:
            job()
        except Exception as failure:  # an error must not end the thread
            error = failure
        self._ended.append((then, error))
        self._wake()
