"""Complete runs with several seeds, as in `tidelog simulate`: none violates an invariant."""

import pytest

from tidelog.sim.faults.faults import KINDS
from tidelog.sim.runs.campaign import one
from tidelog.sim.runs.plan import WORKLOADS, Plan
from tidelog.sim.runs.report import failure_report

SEEDS, AT_A_TIME = 60, 5
SECONDS = 30


def check(plan: Plan) -> None:
    result = one(plan)
    assert result.failure is None, "\n".join(failure_report(plan))


@pytest.mark.parametrize("first", range(0, SEEDS, AT_A_TIME))
def test_within_the_budget_no_invariant_breaks(first: int) -> None:
    for seed in range(first, first + AT_A_TIME):
        check(Plan(seed, seconds=SECONDS))


@pytest.mark.parametrize("first", range(0, 10, AT_A_TIME))
def test_beyond_the_budget_every_loss_is_reported(first: int) -> None:
    for seed in range(first, first + AT_A_TIME):
        check(Plan(seed, seconds=SECONDS, beyond=True))


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_fault_alone_breaks_nothing(kind: str) -> None:
    plan = Plan(len(kind), nodes=3, seconds=SECONDS, faults=(kind,))
    check(plan)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_each_workload_gets_done_where_nothing_goes_wrong(workload: str) -> None:
    result = one(Plan(1, nodes=3, seconds=20, faults=(), workload=WORKLOADS[workload]))
    assert result.failure is None, result.failure
    assert result.acknowledged > 0
    assert result.read > 0
    assert not result.counts.faults
