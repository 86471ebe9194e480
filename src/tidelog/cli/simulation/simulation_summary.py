"""The last lines of a simulation: its size, faults, checks and failures."""

from collections import Counter
from collections.abc import Iterator

from tidelog.sim.runs.campaign import CampaignSummary

_PER_LINE = 4
_LABEL = 13


def summary_lines(summary: CampaignSummary, wall_seconds: float) -> Iterator[str]:
    hours = summary.simulated_ms / 3_600_000
    nodes = ", ".join(f"{count} with {nodes}" for nodes, count in sorted(summary.nodes.items()))
    yield _line("seeds", f"{summary.seeds} (nodes: {nodes})")
    yield _line(
        "simulated",
        f"{hours:.2f} hours in {wall_seconds:.1f} s, "
        f"{summary.speed:.0f} times as fast as real time on each core",
    )
    yield _line("events", f"{summary.events:,}")
    yield _line("records", f"{summary.acknowledged:,} acknowledged, {summary.read:,} read")
    if summary.lost:
        yield _line("lost", f"{summary.lost:,} acknowledged records; every loss was reported")
    yield from _counted("faults", summary.faults)
    held_back = sum(summary.held_back.values())
    yield _line("held back", f"{held_back:,} more faults, which would have exceeded the budget")
    yield from _counted("checked", summary.checks)
    yield _line("failures", str(len(summary.failures)) if summary.failures else "none")


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL}}{text}"


def _counted(label: str, counter: Counter[str]) -> Iterator[str]:
    """A few counts per line, the most frequent first."""
    told = [f"{name} {count:,}" for name, count in counter.most_common()]
    for first in range(0, len(told), _PER_LINE):
        yield _line(label if first == 0 else "", ", ".join(told[first : first + _PER_LINE]))
    if not told:
        yield _line(label, "none")
