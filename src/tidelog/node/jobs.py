"""Tracks the jobs under way. Each job has a token and a callback for its result.

The result of a cancelled job is dropped. At most `WAITING_LIMIT` jobs of `Work.COMPUTE` are under
way at a time, because clients can request COMPUTE jobs. Callers start at most one fsync per log at
a time.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar, NamedTuple, TypeVar

from tidelog.model.disk import File
from tidelog.model.effects import RunJob
from tidelog.model.events import Ran
from tidelog.model.jobs import Job, JobFailed, Steps, TooManyJobs, Work, in_one_step
from tidelog.model.outbound import Cancel, Outbound, Run
from tidelog.node.clock import Clock
from tidelog.node.requests.parking import PARKED, Parked, Resume

WAITING_LIMIT = 1_000

T = TypeVar("T")


@dataclass(slots=True)
class SyncFiles:
    """Syncs these files in one step."""

    work: ClassVar[Work] = Work.FLUSH
    files: tuple[File, ...]

    def run(self) -> Steps[None]:
        return in_one_step(self._sync)

    def _sync(self) -> None:
        for file in self.files:
            file.sync()


class _Waiting(NamedTuple):
    work: Work
    done: Callable[[Any], None]
    failed: Callable[[Exception], None]


class Jobs:
    def __init__(self, emit: Callable[[Outbound], None], clock: Clock) -> None:
        self._emit = emit
        self._clock = clock
        self._timers = clock.timers
        self._tokens = count(1)
        self._waiting: dict[int, _Waiting] = {}
        self._computing = 0

    def start(
        self, job: Job[T], done: Callable[[T], None], failed: Callable[[Exception], None]
    ) -> int:
        """Run a job off the node's thread; returns its token.

        `done` or `failed` is called in a later event.
        """
        token = next(self._tokens)
        self._waiting[token] = _Waiting(job.work, done, failed)
        if job.work is Work.COMPUTE:
            self._computing += 1
            if self._computing > WAITING_LIMIT:
                refused = Ran(token, None, TooManyJobs(f"{WAITING_LIMIT} jobs wait already"))
                self._timers.at(self._clock.now, lambda: self.ended(refused))
                return token
        self._emit(Run(token, job))
        return token

    def cancel(self, token: int) -> None:
        """Drop the job's result. If the job has ended, do nothing."""
        if self._forget(token) is not None:
            self._emit(Cancel(token))

    def ended(self, event: Ran) -> None:
        waiting = self._forget(event.token)
        if waiting is None:
            return  # cancelled just before it ended
        if event.error is None:
            waiting.done(event.value)
        else:
            waiting.failed(event.error)

    def sync(
        self, files: tuple[File, ...], done: Callable[[], None], failed: Callable[[str], None]
    ) -> None:
        """Sync the files off the node's thread, then call `done` or `failed`."""
        # A failed fsync is not retried, because the content of the disk is unknown until recovery
        # has read it.
        self.start(
            SyncFiles(files),
            lambda _: done(),
            lambda error: failed(f"fsync failed: {error}"),
        )

    def run(self, effect: RunJob, resume: Resume) -> Parked:
        """Run a job for a request handler, which waits for the result."""
        self.start(effect.job, resume, lambda error: resume(JobFailed(error)))
        return PARKED

    def _forget(self, token: int) -> _Waiting | None:
        waiting = self._waiting.pop(token, None)
        if waiting is not None and waiting.work is Work.COMPUTE:
            self._computing -= 1
        return waiting
