"""Threads for what blocks: fsync. Each result comes back to the loop's own thread.

A `Flushed` is given only after its own fsync has ended, in the order in which they end: a slow disk
holds up nobody else's flush.
"""

import logging
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread

from tidelog.model.events import Flushed
from tidelog.model.outbound import Flush

THREADS = 4

log = logging.getLogger(__name__)


class Workers:
    """A small pool; `wake` is called from a worker each time `take` has something new to give."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._asked: SimpleQueue[Flush | None] = SimpleQueue()
        self._done: deque[Flushed] = deque()
        self._threads: list[Thread] = []

    def flush(self, request: Flush) -> None:
        if len(self._threads) < THREADS:
            # Daemons, so that a disk that hangs cannot keep the process from ending.
            self._threads.append(Thread(target=self._work, name="flush", daemon=True))
            self._threads[-1].start()
        self._asked.put(request)

    def take(self) -> list[Flushed]:
        """The flushes that have ended since the last call."""
        return [self._done.popleft() for _ in range(len(self._done))]

    def stop(self) -> None:
        for _ in self._threads:
            self._asked.put(None)

    def _work(self) -> None:
        while (request := self._asked.get()) is not None:
            error = None
            try:
                for file in request.files:
                    file.sync()
            except Exception as failure:  # a thread that died would leave its flush unanswered
                log.error("fsync failed: %s", failure)
                error = str(failure)
            self._done.append(Flushed(request.token, error))
            self._wake()
