"""`tidelog simulate --seed N --html FILE`: writes the run of a seed as a page."""

from pathlib import Path

import click

from tidelog.sim.machines.silence import silenced
from tidelog.sim.replay.page import page
from tidelog.sim.replay.recorded import recorded_run
from tidelog.sim.runs.plan import Plan
from tidelog.sim.runs.recorder import Recorder
from tidelog.sim.runs.run import simulate


@silenced()
def write_page(plan: Plan, html: Path) -> None:
    """Run the seed again with a recorder, and write the page."""
    recorder = Recorder()
    outcome = simulate(plan, recorder)
    nodes = outcome.plan.nodes
    assert nodes is not None
    about = (
        f"{nodes} nodes, {plan.seconds} simulated seconds with faults, trace {outcome.trace_hash}."
    )
    if outcome.failure is not None:
        about += f" It fails: {outcome.failure.invariant}: {outcome.failure.sentence}"
    run = recorded_run(recorder, f"Seed {plan.seed}", about, nodes)
    html.write_text(page(run), encoding="utf-8")
    click.echo(f"\nThe page is in {html}.")
