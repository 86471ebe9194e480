"""`tidelog whatif`: simulates your own settings under faults, and reports losses and outages."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from tidelog.cli import options
from tidelog.cli.finding import found_bootstrap
from tidelog.cli.output.progress import progress
from tidelog.cli.simulation.own_settings import MOST_REPLICAS, own_settings, read_topic
from tidelog.cli.simulation.whatif_report import details, matrix
from tidelog.model.user_error import UserError
from tidelog.sim.whatif.campaign import LARGEST_FACTOR, ask_all, questions
from tidelog.sim.whatif.faults import FAULTS
from tidelog.sim.whatif.plot import page
from tidelog.sim.whatif.question import ACKS, Question

DETAILED_RUNS, TABLE_RUNS = 100, 20

_FAULTS = "\n".join(f"  {fault.name:<20} {fault.meaning}" for fault in FAULTS.values())
_EPILOG = f"\b\nFaults:\n{_FAULTS}"


@click.command("whatif", epilog=_EPILOG)
@click.option(
    "--replication-factor",
    "factors",
    type=click.IntRange(1, MOST_REPLICAS),
    multiple=True,
    help="May be given several times, like the next three options.",
)
@click.option("--min-insync-replicas", "minimums", type=click.IntRange(1, 5), multiple=True)
@click.option("--acks", type=click.Choice(list(ACKS)), multiple=True)
@click.option(
    "--fault",
    "faults",
    type=click.Choice(list(FAULTS)),
    metavar="FAULT",
    multiple=True,
    help="A fault of the list below.  [default: all of them]",
)
@click.option("--topic", metavar="NAME", help="Take the settings of this topic of a cluster.")
@click.option(
    "--bootstrap-server",
    metavar="HOST:PORT,...",
    envvar="TIDELOG_BOOTSTRAP_SERVER",
    show_envvar=True,
    help=f"The cluster of --topic.  [default: {options.NOT_GIVEN}]",
)
@click.option("--unclean", is_flag=True, help="Set unclean.leader.election.enable=true.")
@click.option("--flush", is_flag=True, help="Set flush.messages=1: sync before acknowledging.")
@click.option(
    "--all-settings",
    is_flag=True,
    help=f"Compare all values of the settings not given; 1 to {LARGEST_FACTOR} replicas.",
)
@click.option(
    "--runs",
    type=click.IntRange(1),
    help=f"Runs of each case.  [default: {DETAILED_RUNS}; {TABLE_RUNS} if there are several cases]",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The seed of the first run.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=lambda: os.cpu_count() or 1,
    help="The number of processes.  [default: one per core]",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also write the results as a page with a picture.",
)
def command(
    factors: tuple[int, ...],
    minimums: tuple[int, ...],
    acks: tuple[str, ...],
    faults: tuple[str, ...],
    topic: str | None,
    bootstrap_server: str | None,
    unclean: bool,
    flush: bool,
    all_settings: bool,
    runs: int | None,
    seed: int,
    jobs: int,
    plot: Path | None,
) -> int:
    """Simulate your own settings under faults: what do I lose if?

    Runs the real broker code on simulated machines: brokers, a controller and a producer. Reports
    how many runs lost acknowledged records, how many records, and how long writes were unavailable.

    With one --fault, or with --topic, it asks about one set of settings: those given by options,
    then those of the topic, then acks=all, three replicas and min.insync.replicas=2. Otherwise, and
    with --all-settings, it compares all values of the settings that are not given.
    """
    if topic is not None and all_settings:
        raise click.UsageError("give one of --topic and --all-settings")
    if topic is not None or (len(faults) == 1 and not all_settings):
        known = None if topic is None else read_topic(bootstrap_server or found_bootstrap(), topic)
        own = own_settings(factors, minimums, acks, known)
        factors, minimums, acks = own.factors, own.minimums, own.acks
        if known is not None:
            unclean, flush = unclean or known.unclean, flush or known.flush
        if own.assumed:
            click.echo(f"Assumed, since not given: {', '.join(own.assumed)}.")
    asked = questions(factors, minimums, acks, faults, unclean=unclean, flush=flush)
    if not asked:
        raise UserError("these settings have too few replicas for the fault or for the minimum.")
    report(asked, runs, jobs, seed, plot)
    return 0


def report(
    asked: Sequence[Question], runs: int | None, jobs: int, seed: int, plot: Path | None
) -> None:
    """Simulate, and print one line per fault, or tables if there are several settings."""
    is_one = len({question.settings for question in asked}) == 1
    runs = runs or (DETAILED_RUNS if len(asked) == 1 else TABLE_RUNS)
    with progress("simulating", runs * len(asked)) as tell:
        summaries = ask_all(asked, runs, jobs, seed, tell)
    for line in details(summaries) if is_one else matrix(summaries):
        click.echo(line)
    if plot is not None:
        plot.write_text(page(summaries), encoding="utf-8")
        click.echo(f"\nThe picture is in {plot}.")
