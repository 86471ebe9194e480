"""A run depends only on its seed, its fault schedule can be edited, and it reports failures."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tidelog.model.ids import TopicPartition
from tidelog.sim.faults.faults import KINDS, LAST_FOLLOWER, NEXT_LEADER, Fault
from tidelog.sim.mutants import MUTANTS
from tidelog.sim.runs.campaign import CampaignSummary, one, run_all
from tidelog.sim.runs.drawing import filled_in
from tidelog.sim.runs.plan import MAX_NODES, MIN_NODES, WORKLOADS, Plan, TopicPlan
from tidelog.sim.runs.recorder import Recorder
from tidelog.sim.runs.report import failure_report, replay_command
from tidelog.sim.runs.run import simulate
from tidelog.sim.runs.shrinking import only, shrink

ROOT = Path(__file__).parents[2]
BAD = MUTANTS["shrinks-alone"]


def mutated(seed: int = 0, seconds: int = 30) -> Plan:
    return Plan(seed, seconds=seconds, rules=BAD.rules())


def test_the_same_plan_gives_the_same_trace_and_another_seed_another() -> None:
    plan = Plan(7, seconds=10)
    first, again, other = simulate(plan), simulate(plan), simulate(replace(plan, seed=8))

    assert first.trace_hash == again.trace_hash
    assert first.counts == again.counts
    assert first.history == again.history
    assert other.trace_hash != first.trace_hash


def test_watching_a_run_does_not_change_it() -> None:
    plan, recorder = Plan(7, seconds=10), Recorder()

    watched = simulate(plan, recorder)

    assert watched.trace_hash == simulate(plan).trace_hash
    assert recorder.partitions
    assert recorder.marks


def test_the_trace_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "import logging; logging.disable(50);"
        "from tidelog.sim.runs.plan import Plan; from tidelog.sim.runs.run import simulate;"
        "print(simulate(Plan(16, seconds=20)).trace_hash)"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    traces = [process.communicate()[0].strip() for process in processes]
    assert traces == [simulate(Plan(16, seconds=20)).trace_hash] * 2


def test_everything_is_drawn_from_the_seed() -> None:
    plans = [filled_in(Plan(seed)) for seed in range(200)]

    assert {plan.nodes for plan in plans} == set(range(MIN_NODES, MAX_NODES + 1))
    assert {plan.workload.name for plan in plans if plan.workload} == set(WORKLOADS)
    struck = {fault.kind for plan in plans for fault in plan.schedule or ()}
    assert struck == set(KINDS)
    assert filled_in(plans[3]) == plans[3]


def test_no_drawn_fault_names_a_machine_twice() -> None:
    schedules = [filled_in(Plan(seed)).schedule or () for seed in range(100)]

    assert all(len(set(one.nodes)) == len(one.nodes) for some in schedules for one in some)


def test_a_follower_that_a_recipe_means_is_found_when_it_strikes() -> None:
    schedule = (
        Fault(2_000, "kill", (NEXT_LEADER,), 500),
        Fault(6_000, "kill", (LAST_FOLLOWER,), 500),
    )
    topics = (TopicPlan("orders", replicas=4),)
    plan = Plan(
        1, nodes=5, seconds=8, schedule=schedule, topics=topics, workload=WORKLOADS["light"]
    )
    recorder = Recorder()

    outcome = simulate(plan, recorder)

    assert outcome.failure is None
    struck = [mark for mark in recorder.marks if mark.what.startswith("kill")]
    placed = recorder.partitions[TopicPartition("orders", 0)]
    for mark in struck:
        leader = [one.leader for one in placed if one.at_ms <= mark.at_ms][-1]
        assert mark.nodes != (leader,)
    assert len({mark.nodes for mark in struck}) == 2


def test_a_fault_struck_as_it_was_scheduled_and_is_counted() -> None:
    schedule = (Fault(2_000, "kill", (2,), 1_000), Fault(4_000, "isolate", (3,), 500))
    plan = Plan(1, nodes=3, seconds=8, schedule=schedule, workload=WORKLOADS["light"])

    outcome = simulate(plan)

    assert outcome.failure is None
    assert outcome.counts.faults == {"kill": 1, "isolate": 1}
    assert outcome.counts.simulated_ms >= 8_000


def test_the_budget_holds_back_what_is_not_promised_to_be_survived() -> None:
    """With min.insync.replicas=2, at most one replica at a time loses its unsynced records."""
    topics = (TopicPlan("orders", replicas=3, min_insync_replicas=2),)
    schedule = (
        Fault(2_000, "power-loss", (1,), 4_000),
        Fault(3_000, "power-loss", (2,), 1_000),
        Fault(3_100, "blackout", ()),
    )
    plan = Plan(
        1, nodes=3, seconds=8, schedule=schedule, topics=topics, workload=WORKLOADS["light"]
    )

    outcome = simulate(plan)

    assert outcome.failure is None
    assert outcome.counts.faults == {"power-loss": 1}
    assert outcome.counts.held_back == {"power-loss": 1, "blackout": 1}


def test_where_every_write_is_flushed_all_may_lose_power() -> None:
    topics = (TopicPlan("orders", configs=(("flush.messages", "1"),)),)
    schedule = tuple(Fault(at, "blackout", (), 500, 800) for at in (2_000, 5_000, 9_000))
    plan = Plan(
        1, nodes=3, seconds=14, schedule=schedule, topics=topics, workload=WORKLOADS["light"]
    )

    outcome = simulate(plan)

    assert outcome.failure is None
    assert outcome.counts.faults == {"blackout": 3}


def test_a_wrong_rule_is_caught_reported_and_shrunk_to_what_it_takes() -> None:
    plan = mutated()
    outcome = simulate(plan)
    assert outcome.failure is not None

    kept = shrink(plan)

    assert len(kept) < len(filled_in(plan).schedule or ())
    shrunk = only(plan, kept)
    failure = simulate(shrunk).failure
    assert failure is not None
    assert failure.invariant == outcome.failure.invariant
    lines = list(failure_report(shrunk, kept))
    assert lines[0].startswith(f"seed 0: {failure.invariant}: ")
    assert lines[-1] == f"  again: {replay_command(shrunk, kept)}"
    assert any("epoch" in line for line in lines)


def test_the_rules_are_todays_again_after_a_run_with_wrong_ones() -> None:
    assert simulate(mutated()).failure is not None
    assert simulate(Plan(0, seconds=30)).failure is None


def test_a_replay_command_names_what_the_seed_does_not_say() -> None:
    assert replay_command(Plan(7)) == "tidelog simulate --seed 7"
    plan = Plan(7, 4, 20, ("kill", "pause"), WORKLOADS["burst"], beyond=True)
    assert replay_command(plan, (3, 5)) == (
        "tidelog simulate --seed 7 --nodes 4 --seconds 20 --faults kill,pause --workload burst "
        "--beyond --only 3,5"
    )


def test_many_runs_are_counted_together_on_several_processes() -> None:
    plans = [Plan(seed, nodes=3, seconds=5) for seed in range(4)]
    alone, together = CampaignSummary(), CampaignSummary()
    for plan in plans:
        alone.add(one(plan))
    for result in run_all(iter(plans), 2):
        together.add(result)

    assert together.seeds == 4
    assert together.events == alone.events
    assert together.checks == alone.checks
    assert not together.failures
