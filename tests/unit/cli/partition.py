"""Facts and events of a partition that is healthy unless a test changes it."""

from typing import Any

from tidelog.insight.partition_facts import Facts
from tidelog.insight.replica_history import IsrMembership, PartitionHistory
from tidelog.model.ids import TopicPartition

NOON = 1_794_830_400_000
AGO_20_S = NOON - 20_000


def facts(**changes: Any) -> Facts:
    """Three healthy replicas in a cluster with replication events."""
    values: dict[str, Any] = {
        "partition": TopicPartition("orders", 0),
        "now": NOON,
        "leader": 1,
        "replicas": (1, 2, 3),
        "isr": (1, 2, 3),
        "min_isr": 2,
        "up": frozenset({1, 2, 3}),
        "ends": {1: 20_000, 2: 20_000, 3: 20_000},
        "controller": 3,
    }
    return Facts(**{**values, **changes})


def left(reason: str, **changes: Any) -> PartitionHistory:
    return PartitionHistory(members={2: IsrMembership(False, AGO_20_S, reason, **changes)})
