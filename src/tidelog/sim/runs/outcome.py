"""What came of one run: its trace, what was counted, what clients saw, and what went wrong."""

from collections import Counter
from dataclasses import dataclass, field

from tidelog.model.ids import Millis, TopicPartition
from tidelog.sim.clients.history import History
from tidelog.sim.runs.plan import Plan
from tidelog.sim.runs.recorder import Recorder


@dataclass(frozen=True)
class Failure:
    invariant: str
    sentence: str
    at_ms: Millis
    """Since the workload began."""
    partition: TopicPartition | None = None


@dataclass
class Counts:
    events: int = 0
    simulated_ms: Millis = 0
    faults: Counter[str] = field(default_factory=Counter)
    """By kind, those that struck."""
    held_back: Counter[str] = field(default_factory=Counter)
    """By kind, those for which the budget had no room."""
    checks: Counter[str] = field(default_factory=Counter)
    """By invariant, how often it was looked at."""


@dataclass(frozen=True)
class Outcome:
    plan: Plan
    """With everything filled in that the seed decided."""
    trace_hash: str
    failure: Failure | None
    counts: Counts
    history: History
    recorder: Recorder | None = None
