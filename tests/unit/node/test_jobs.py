"""A node's jobs: the caller gets the result once, or nothing if the job was cancelled."""

from dataclasses import dataclass
from typing import Any

from tidelog.model.effects import RunJob
from tidelog.model.events import Ran
from tidelog.model.jobs import JobFailed, Steps, TooManyJobs, Work, in_one_step
from tidelog.model.outbound import Cancel, Outbound, Run
from tidelog.node.clock import Clock
from tidelog.node.jobs import WAITING_LIMIT, Jobs
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.parking import PARKED


@dataclass(slots=True)
class Nothing:
    work: Work = Work.COMPUTE

    def run(self) -> Steps[None]:
        return in_one_step(lambda: None)


class JobsHost:
    def __init__(self) -> None:
        self.outbound: list[Outbound] = []
        self.clock = Clock(100)
        self.jobs = Jobs(self.outbound.append, self.clock)
        self.outcomes: list[Any] = []

    def start(self, work: Work = Work.COMPUTE) -> int:
        return self.jobs.start(Nothing(work), self.outcomes.append, self.outcomes.append)


def test_the_result_goes_to_whoever_asked() -> None:
    host = JobsHost()
    first, second = host.start(), host.start()
    assert host.outbound == [Run(first, Nothing()), Run(second, Nothing())]
    failure = OSError("bad sector")
    host.jobs.ended(Ran(second, None, failure))
    host.jobs.ended(Ran(first, "found", None))
    assert host.outcomes == [failure, "found"]


def test_a_job_that_was_called_off_is_answered_to_nobody() -> None:
    host = JobsHost()
    token = host.start()
    host.jobs.cancel(token)
    host.jobs.cancel(token)
    assert host.outbound[1:] == [Cancel(token)]
    host.jobs.ended(Ran(token, "too late", None))
    assert host.outcomes == []


def test_more_computing_than_a_node_takes_on_is_refused_later_and_fsync_never() -> None:
    host = JobsHost()
    tokens = [host.start() for _ in range(WAITING_LIMIT + 1)]
    host.start(Work.FLUSH)
    assert len(host.outbound) == WAITING_LIMIT + 1
    assert host.outcomes == [], "never while it asks"
    host.clock.timers.fire(100, ReadyQueue().run)
    assert [type(one) for one in host.outcomes] == [TooManyJobs]
    host.jobs.ended(Ran(tokens[0], "done", None))
    host.start()
    assert len(host.outbound) == WAITING_LIMIT + 2
    host.clock.timers.fire(100, ReadyQueue().run)
    assert host.outcomes[1:] == ["done"]


def test_a_handler_is_parked_until_its_job_has_ended() -> None:
    host = JobsHost()
    assert host.jobs.run(RunJob(Nothing()), host.outcomes.append) is PARKED
    assert host.jobs.run(RunJob(Nothing()), host.outcomes.append) is PARKED
    failure = OSError("bad sector")
    host.jobs.ended(Ran(1, "found", None))
    host.jobs.ended(Ran(2, None, failure))
    assert host.outcomes == ["found", JobFailed(failure)]
