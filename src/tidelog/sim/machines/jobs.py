"""The jobs of a simulated machine. Jobs take simulated time, so a crash can occur between steps."""

from collections.abc import Callable
from typing import Any

from tidelog.model.dice import Dice
from tidelog.model.events import Ran
from tidelog.model.ids import Millis
from tidelog.model.jobs import Work
from tidelog.model.outbound import Run
from tidelog.sim.machines.world import World

JOB_MS = 8
"""The maximum duration of a job with one step, on a healthy machine."""
STEP_MS = 4
"""The maximum time between two steps of a job."""

When = Callable[[Callable[[], None]], None]


class SimJobs:
    """The unfinished jobs of one process.

    `when_running` delays an action while the process is paused. `answer` delivers the result of a
    job.
    """

    def __init__(
        self, world: World, dice: Dice, when_running: When, answer: Callable[[Ran], None]
    ) -> None:
        self._world = world
        self._dice = dice
        self._when_running = when_running
        self._answer = answer
        self._tasks: dict[int, _Task] = {}

    def __len__(self) -> int:
        return len(self._tasks)

    def count(self, kind: type) -> int:
        """The number of running jobs of this kind."""
        return sum(isinstance(task.run.job, kind) for task in self._tasks.values())

    def start(self, run: Run, slower_by: Millis) -> None:
        """Start a job. Its minimum duration and the time of its first step are random."""
        takes = 1 + self._dice.below(JOB_MS + slower_by)
        task = self._tasks[run.token] = _Task(run)
        self._world.after(self._dice.below(takes), lambda: self._go_on(task))
        self._world.after(takes, lambda: self._due(task))

    def cancel(self, token: int) -> None:
        task = self._tasks.pop(token, None)
        if task is not None:
            task.steps.close()

    def end(self) -> None:
        """Drop all unfinished jobs, because the process has ended."""
        tasks, self._tasks = self._tasks, {}
        for task in tasks.values():
            task.steps.close()

    def _go_on(self, task: "_Task") -> None:
        if task.run.job.work is Work.FLUSH:
            self._step(task)  # the kernel completes an fsync even if the process is paused
        else:
            self._when_running(lambda: self._step(task))

    def _step(self, task: "_Task") -> None:
        if not self._is_under_way(task):
            return
        try:
            next(task.steps)
        except StopIteration as done:
            task.end(done.value, None)
        except OSError as failure:
            task.end(None, failure)
        else:
            pause = 1 + self._dice.below(STEP_MS)
            self._world.after(pause, lambda: self._go_on(task))
        if task.has_ended and task.is_due:
            self._due(task)

    def _due(self, task: "_Task") -> None:
        task.is_due = True
        if self._is_under_way(task) and task.has_ended:
            del self._tasks[task.run.token]
            ran = Ran(task.run.token, task.value, task.error)
            self._when_running(lambda: self._answer(ran))

    def _is_under_way(self, task: "_Task") -> bool:
        return self._tasks.get(task.run.token) is task


class _Task:
    __slots__ = ("error", "has_ended", "is_due", "run", "steps", "value")

    def __init__(self, run: Run) -> None:
        self.run = run
        self.steps = run.job.run()
        self.value: Any = None
        self.error: Exception | None = None
        self.has_ended = False
        self.is_due = False

    def end(self, value: Any, error: Exception | None) -> None:
        self.value, self.error, self.has_ended = value, error, True
