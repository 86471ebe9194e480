"""Jobs in threads: each job has one result, even if it fails, and no kind of job delays another."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tidelog.model.events import Ran
from tidelog.model.jobs import Steps, Work, in_one_step
from tidelog.model.outbound import Run
from tidelog.runtime.jobs import JobThreads


@dataclass(slots=True)
class Call:
    """A job of one step."""

    action: Callable[[], object]
    work: Work = Work.COMPUTE

    def run(self) -> Steps[object]:
        return in_one_step(self.action)


@dataclass(slots=True)
class Count:
    """A job of several steps, each of which waits for the gate."""

    gate: threading.Semaphore
    begun: threading.Semaphore
    steps: list[int]
    work: Work = Work.COMPUTE

    def run(self) -> Steps[int]:
        for number in range(3):
            self.begun.release()
            self.gate.acquire()
            self.steps.append(number)
            yield
        return len(self.steps)


class JobThreadsHost:
    def __init__(self) -> None:
        self.answers: list[Ran] = []
        self.rung = threading.Semaphore(0)
        self.jobs = JobThreads(self.rung.release, self.answers.append)

    def await_one(self) -> Ran | None:
        """The result of the next job that ends; None if the job was cancelled."""
        before = len(self.answers)
        self.rung.acquire()
        self.jobs.finish()
        return self.answers[-1] if len(self.answers) > before else None


@contextmanager
def threads_host() -> Iterator[JobThreadsHost]:
    one = JobThreadsHost()
    try:
        yield one
    finally:
        one.jobs.stop()


def test_a_job_runs_in_another_thread_and_its_result_is_answered() -> None:
    with threads_host() as host:
        host.jobs.start(Run(7, Call(threading.get_ident)))
        answer = host.await_one()
    assert answer is not None
    assert (answer.token, answer.error) == (7, None)
    assert answer.value != threading.get_ident()


def test_what_waits_for_the_disk_does_not_wait_for_what_computes() -> None:
    with threads_host() as host:
        gate, begun = threading.Semaphore(0), threading.Semaphore(0)
        host.jobs.start(Run(1, Count(gate, begun, [])))
        begun.acquire()
        host.jobs.start(Run(2, Call(lambda: "synced", Work.FLUSH)))
        assert host.await_one() == Ran(2, "synced", None)
        gate.release(3)
        assert host.await_one() == Ran(1, 3, None)


def test_a_bug_in_a_job_is_logged_and_answered(caplog: pytest.LogCaptureFixture) -> None:
    def bug() -> None:
        raise ZeroDivisionError("a bug")

    with threads_host() as host:
        host.jobs.start(Run(1, Call(bug)))
        answer = host.await_one()
        assert answer is not None
        assert isinstance(answer.error, ZeroDivisionError)
        assert "a background job has failed: Call" in caplog.text
        assert "a bug" in caplog.text
        host.jobs.start(Run(2, Call(lambda: "well")))
        assert host.await_one() == Ran(2, "well", None)


def test_an_error_of_the_disk_is_answered_and_no_bug(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise OSError(5, "Input/output error")

    with threads_host() as host:
        host.jobs.start(Run(1, Call(fail)))
        answer = host.await_one()
    assert answer is not None
    assert isinstance(answer.error, OSError)
    assert not caplog.text


def test_a_cancelled_job_stops_at_its_next_step_and_is_not_answered() -> None:
    with threads_host() as host:
        gate, begun = threading.Semaphore(0), threading.Semaphore(0)
        running, waiting = Count(gate, begun, []), Count(gate, begun, [])
        host.jobs.start(Run(1, running))
        host.jobs.start(Run(2, waiting))
        begun.acquire()
        host.jobs.cancel(1)
        host.jobs.cancel(2)
        host.jobs.cancel(3)
        gate.release()
        assert host.await_one() is None
        assert host.await_one() is None
    assert (running.steps, waiting.steps) == ([0], [])
