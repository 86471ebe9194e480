"""Members of a group with the consumer protocol, under random faults of nodes, links and disks."""

from itertools import count

import pytest

from tidelog.sim.mutants import MUTANTS
from tidelog.sim.runs.campaign import one
from tidelog.sim.runs.outcome import Failure
from tidelog.sim.runs.plan import WORKLOADS, Plan
from tidelog.sim.runs.report import failure_report
from tidelog.sim.runs.run import simulate

MEMBERS = WORKLOADS["consumer-group"]
MOST_SEEDS = 40
CAUGHT_BY = {
    "any-member-epoch": {"committed offsets never go back"},
    "assigns-before-revocation": {
        "a partition has one owner at a time",
        "a partition has one owner in a member epoch",
    },
}


@pytest.mark.parametrize("first", range(0, 8, 4))
def test_f67_a_partition_has_one_owner_and_no_member_is_stuck(first: int) -> None:
    """F66 and F69 as well: committed offsets never go back, and every partition gets an owner."""
    for seed in range(first, first + 4):
        plan = Plan(seed, seconds=30, workload=MEMBERS)
        assert one(plan).failure is None, "\n".join(failure_report(plan))


@pytest.mark.parametrize("mutant", CAUGHT_BY)
def test_random_faults_find_a_coordinator_with_a_wrong_rule(mutant: str) -> None:
    failures: list[Failure] = []
    for seed in count():
        assert seed < MOST_SEEDS, f"{mutant} is not found"
        plan = Plan(seed, seconds=30, workload=MEMBERS, rules=MUTANTS[mutant].rules())
        failure = simulate(plan).failure
        if failure is not None:
            failures.append(failure)
            break
    assert {failure.invariant for failure in failures} <= CAUGHT_BY[mutant]
