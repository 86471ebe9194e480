"""`tidelog simulate --mutant`: turns on a known wrong rule, and reports what detects it."""

import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from tidelog.cli.help.suggestions import did_you_mean
from tidelog.cli.output.table import table
from tidelog.model.user_error import UserError
from tidelog.sim.machines.silence import silenced
from tidelog.sim.mutants import MUTANTS, Mutant
from tidelog.sim.replay.page import page
from tidelog.sim.runs.campaign import Result, one
from tidelog.sim.runs.plan import Plan
from tidelog.sim.story import library
from tidelog.sim.story.playing import play
from tidelog.sim.story.showing import as_run

SEEDS = 100


@silenced()
def try_mutant(
    name: str, plan: Plan, seeds: int | None, jobs: int | None, html: Path | None
) -> int:
    """Return status 0 if the story passes with the right rules and fails with the mutant."""
    if name == "list":
        rows = [(one.name, ",".join(one.faults) or "-", one.wrong) for one in MUTANTS.values()]
        for line in table(("MUTANT", "FAULTS", "WHAT IS WRONG"), rows):
            click.echo(line)
        return 0
    mutant = known_mutant(name)
    click.echo(f"{mutant.name}: {mutant.wrong}")
    is_caught = _by_story(mutant, html)
    _by_seeds(mutant, plan, seeds or SEEDS, jobs or os.cpu_count() or 1)
    return 0 if is_caught else 1


def known_mutant(name: str) -> Mutant:
    mutant = MUTANTS.get(name)
    if mutant is None:
        near = did_you_mean(name, MUTANTS)
        raise UserError(f"there is no mutant '{name}'; --mutant list names them{near}")
    return mutant


def _by_story(mutant: Mutant, html: Path | None) -> bool:
    story = library.story(mutant.story)
    right, wrong = play(story), play(story, mutant.name)
    click.echo(f"\nThe story that shows it: {mutant.story}")
    click.echo(f"  today's rule  {right.failures[0] if right.failures else 'passes'}")
    click.echo(f"  the mutant    {'caught, ' + wrong.failures[0] if wrong.failures else 'passes'}")
    if html is not None:
        html.write_text(page(as_run(wrong)), encoding="utf-8")
        click.echo(f"  The page of it is in {html}.")
    return not right.failures and bool(wrong.failures)


def _by_seeds(mutant: Mutant, plan: Plan, seeds: int, jobs: int) -> None:
    """Run seeds until one of them detects the mutant."""
    click.echo(f"\nRandom seeds from {plan.seed} on, at most {seeds}:")
    runs = 0
    for result in _results(mutant.name, plan, seeds, jobs):
        runs += 1
        if result.failure is not None:
            failure = result.failure
            click.echo(f"  caught by seed {result.seed}, the {runs}. of them, by the invariant")
            click.echo(f"  {failure.invariant}: {failure.sentence}")
            return
    click.echo(f"  none of {runs} caught it; the story does.")


def _results(name: str, plan: Plan, seeds: int, jobs: int) -> Iterator[Result]:
    plans = [replace(plan, seed=plan.seed + number) for number in range(seeds)]
    if jobs == 1:
        yield from map(partial(run_mutant, name), plans)
        return
    pool = ProcessPoolExecutor(jobs)
    try:
        # `map` keeps the order of the seeds, so the first detecting seed is always the same.
        yield from pool.map(partial(run_mutant, name), plans)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_mutant(name: str, plan: Plan) -> Result:
    """Run one seed with the mutant of this name. A name is passed, as rules cannot be pickled."""
    return one(replace(plan, rules=MUTANTS[name].rules()))
