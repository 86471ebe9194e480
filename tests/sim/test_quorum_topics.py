"""Complete runs whose topics are under the quorum rule: none violates an invariant (ADR 27)."""

import pytest

from tidelog.sim.runs.campaign import one
from tidelog.sim.runs.plan import WORKLOADS, Plan
from tidelog.sim.runs.report import failure_report

SEEDS, AT_A_TIME = 20, 5
SECONDS = 30


def check(plan: Plan) -> None:
    result = one(plan)
    assert result.failure is None, "\n".join(failure_report(plan))


@pytest.mark.parametrize("first", range(0, SEEDS, AT_A_TIME))
def test_f82_f83_f84_within_the_budget_no_invariant_breaks_under_the_quorum_rule(
    first: int,
) -> None:
    for seed in range(first, first + AT_A_TIME):
        check(Plan(seed, seconds=SECONDS, commit_rule="quorum"))


def test_topics_under_both_rules_share_a_cluster() -> None:
    for seed in range(100, 100 + AT_A_TIME):
        check(Plan(seed, seconds=SECONDS, commit_rule="mixed"))


def test_beyond_the_budget_every_loss_is_reported_under_the_quorum_rule() -> None:
    for seed in range(AT_A_TIME):
        check(Plan(seed, seconds=SECONDS, commit_rule="quorum", beyond=True))


def test_without_faults_every_write_is_acknowledged_and_read() -> None:
    steady = WORKLOADS["steady"]
    result = one(Plan(1, nodes=3, seconds=20, faults=(), workload=steady, commit_rule="quorum"))
    assert result.failure is None, result.failure
    assert result.acknowledged > 0
    assert result.read > 0
