"""The plan of one simulated run: a seed, and fields that may be set or drawn from the seed.

If a field is None, its value is drawn from the seed (`sim/runs/drawing.py`). `Plan(seed=7)`
therefore defines a complete run. Each field can also be set on its own.
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
    """The clients of a run and their load."""

    name: str
    idempotent: int = 1
    """The number of producers with acks=all that retry until they get an acknowledgement."""
    plain_acks: tuple[int, ...] = ()
    """One producer without retries for each value: 0, 1 or -1 (all)."""
    every_ms: Millis = 250
    """The interval between the batches of one producer."""
    burst: int = 1
    """The number of batches per interval."""
    records: int = 3
    """The maximum number of records in a batch."""
    consumers: int = 1
    group_members: int = 0
    """The number of members of a group with the classic protocol."""
    consumer_members: int = 0
    """The number of members of a group with the consumer protocol."""
    settings: tuple[tuple[str, str], ...] = ()
    """Kafka's configuration keys and values that the clients need."""
    admin_every_ms: Millis = 0
    """The interval between two requests of the admin client; 0 for none."""


SHORT_SESSIONS = tuple(
    (f"group.consumer.{limit}{key}", value)
    for key, value in (("session.timeout.ms", "6000"), ("heartbeat.interval.ms", "1000"))
    for limit in ("", "min.")
)
"""Sessions that end within a run, so that silent members are removed."""

WORKLOADS: dict[str, Workload] = {
    one.name: one
    for one in (
        Workload("idle", idempotent=1, every_ms=5_000, consumers=1),
        Workload("light", idempotent=1, plain_acks=(1,), every_ms=400, consumers=1),
        Workload("steady", idempotent=2, plain_acks=(-1,), every_ms=250, consumers=1),
        Workload("burst", idempotent=2, every_ms=2_000, burst=10, consumers=1),
        Workload("flood", every_ms=4_000, burst=3, records=2_000),
        Workload("group", idempotent=1, every_ms=400, consumers=0, group_members=2),
        Workload(
            "consumer-group",
            idempotent=2,
            every_ms=400,
            consumers=0,
            consumer_members=3,
            settings=SHORT_SESSIONS,
        ),
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
    """Whether to ignore the budget, and only require that the cluster reports every loss."""
    schedule: tuple[Fault, ...] | None = None
    """The faults of the run."""
    topics: tuple[TopicPlan, ...] | None = None
    commit_rule: str = "isr"
    """The rule of the drawn topics: isr, quorum, or mixed, which draws a rule for each topic."""
    settings: tuple[tuple[str, str], ...] | None = None
    """Kafka's configuration keys and values, for every node."""
    delay_ms: Millis | None = None
    """The maximum delay of a frame on a healthy link."""
    is_limited: bool = True
    """Whether the budget limits faults. Without a limit, a reported loss is not a failure."""
