"""`tidelog whatif` confirms the known rules about acks and min.insync.replicas."""

import pytest

from tidelog.sim.whatif.campaign import ask_all, questions
from tidelog.sim.whatif.faults import FAULTS
from tidelog.sim.whatif.question import Question
from tidelog.sim.whatif.summary import WhatIfSummary
from tidelog.sim.whatif.trial import run_trial

RUNS = 6
SINGLE = [name for name in FAULTS if not name.startswith("all-")]


def ask(question: Question, runs: int = RUNS) -> WhatIfSummary:
    [summary] = ask_all([question], runs, 1, 0, lambda done: None)
    return summary


@pytest.mark.parametrize("fault", SINGLE)
def test_acks_all_with_two_in_sync_loses_nothing_by_faults_that_spare_one(fault: str) -> None:
    summary = ask(Question(3, 2, "all", fault), runs=3)

    assert (summary.lossy, summary.stuck) == (0, 0)


@pytest.mark.parametrize("acks", ["0", "1"])
def test_without_acks_all_a_leader_takes_records_with_it(acks: str) -> None:
    assert ask(Question(3, 2, acks, "leader-crash")).lossy
    assert ask(Question(3, 2, acks, "leader-power-loss")).lossy


def test_a_leader_cut_off_from_the_others_goes_on_taking_what_will_be_lost() -> None:
    alone, together = ask(Question(3, 2, "1", "partition")), ask(Question(3, 2, "all", "partition"))

    assert alone.lossy == RUNS
    assert alone.median_lost > 50
    assert together.lossy == 0


def test_a_power_cut_of_all_loses_what_nobody_had_synced_and_flush_prevents_it() -> None:
    lazy = ask(Question(3, 2, "all", "all-power-loss"))
    flushed = ask(Question(3, 2, "all", "all-power-loss", flush=True))

    assert lazy.lossy
    assert flushed.lossy == 0


def test_unclean_election_trades_records_for_a_leader() -> None:
    """If the only in-sync replica is down, the cluster waits for it or loses its last records."""
    clean = ask(Question(3, 1, "all", "last-in-sync"))
    unclean = ask(Question(3, 1, "all", "last-in-sync", unclean=True))

    assert clean.lossy == 0
    assert unclean.lossy
    assert unclean.median_unavailable_ms is not None
    assert clean.median_unavailable_ms is not None
    assert unclean.median_unavailable_ms < clean.median_unavailable_ms


def test_a_seed_gives_one_outcome() -> None:
    question = Question(3, 1, "1", "leader-crash")

    assert run_trial(question, 5) == run_trial(question, 5)


def test_processes_come_to_what_one_process_comes_to() -> None:
    asked = questions([3], [2], ["1"], ["leader-crash", "follower-crash"])

    done: list[int] = []
    assert ask_all(asked, 5, 2, 0, done.append) == ask_all(asked, 5, 1, 0, lambda runs: None)
    assert sum(done) == 10
