"""Reads and writes the committed table of costs, and compares it with new counts."""

import json
from collections.abc import Iterable
from pathlib import Path

from tidelog.sim.runs.costs import Cost

PATH = Path(__file__).parent / "costs.json"
MOST_CHANGE = 0.05
NAMED = 10
"""The maximum number of functions that a complaint names."""


def read() -> dict[str, Cost]:
    table = json.loads(PATH.read_text())
    return {work: Cost(work, row["calls"], row["functions"]) for work, row in table.items()}


def written(costs: Iterable[Cost]) -> str:
    table = {cost.work: {"calls": cost.calls, "functions": cost.functions} for cost in costs}
    return json.dumps(table, indent=1) + "\n"


def growth(before: Cost, now: Cost) -> str:
    """A complaint that names the functions that are called more often; empty if none is."""
    if now.calls < before.calls * (1 - MOST_CHANGE):
        return f"{now.work}: {now.calls} calls, {before.calls} in the table: write the table anew"
    if now.calls <= before.calls * (1 + MOST_CHANGE):
        return ""
    grown = {
        name: calls - before.functions.get(name, 0.0)
        for name, calls in now.functions.items()
        if calls > before.functions.get(name, 0.0)
    }
    most = sorted(grown.items(), key=lambda one: -one[1])[:NAMED]
    lines = [f"{now.work}: {now.calls} calls, {before.calls} in the table"]
    return "\n".join([*lines, *(f"  +{calls:.2f} {name}" for name, calls in most)])
