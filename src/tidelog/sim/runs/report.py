"""The report of a failure: the seed, the invariant, the last events and the replay command."""

from collections.abc import Iterator, Sequence

from tidelog.sim.faults.faults import KINDS
from tidelog.sim.runs.outcome import Failure
from tidelog.sim.runs.plan import Plan
from tidelog.sim.runs.recorder import Recorder
from tidelog.sim.runs.run import simulate

LAST_EVENTS = 25


def replay_command(plan: Plan, only: Sequence[int] | None = None) -> str:
    """The command that replays this plan. The seed determines the options that are left out."""
    parts = ["tidelog simulate", f"--seed {plan.seed}"]
    if plan.nodes is not None:
        parts.append(f"--nodes {plan.nodes}")
    if plan.seconds != Plan.seconds:
        parts.append(f"--seconds {plan.seconds}")
    if plan.faults is not None and plan.faults != tuple(KINDS):
        parts.append(f"--faults {','.join(plan.faults) or 'none'}")
    if plan.workload is not None:
        parts.append(f"--workload {plan.workload.name}")
    if plan.beyond:
        parts.append("--beyond")
    if plan.commit_rule != "isr":
        parts.append(f"--rule {plan.commit_rule}")
    if only is not None:
        parts.append(f"--only {','.join(map(str, only)) or 'none'}")
    if plan.rules.name:
        parts.append(f"--mutant {plan.rules.name}")
    return " ".join(parts)


def headline(seed: int, failure: Failure) -> str:
    return f"seed {seed}: {failure.invariant}: {failure.sentence}"


def failure_report(plan: Plan, only: Sequence[int] | None = None) -> Iterator[str]:
    """Run a failing plan again and report its events. The same seed reproduces the same run.

    If faults were removed from the seed's schedule, `only` has the indices of the other faults.
    """
    recorder = Recorder()
    outcome = simulate(plan, recorder)
    failure = outcome.failure
    if failure is None:
        yield f"seed {plan.seed} does not fail any more"
        return
    yield headline(plan.seed, failure)
    where = ""
    if failure.partition is not None:
        where = f" of {failure.partition.topic}-{failure.partition.partition}"
    yield f"  {failure.at_ms / 1000:.3f} s after the workload began, on {outcome.plan.nodes} nodes"
    yield f"  the last events{where} (replicas as node:end/watermark, the leader with a star):"
    for line in recorder.tail(failure.partition, LAST_EVENTS):
        yield f"    {line}"
    yield f"  again: {replay_command(plan, only)}"
