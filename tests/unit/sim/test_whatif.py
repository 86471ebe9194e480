"""The questions and the output of `whatif`, without the simulation."""

from pathlib import Path
from typing import Any

import pytest

from tidelog.cli.simulation.whatif_report import details, matrix, seconds
from tidelog.sim.whatif.campaign import questions
from tidelog.sim.whatif.faults import FAULTS
from tidelog.sim.whatif.plot import colour, page
from tidelog.sim.whatif.question import Question
from tidelog.sim.whatif.summary import WhatIfSummary, quantile, summarise
from tidelog.sim.whatif.trial import WhatIfTrial


def trials(*lost: int) -> list[WhatIfTrial]:
    return [WhatIfTrial(seed, 1_000, one, 20 + seed, True) for seed, one in enumerate(lost)]


def summary(*lost: int, **question: Any) -> WhatIfSummary:
    return summarise(Question(**question), trials(*lost))


def test_what_is_not_given_stands_for_all() -> None:
    everything = questions()

    assert {one.fault for one in everything} == set(FAULTS)
    assert {one.acks for one in everything} == {"0", "1", "all"}
    assert {one.replication_factor for one in everything} == {1, 2, 3}
    assert all(one.min_insync_replicas <= one.replication_factor for one in everything)
    assert len(set(everything)) == len(everything)


def test_what_makes_no_sense_is_not_asked() -> None:
    assert questions([1], [2]) == []
    assert questions([1], faults=["follower-crash"]) == []
    assert questions([2], [1], ["all"], ["leader-crash"], flush=True) == [
        Question(2, 1, "all", "leader-crash", flush=True)
    ]


def test_losses_are_summed_up() -> None:
    result = summary(0, 3, 0, 7, 1)

    assert (result.runs, result.lossy, result.median_lost, result.worst_lost) == (5, 3, 3, 7)
    assert (result.median_unavailable_ms, result.p99_unavailable_ms) == (22, 24)


def test_no_loss_in_n_runs_bounds_the_share_by_three_over_n() -> None:
    assert summary(*[0] * 500).bound == pytest.approx(0.006)
    assert summary(0).bound == 1.0
    assert 0.3 < summary(*[1] * 10, *[0] * 30).bound < 0.42


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([], 50, 0), ([4], 99, 4), ([1, 2, 3], 50, 2), ([1, 2, 3, 4], 50, 2), ([1, 2, 3], 99, 3)],
)
def test_quantiles(values: list[int], percent: int, expected: int) -> None:
    assert quantile(values, percent) == expected


def test_one_set_of_settings_is_told_fault_by_fault() -> None:
    result = "\n".join(details([summary(*[0] * 500), summary(2, 0, fault="all-crash")]))

    assert "acks=all min.insync.replicas=2 replication.factor=3: 500 runs per fault" in result
    assert "0 of 500 runs lost anything; with 95 % confidence fewer than 0.6%" in result
    assert "UNAVAILABLE     the longest time without an acknowledgement" in result
    assert "all-crash: 1 of 2 runs lost acknowledged records" in result


def test_many_settings_are_told_in_a_grid() -> None:
    result = list(matrix([summary(0, 1, acks="1"), summary(0, 0, acks="all")]))

    assert result[1].split() == ["FAULT", "1/2", "all/2"]
    assert result[2].split() == ["leader-crash", "50%", "0"]


def test_the_page_on_it_shows_every_fault_in_every_grid() -> None:
    page = (Path(__file__).parents[3] / "docs" / "whatif.md").read_text()
    grids = [grid.splitlines() for grid in page.split("\nreplication.factor=")[1:]]

    asked = [summary(0, acks="1"), summary(0)]
    titles = [line for line in matrix(asked) if line.startswith("replication.factor=")]
    assert [f"replication.factor={grid[0]}" for grid in grids] == titles
    for grid in grids:
        rows = [line.split()[0] for line in grid[2 : 2 + len(FAULTS)]]
        assert rows == list(FAULTS)


def test_the_picture_needs_nothing_from_outside() -> None:
    drawn = page([summary(0, 1, acks="1", unclean=True), summary(0, 0, acks="all", unclean=True)])

    assert drawn.startswith("<!doctype html>")
    assert "http" not in drawn
    assert "unclean.leader.election.enable=true" in drawn
    assert colour(0) in drawn
    assert colour(0.5) in drawn


def test_times_are_told_as_people_say_them() -> None:
    assert [seconds(one) for one in (None, 4, 99, 100, 3_049)] == [
        "-",
        "4 ms",
        "99 ms",
        "0.1 s",
        "3.0 s",
    ]
