"""Runs the node's jobs in threads: one pool per kind of work, so that no kind delays another."""

import logging
import time
from collections.abc import Callable
from typing import Any

from tidelog.model.events import Ran
from tidelog.model.jobs import AnyJob, Work
from tidelog.model.outbound import Run
from tidelog.runtime.workers import Workers

THREADS = {Work.FLUSH: 4, Work.READ: 4, Work.COMPUTE: 1, Work.LOAD: 1, Work.CLEAN: 1}
"""The number of threads per kind of work. COMPUTE, LOAD and CLEAN have one thread, because a second
thread would only take interpreter time from the node.
"""

log = logging.getLogger(__name__)


class JobThreads:
    """Runs jobs. For each job that is not cancelled, delivers one `Ran` in the loop's thread."""

    def __init__(self, wake: Callable[[], None], answer: Callable[[Ran], None]) -> None:
        self._answer = answer
        self._pools = {work: Workers(threads, wake) for work, threads in THREADS.items()}
        self._tasks: dict[int, _Task] = {}

    def start(self, run: Run) -> None:
        task = self._tasks[run.token] = _Task(run.job)
        self._pools[run.job.work].submit(
            task.run, lambda error: self._ended(run.token, task, error)
        )

    def cancel(self, token: int) -> None:
        task = self._tasks.get(token)
        if task is not None:
            task.is_cancelled = True

    def finish(self) -> None:
        """Deliver the result of every job that has ended since the last call."""
        for pool in self._pools.values():
            pool.finish()

    def stop(self) -> None:
        for task in self._tasks.values():
            task.is_cancelled = True
        for pool in self._pools.values():
            pool.stop()

    def _ended(self, token: int, task: "_Task", error: Exception | None) -> None:
        del self._tasks[token]
        if error is not None and not isinstance(error, OSError):
            log.error("a background job has failed: %s", type(task.job).__name__, exc_info=error)
        if not task.is_cancelled:
            self._answer(Ran(token, task.value, error))


class _Task:
    """One job in a worker thread."""

    __slots__ = ("is_cancelled", "job", "value")

    def __init__(self, job: AnyJob) -> None:
        self.job = job
        self.value: Any = None
        self.is_cancelled = False

    def run(self) -> None:
        if self.is_cancelled:
            return
        steps = self.job.run()
        while True:
            try:
                next(steps)
            except StopIteration as done:
                self.value = done.value
                return
            if self.is_cancelled:
                steps.close()
                return
            time.sleep(0)  # let the node's thread run in between
