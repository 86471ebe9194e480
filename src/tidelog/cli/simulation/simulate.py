"""`tidelog simulate`: runs whole clusters under simulated time, network and disk, by seed."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from time import monotonic

import click

from tidelog.cli.help.suggestions import did_you_mean
from tidelog.cli.output.progress import progress
from tidelog.cli.simulation.simulate_mutant import try_mutant
from tidelog.cli.simulation.simulate_story import tell_story
from tidelog.cli.simulation.simulation_page import write_page
from tidelog.cli.simulation.simulation_summary import summary_lines
from tidelog.model.user_error import UserError
from tidelog.sim.faults.faults import KINDS
from tidelog.sim.machines.silence import silenced
from tidelog.sim.runs.campaign import CampaignSummary, Result, one, run_all
from tidelog.sim.runs.plan import MAX_NODES, MIN_NODES, WORKLOADS, Plan
from tidelog.sim.runs.report import failure_report, headline
from tidelog.sim.runs.shrinking import only as only_faults
from tidelog.sim.runs.shrinking import shrink as shrink_plan

SEEDS = 20
SEEDS_A_DAY = 1_000_000
MAX_REPORTS = 3


@click.command("simulate")
@click.option("--seed", type=click.IntRange(min=0), help="Run this one seed.")
@click.option(
    "--seeds", type=click.IntRange(min=1), help=f"The number of seeds. [default: {SEEDS}]"
)
@click.option("--minutes", type=click.FloatRange(min=0), help="Run seeds for this time.")
@click.option(
    "--first-seed",
    type=click.IntRange(min=0),
    help="The first seed. [default: 0; with --minutes it depends on the day]",
)
@click.option(
    "--nodes", type=click.IntRange(MIN_NODES, MAX_NODES), help="[default: 3 to 5, from the seed]"
)
@click.option(
    "--seconds", type=click.IntRange(min=1), default=60, show_default=True, help="Time with faults."
)
@click.option("--faults", help="Kinds of fault, separated by commas, or none. [default: all]")
@click.option("--workload", type=click.Choice(list(WORKLOADS)), help="[default: from the seed]")
@click.option(
    "--jobs", type=click.IntRange(min=1), help="The number of processes. [default: one per core]"
)
@click.option("--beyond", is_flag=True, help="Allow fatal faults, and check that loss is reported.")
@click.option(
    "--rule",
    type=click.Choice(["isr", "quorum", "mixed"]),
    default="isr",
    show_default=True,
    help="The commit rule of the topics.",
)
@click.option("--shrink", is_flag=True, help="Find a shorter list of faults that also fails.")
@click.option("--only", help="Only these faults of the seed, by number from 0, or none.")
@click.option("--list-faults", is_flag=True, help="List the kinds of fault.")
@click.option(
    "--story", metavar="FILE", help="Play a scenario; `list` lists them, `help` explains steps."
)
@click.option("--mutant", metavar="NAME", help="Turn on a known wrong rule; `list` lists them.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page that replays the story, or the seed.",
)
def command(
    seed: int | None,
    seeds: int | None,
    minutes: float | None,
    first_seed: int | None,
    nodes: int | None,
    seconds: int,
    faults: str | None,
    workload: str | None,
    jobs: int | None,
    beyond: bool,
    rule: str,
    shrink: bool,
    only: str | None,
    list_faults: bool,
    story: str | None,
    mutant: str | None,
    html: Path | None,
) -> int:
    """Run whole clusters under simulated time, network and disk, with faults, and check them.

    A seed determines a whole run: its nodes, topics, clients and faults. The same seed gives the
    same run on any machine. The nodes run the code of `tidelog serve`. The protocol must survive
    all of these faults, so every failure is a bug: the status is 1, and the command that replays it
    is printed.
    """
    if list_faults:
        for kind, what in KINDS.items():
            click.echo(f"{kind:<16}{what}")
        return 0
    if story is not None:
        return tell_story(story, mutant, html)
    if sum(one is not None for one in (seed, seeds, minutes)) > 1:
        raise click.UsageError("give one of --seed, --seeds and --minutes")
    if only is not None and seed is None:
        raise click.UsageError("--only goes with --seed")
    plan = Plan(
        seed or 0,
        nodes,
        seconds,
        _kinds(faults),
        None if workload is None else WORKLOADS[workload],
        beyond=beyond,
        commit_rule=rule,
    )
    if mutant is not None:
        return try_mutant(mutant, replace(plan, seed=first_seed or 0), seeds, jobs, html)
    if html is not None and seed is None:
        raise click.UsageError("--html goes with --seed, --story or --mutant")
    if seed is not None:
        status = _run_one(plan, _places(only), shrink)
        if html is not None:
            write_page(plan, html)
        return status
    return _run_many(plan, seeds, minutes, first_seed, jobs or os.cpu_count() or 1, shrink)


def _kinds(faults: str | None) -> tuple[str, ...] | None:
    if faults is None or faults == "none":
        return None if faults is None else ()
    kinds = tuple(faults.split(","))
    for kind in kinds:
        if kind not in KINDS:
            raise UserError(
                f"there is no kind of fault '{kind}'; --list-faults lists them"
                f"{did_you_mean(kind, KINDS)}"
            )
    return kinds


def _places(only: str | None) -> tuple[int, ...] | None:
    if only is None or only == "none":
        return None if only is None else ()
    try:
        return tuple(int(place) for place in only.split(","))
    except ValueError:
        raise UserError(f"--only takes numbers separated by commas, not {only}") from None


# -- One seed --------------------------------------------------------------------------------------


def _run_one(plan: Plan, places: tuple[int, ...] | None, shrink: bool) -> int:
    if places is not None:
        try:
            plan = only_faults(plan, places)
        except IndexError:
            raise UserError(f"--only: seed {plan.seed} has fewer faults") from None
    summary = CampaignSummary()
    began = monotonic()
    result = one(plan)
    summary.add(result)
    if result.failure is not None:
        _report(plan, places, shrink)
    for line in summary_lines(summary, monotonic() - began):
        click.echo(line)
    click.echo(f"trace        {result.trace_hash}")
    return 1 if summary.failures else 0


@silenced()
def _report(plan: Plan, places: tuple[int, ...] | None, shrink: bool) -> None:
    if shrink:
        plan, places = _shrunk(plan, places)
    for line in failure_report(plan, places):
        click.echo(line)
    click.echo()


def _shrunk(plan: Plan, places: tuple[int, ...] | None) -> tuple[Plan, tuple[int, ...]]:
    def tried(runs: int, left: int) -> None:
        if os.isatty(2):
            click.echo(f"\rshrinking: {runs} runs, {left} faults ", nl=False, err=True)

    kept = shrink_plan(plan, tried)
    if os.isatty(2):
        click.echo(err=True)
    if places is not None:
        kept = tuple(places[place] for place in kept)
    return only_faults(replace(plan, schedule=None), kept), kept


# -- Many seeds ------------------------------------------------------------------------------------


def _run_many(
    plan: Plan,
    seeds: int | None,
    minutes: float | None,
    first_seed: int | None,
    jobs: int,
    shrink: bool,
) -> int:
    began = monotonic()
    end = None if minutes is None else began + minutes * 60
    if first_seed is None:
        today = datetime.now(UTC).date().toordinal()
        first_seed = 0 if minutes is None else today * SEEDS_A_DAY
    numbers: Iterator[int] = count(first_seed)
    if end is None:
        numbers = islice(numbers, seeds or SEEDS)
    results = run_all(
        (replace(plan, seed=number) for number in numbers),
        jobs,
        lambda: end is None or monotonic() < end,
    )
    summary = CampaignSummary()
    _collect(results, summary, None if end is not None else seeds or SEEDS, began, end)
    for number, _ in summary.failures[:MAX_REPORTS]:
        _report(replace(plan, seed=number), None, shrink)
    for number, failure in summary.failures[MAX_REPORTS:]:
        click.echo(headline(number, failure))
    for line in summary_lines(summary, monotonic() - began):
        click.echo(line)
    return 1 if summary.failures else 0


def _collect(
    results: Iterator[Result],
    summary: CampaignSummary,
    total: int | None,
    began: float,
    end: float | None,
) -> None:
    """Add the results to the summary, and show the progress by seeds or by time."""
    length = max(1, round(end - began)) if total is None and end is not None else total or 0
    done = 0
    with progress("simulating", length) as tell:
        for result in results:
            summary.add(result)
            reached = summary.seeds if end is None else min(length, round(monotonic() - began))
            tell(reached - done, _shown(summary))
            done = reached


def _shown(summary: CampaignSummary) -> str:
    failures = len(summary.failures)
    told = f"{summary.seeds} seeds, {summary.simulated_ms / 3_600_000:.1f} simulated hours"
    return f"{told}, {failures} failed" if failures else told
