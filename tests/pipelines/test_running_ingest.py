"""The handle of an ingest in the background, without Spark."""

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tidelog_pipelines.api import Ingested, JobFailed, RunningIngest
from tidelog_pipelines.streams import Caller

NOTHING = Ingested(0, 0, 0, {}, 0.0, {})
QUERY: Any = object()
"""Takes the place of Spark's query."""


def running(run: Callable[[Caller], bool]) -> RunningIngest:
    return RunningIngest(run, lambda: NOTHING, report=lambda line: None)


def until_stopped(caller: Caller) -> bool:
    caller.started(QUERY)
    assert caller.stop is not None
    caller.stop.wait()
    return False


def failing(caller: Caller) -> bool:
    until_stopped(caller)
    raise JobFailed("the disk is full.")


def test_the_end_of_a_block_stops_the_job() -> None:
    with running(until_stopped) as job:
        assert (job.is_active, job.query) == (True, QUERY)
    assert not job.is_active
    assert (job.wait(), job.stop()) == (True, NOTHING)


def test_the_end_of_a_block_raises_the_failure_of_the_job() -> None:
    with pytest.raises(JobFailed, match="the disk is full"), running(failing):
        pass


def test_an_error_of_the_block_is_not_replaced_by_the_failure_of_the_job() -> None:
    with pytest.raises(ZeroDivisionError), running(failing):
        raise ZeroDivisionError


def test_a_failure_that_the_block_has_handled_is_not_raised_again() -> None:
    with running(failing) as job, pytest.raises(JobFailed, match="the disk is full"):
        job.stop()


def test_a_job_that_fails_before_its_query_starts_is_not_returned() -> None:
    def refused(caller: Caller) -> bool:
        raise JobFailed("no broker answers.")

    with pytest.raises(JobFailed, match="no broker answers"):
        running(refused)


def test_an_interrupt_before_the_query_starts_stops_the_job() -> None:
    was_stopped: list[bool] = []

    def slow(caller: Caller) -> bool:
        main_thread = threading.main_thread().ident
        assert caller.stop is not None
        assert main_thread is not None
        signal.pthread_kill(main_thread, signal.SIGINT)
        was_stopped.append(caller.stop.wait(60))
        return False

    with pytest.raises(KeyboardInterrupt):
        running(slow)
    assert was_stopped == [True]
