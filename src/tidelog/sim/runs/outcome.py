"""The outcome of one run: its trace, its counts, the clients' history and the failure."""

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
    """The time since the workload began."""
    partition: TopicPartition | None = None


@dataclass
class Counts:
    events: int = 0
    simulated_ms: Millis = 0
    faults: Counter[str] = field(default_factory=Counter)
    """The number of executed faults by kind."""
    held_back: Counter[str] = field(default_factory=Counter)
    """The number of faults by kind that were not executed, because the budget forbids them."""
    checks: Counter[str] = field(default_factory=Counter)
    """The number of checks by invariant."""


@dataclass(frozen=True)
class Outcome:
    plan: Plan
    """The plan, including all fields that were drawn from the seed."""
    trace_hash: str
    failure: Failure | None
    counts: Counts
    history: History
    recorder: Recorder | None = None
