"""The content of a report. The number of rows is limited to what a page can show."""

from dataclasses import dataclass
from typing import NamedTuple

from tidelog_pipelines.transformations.health import HANDED_OVER

KINDS = ("under", "unwritable", "leaderless")
"""The faults of a partition. The worst fault comes last."""


class Span(NamedTuple):
    """A time during which a partition was not fully replicated."""

    partition: str
    start_ms: int
    end_ms: int
    leader: int
    in_sync: int
    replicas: int
    min_isr: int

    @property
    def kind(self) -> str:
        if self.leader < 0:
            return "leaderless"
        return "unwritable" if self.in_sync < self.min_isr else "under"

    @property
    def meaning(self) -> str:
        if self.leader < 0:
            return "no leader"
        state = f"{self.in_sync} of {self.replicas} in sync"
        return f"{state}, fewer than min.insync.replicas" if self.kind == "unwritable" else state


class Line(NamedTuple):
    """The time line of a partition, or of all partitions of one internal topic."""

    name: str
    partitions: int
    under_minutes: float
    spans: tuple[Span, ...]
    """The spans in the order of drawing. Later spans cover earlier spans."""


class Failover(NamedTuple):
    line: str
    """The time line that shows the failover."""
    is_internal: bool
    partition: str
    elected_ms: int
    duration_ms: int | None
    leader_before: int
    leader: int
    reason: str
    is_clean: bool

    @property
    def is_handover(self) -> bool:
        """Whether the old leader handed over its leadership, as in a controlled shutdown."""
        return self.reason == HANDED_OVER


class LagCell(NamedTuple):
    broker: int
    bucket: int
    lag: int


class LagRow(NamedTuple):
    partition: str
    broker: int
    p50: int
    p99: int
    most: int
    most_ms: int


class Cause(NamedTuple):
    cause: str
    broker: int
    times: int
    partitions: int


class Flap(NamedTuple):
    partition: str
    broker: int
    leaves: int
    began_ms: int
    ended_ms: int
    reason: str


class Day(NamedTuple):
    day: str
    available_percent: float
    writable_percent: float
    fully_replicated_percent: float


@dataclass(frozen=True)
class Report:
    title: str
    start_ms: int
    end_ms: int
    partitions: int
    brokers: int
    under_now: int
    """The number of partitions that are under-replicated at the end of the report."""
    leaderless_now: int
    writable_percent: float
    under_minutes: float
    shrinks: int
    lines: tuple[Line, ...]
    """The partitions with the most faults, the worst first. Internal topics come last."""
    failovers: tuple[Failover, ...]
    failovers_in_all: int
    lag_buckets: int
    lag_cells: tuple[LagCell, ...]
    lag_rows: tuple[LagRow, ...]
    causes: tuple[Cause, ...]
    flaps: tuple[Flap, ...]
    days: tuple[Day, ...]

    @property
    def is_well(self) -> bool:
        """Whether, at the end, all partitions have a leader and are fully replicated."""
        return not self.under_now and not self.leaderless_now

    @property
    def slowest_failover_ms(self) -> int | None:
        return max((one.duration_ms for one in self.failovers if one.duration_ms), default=None)
