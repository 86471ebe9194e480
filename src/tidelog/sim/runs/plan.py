"""What one simulated run is: a seed, and whatever was not left to it.

Every field that is None is drawn from the seed (`sim/runs/drawing.py`). `Plan(seed=7)` is a
whole run, and a plan with everything filled in can be edited one piece at a time.
"""

from dataclasses import dataclass

from tidelog.model.ids import Millis
from tidelog.sim.faults.faults import Fault
from tidelog.sim.rules import TODAYS, Rules

MIN_NODES, MAX_NODES = 3, 5


@dataclass(frozen=True)
class TopicPlan:
    name: str
    partitions: int = 1
    replicas: int = 3
    min_insync_replicas: int = 2
    configs: tuple[tuple[str, str], ...] = ()

    @property
    def flushes_before_ack(self) -> bool:
        return ("flush.messages", "1") in self.configs


@dataclass(frozen=True)
class Workload:
    """Who talks to the cluster, and how much."""

    name: str
    idempotent: int = 1
    """Producers with acks=all that repeat until they are sure."""
    plain_acks: tuple[int, ...] = ()
    """One producer that repeats nothing for each: 0, 1 or -1 (all)."""
    every_ms: Millis = 250
    """Between the batches of one producer."""
    burst: int = 1
    """Batches at a time."""
    records: int = 3
    """In a batch, at most."""
    consumers: int = 1
    group_members: int = 0
    admin_every_ms: Millis = 0
    """Between two acts of an admin; 0: there is none."""


WORKLOADS: dict[str, Workload] = {
    one.name: one
    for one in (
        Workload("idle", idempotent=1, every_ms=5_000, consumers=1),
        Workload("light", idempotent=1, plain_acks=(1,), every_ms=400, consumers=1),
        Workload("steady", idempotent=2, plain_acks=(-1,), every_ms=250, consumers=1),
        Workload("burst", idempotent=2, every_ms=2_000, burst=10, consumers=1),
        Workload("flood", every_ms=4_000, burst=3, records=2_000),
        Workload("group", idempotent=1, every_ms=400, consumers=0, group_members=2),
        Workload("admin", idempotent=1, every_ms=400, admin_every_ms=1_500),
        Workload(
            "mixed",
            idempotent=1,
            plain_acks=(-1, 1, 0),
            every_ms=600,
            group_members=2,
            admin_every_ms=4_000,
        ),
    )
}


@dataclass(frozen=True)
class Plan:
    seed: int
    nodes: int | None = None
    seconds: int = 60
    faults: tuple[str, ...] | None = None
    """The kinds of fault that may be drawn."""
    workload: Workload | None = None
    rules: Rules = TODAYS
    beyond: bool = False
    """Leave the budget behind, and hold the cluster to *saying* what is lost."""
    schedule: tuple[Fault, ...] | None = None
    """The faults themselves."""
    topics: tuple[TopicPlan, ...] | None = None
    settings: tuple[tuple[str, str], ...] | None = None
    """Kafka's keys, for every node."""
    delay_ms: Millis | None = None
    """How long a frame is under way, at most, where nothing is wrong."""
    is_limited: bool = True
    """Whether a budget holds faults back; without, and with `beyond`, loss is only counted."""
