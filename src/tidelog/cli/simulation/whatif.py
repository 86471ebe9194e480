"""`tidelog whatif`: simulate your own settings under faults, and see what they cost."""

import os
from pathlib import Path

import click

from tidelog.cli.output.progress import progress
from tidelog.cli.simulation.whatif_report import details, matrix
from tidelog.model.user_error import UserError
from tidelog.sim.whatif.campaign import LARGEST_FACTOR, ask_all, questions
from tidelog.sim.whatif.faults import FAULTS
from tidelog.sim.whatif.plot import page
from tidelog.sim.whatif.question import ACKS

DETAILED_RUNS, TABLE_RUNS = 200, 20

_FAULTS = "\n".join(f"  {fault.name:<20} {fault.meaning}" for fault in FAULTS.values())
_EPILOG = f"\b\nFaults:\n{_FAULTS}"


@click.command("whatif", epilog=_EPILOG)
@click.option(
    "--replication-factor",
    "factors",
    type=click.IntRange(1, 5),
    multiple=True,
    help=f"May be given several times; without it, 1 to {LARGEST_FACTOR}.",
)
@click.option(
    "--min-insync-replicas",
    "minimums",
    type=click.IntRange(1, 5),
    multiple=True,
    help="Without it, everything up to the replication factor.",
)
@click.option("--acks", type=click.Choice(list(ACKS)), multiple=True, help="Without it, all three.")
@click.option(
    "--fault",
    "faults",
    type=click.Choice(list(FAULTS)),
    metavar="FAULT",
    multiple=True,
    help="Without it, every one below.",
)
@click.option("--unclean", is_flag=True, help="unclean.leader.election.enable=true: its price.")
@click.option("--flush", is_flag=True, help="flush.messages=1: sync before acknowledging.")
@click.option(
    "--runs",
    type=click.IntRange(1),
    help=f"How often each is simulated; {DETAILED_RUNS}, or {TABLE_RUNS} for a table of settings.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the first run.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    help="Processes to use; all processors if not given.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write a page with the picture of it.",
)
def command(
    factors: tuple[int, ...],
    minimums: tuple[int, ...],
    acks: tuple[str, ...],
    faults: tuple[str, ...],
    unclean: bool,
    flush: bool,
    runs: int | None,
    seed: int,
    jobs: int,
    plot: Path | None,
) -> int:
    """What do I lose if? Simulate your own settings under faults.

    Runs the real node code on simulated machines: brokers, a controller, a producer. Says for every
    fault in how many runs records were lost that the producer was told are written, how many, and
    for how long writes were unavailable.
    """
    asked = questions(factors, minimums, acks, faults, unclean=unclean, flush=flush)
    if not asked:
        raise UserError("no such combination makes sense: too few replicas for what is asked")
    is_one = len({question.settings for question in asked}) == 1
    runs = runs or (DETAILED_RUNS if is_one else TABLE_RUNS)
    total = runs * len(asked)
    with progress("simulating", total) as tell:
        summaries = ask_all(asked, runs, jobs, seed, tell)
    for line in details(summaries) if is_one else matrix(summaries):
        click.echo(line)
    if plot is not None:
        plot.write_text(page(summaries), encoding="utf-8")
        click.echo(f"\nThe picture is in {plot}.")
    return 0
