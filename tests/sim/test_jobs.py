"""A job takes simulated time, and its process can die before, during and after the job."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tidelog.model.disk import File
from tidelog.model.events import Ran
from tidelog.model.jobs import Steps, Work
from tidelog.model.outbound import Run
from tidelog.sim.machines.disk import SimDisk
from tidelog.sim.machines.jobs import SimJobs
from tidelog.sim.machines.world import World

STEPS = 4
LONG_MS = 1_000


@dataclass(slots=True)
class Write:
    """A job that writes a byte in each step."""

    file: File
    work: Work = Work.COMPUTE

    def run(self) -> Steps[int]:
        for number in range(STEPS):
            if number:
                yield
            self.file.append((b"x",))
        return self.file.size


class Machine:
    def __init__(self, seed: int) -> None:
        self.world = World(seed)
        self.file = SimDisk().open("file")
        self.answers: list[Ran] = []
        self.is_paused = False
        self.missed: list[Callable[[], None]] = []
        self.jobs = SimJobs(self.world, self.world.dice, self.when_running, self.answers.append)

    def when_running(self, action: Callable[[], None]) -> None:
        if self.is_paused:
            self.missed.append(action)
        else:
            action()

    def resume(self) -> None:
        self.is_paused = False
        for action in self.missed:
            action()


def test_a_job_ends_with_its_result_after_some_time() -> None:
    machine = Machine(seed=1)
    machine.jobs.start(Run(7, Write(machine.file)), 0)
    assert machine.file.size == 0
    machine.world.run(LONG_MS)
    assert machine.answers == [Ran(7, STEPS, None)]
    assert len(machine.jobs) == 0


def test_a_crash_falls_before_within_and_after_a_job_and_nobody_hears_of_it() -> None:
    left: set[int] = set()
    for seed in range(50):
        machine = Machine(seed)
        machine.jobs.start(Run(1, Write(machine.file)), 0)
        machine.world.run(1 + machine.world.dice.below(12))
        if machine.answers:
            continue
        size = machine.file.size
        left.add(size)
        machine.jobs.end()
        machine.world.run(LONG_MS)
        assert machine.file.size == size
        assert machine.answers == []
        assert len(machine.jobs) == 0
    assert left >= {0, 1, 2, 3}, "at every step, and before the first"


def test_the_same_seed_kills_a_job_at_the_same_step() -> None:
    def size_at_crash(seed: int) -> int:
        machine = Machine(seed)
        machine.jobs.start(Run(1, Write(machine.file)), 0)
        machine.world.run(6)
        machine.jobs.end()
        return machine.file.size

    sizes = [size_at_crash(seed) for seed in range(20)]
    assert sizes == [size_at_crash(seed) for seed in range(20)]
    assert len(set(sizes)) > 1


def test_a_cancelled_job_goes_no_further_and_is_not_answered() -> None:
    machine = Machine(seed=3)
    machine.jobs.start(Run(1, Write(machine.file)), 0)
    assert machine.world.run_until(lambda: machine.file.size > 0, LONG_MS)
    size = machine.file.size
    machine.jobs.cancel(1)
    machine.jobs.cancel(2)
    machine.world.run(LONG_MS)
    assert (machine.file.size, machine.answers) == (size, [])


def test_a_paused_process_does_not_compute_but_its_fsync_goes_on() -> None:
    machine = Machine(seed=4)
    other = SimDisk().open("file")
    machine.jobs.start(Run(1, Write(machine.file)), 0)
    machine.jobs.start(Run(2, Write(other, Work.FLUSH)), 0)
    machine.is_paused = True
    machine.world.run(LONG_MS)
    assert (machine.file.size, other.size, machine.answers) == (0, STEPS, [])
    machine.resume()
    machine.world.run(LONG_MS)
    assert sorted(ran.token for ran in machine.answers) == [1, 2]


def test_an_error_of_the_disk_is_answered_and_a_bug_ends_the_run() -> None:
    class Failing(Write):
        error: Exception = OSError(5, "Input/output error")

        def run(self) -> Steps[int]:
            yield
            raise self.error

    class Buggy(Failing):
        error = ZeroDivisionError("a bug")

    machine = Machine(seed=5)
    machine.jobs.start(Run(1, Failing(machine.file)), 0)
    machine.world.run(LONG_MS)
    assert [ran.error for ran in machine.answers] == [Failing.error]
    machine.jobs.start(Run(2, Buggy(machine.file)), 0)
    with pytest.raises(ZeroDivisionError):
        machine.world.run(LONG_MS)
