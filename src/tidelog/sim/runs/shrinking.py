"""Shrinks a failing schedule: removes faults as long as the same invariant is still violated.

The search removes halves first, then smaller pieces, and finally single faults (delta debugging).
The result is a subset of the seed's schedule, given as the indices of the faults that remain.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tidelog.sim.faults.faults import Fault
from tidelog.sim.runs.drawing import filled_in
from tidelog.sim.runs.plan import Plan
from tidelog.sim.runs.run import simulate

Tried = Callable[[int, int], None]
"""Called with the number of runs and the number of remaining faults."""


def only(plan: Plan, places: Sequence[int]) -> Plan:
    """The plan with only these faults of its seed's schedule."""
    schedule = filled_in(plan).schedule or ()
    return replace(plan, schedule=tuple(schedule[place] for place in places))


def shrink(plan: Plan, tried: Tried = lambda runs, left: None) -> tuple[int, ...]:
    """The indices of a few faults that still make the plan fail in the same way."""
    first = simulate(plan).failure
    assert first is not None, "there is nothing to shrink"
    schedule = filled_in(plan).schedule or ()
    runs = 1

    def fails(places: Sequence[int]) -> bool:
        nonlocal runs
        runs += 1
        tried(runs, len(places))
        failure = simulate(replace(plan, schedule=_faults(schedule, places))).failure
        return failure is not None and failure.invariant == first.invariant

    kept = [place for place, fault in enumerate(schedule) if fault.at_ms <= first.at_ms]
    if not fails(kept):
        kept = list(range(len(schedule)))
    size = max(1, len(kept) // 2)
    while kept:
        start, has_shrunk = 0, False
        while start < len(kept):
            fewer = kept[:start] + kept[start + size :]
            if fails(fewer):
                kept, has_shrunk = fewer, True
            else:
                start += size
        if size == 1 and not has_shrunk:
            break
        size = max(1, size // 2)
    return tuple(kept)


def _faults(schedule: Sequence[Fault], places: Sequence[int]) -> tuple[Fault, ...]:
    return tuple(schedule[place] for place in places)
