"""A node's jobs: whoever asked gets the result, once, or nobody when it was called off."""

from dataclasses import dataclass
from typing import Any

from tidelog.model.effects import RunJob
from tidelog.model.events import Ran
from tidelog.model.jobs import JobFailed, Steps, TooManyJobs, Work, in_one_step
from tidelog.model.outbound import Cancel, Outbound, Run
from tidelog.node.clock import Clock
from tidelog.node.jobs import WAITING_LIMIT, Jobs
from tidelog.node.requests.parking import PARKED
from tidelog.node.timers import Timers


@dataclass(slots=True)
class Nothing:
    work: Work = Work.COMPUTE

    def run(self) -> Steps[None]:
        return in_one_step(lambda: None)


class Desk:
    def __init__(self) -> None:
        self.outbound: list[Outbound] = []
        self.timers = Timers()
        self.jobs = Jobs(self.outbound.append, Clock(100), self.timers)
        self.told: list[Any] = []

    def start(self, work: Work = Work.COMPUTE) -> int:
        return self.jobs.start(Nothing(work), self.told.append, self.told.append)


def test_the_result_goes_to_whoever_asked() -> None:
    desk = Desk()
    first, second = desk.start(), desk.start()
    assert desk.outbound == [Run(first, Nothing()), Run(second, Nothing())]
    failure = OSError("bad sector")
    desk.jobs.ended(Ran(second, None, failure))
    desk.jobs.ended(Ran(first, "found", None))
    assert desk.told == [failure, "found"]


def test_a_job_that_was_called_off_is_answered_to_nobody() -> None:
    desk = Desk()
    token = desk.start()
    desk.jobs.cancel(token)
    desk.jobs.cancel(token)
    assert desk.outbound[1:] == [Cancel(token)]
    desk.jobs.ended(Ran(token, "too late", None))
    assert desk.told == []


def test_more_computing_than_a_node_takes_on_is_refused_later_and_fsync_never() -> None:
    desk = Desk()
    tokens = [desk.start() for _ in range(WAITING_LIMIT + 1)]
    desk.start(Work.FLUSH)
    assert len(desk.outbound) == WAITING_LIMIT + 1
    assert desk.told == [], "never while it asks"
    desk.timers.fire(100)
    assert [type(one) for one in desk.told] == [TooManyJobs]
    desk.jobs.ended(Ran(tokens[0], "done", None))
    desk.start()
    assert len(desk.outbound) == WAITING_LIMIT + 2
    desk.timers.fire(100)
    assert desk.told[1:] == ["done"]


def test_a_handler_is_parked_until_its_job_has_ended() -> None:
    desk = Desk()
    assert desk.jobs.run(RunJob(Nothing()), desk.told.append) is PARKED
    assert desk.jobs.run(RunJob(Nothing()), desk.told.append) is PARKED
    failure = OSError("bad sector")
    desk.jobs.ended(Ran(1, "found", None))
    desk.jobs.ended(Ran(2, None, failure))
    assert desk.told == ["found", JobFailed(failure)]
