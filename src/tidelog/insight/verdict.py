"""The state of a whole cluster in one sentence: what is broken, or what may still be lost."""

from collections.abc import Sequence
from typing import NamedTuple

from tidelog.insight.wording import count
from tidelog.model.ids import NO_NODE, NodeId, TopicPartition


class PartitionHealth(NamedTuple):
    partition: TopicPartition
    leader: NodeId
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    min_isr: int | None
    """min.insync.replicas; None if it is not known."""

    @property
    def is_available(self) -> bool:
        return self.leader != NO_NODE

    @property
    def is_under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def spare(self) -> int:
        """How many in-sync replicas can be lost before writes with acks=all are refused."""
        needed = min(self.min_isr or 1, len(self.replicas))
        return len(self.isr) - needed


class ClusterVerdict(NamedTuple):
    kind: str
    """A short name of the case, for translations."""
    level: str
    """`good`, `warn` or `bad`."""
    text: str
    number: int = 0
    """The number of partitions, or of brokers, that the sentence is about."""


def verdict(
    partitions: Sequence[PartitionHealth], *, has_controller: bool, voters: int | None = None
) -> ClusterVerdict:
    """The most severe finding about these partitions."""
    leaderless = sum(not one.is_available for one in partitions)
    if leaderless:
        text = f"{_have(leaderless)} no leader, so nobody can read or write there."
        return ClusterVerdict("leaderless", "bad", text, leaderless)
    refused = sum(one.spare < 0 for one in partitions)
    if refused:
        text = f"Writes with acks=all to {count(refused, 'partition')} are refused: "
        return ClusterVerdict("below-min", "bad", f"{text}too few replicas are in sync.", refused)
    if not has_controller:
        text = "No controller is active: reads and writes go on, but no leader can change."
        return ClusterVerdict("no-controller", "bad", text)
    if not partitions:
        return ClusterVerdict("empty", "good", "Ready. There are no topics yet.")
    lagging = sum(one.is_under_replicated for one in partitions)
    at_limit = sum(one.spare == 0 and len(one.replicas) > 1 for one in partitions)
    if lagging and at_limit:
        text = f"One more loss stops writes to {count(at_limit, 'partition')}."
        return ClusterVerdict("at-limit", "warn", text, at_limit)
    if lagging:
        text = f"{_have(lagging)} too few replicas in sync; writes go on."
        return ClusterVerdict("lagging", "warn", text, lagging)
    return _healthy(partitions, at_limit, voters)


def _healthy(
    partitions: Sequence[PartitionHealth], at_limit: int, voters: int | None
) -> ClusterVerdict:
    single = sum(len(one.replicas) == 1 for one in partitions)
    if at_limit:
        text = f"Healthy, but the loss of a broker stops writes to {count(at_limit, 'partition')}."
        return ClusterVerdict("tight", "good", text, at_limit)
    if single:
        text = f"Healthy, but {_have(single)} only one replica."
        return ClusterVerdict("single", "good", text, single)
    spare = min(one.spare for one in partitions)
    if voters is not None:
        # A majority of the voters must remain. Each voter may be a broker as well.
        spare = min(spare, (voters - 1) // 2)
    if spare == 0:
        return ClusterVerdict("fragile", "good", "Healthy, but no voter of the quorum can be lost.")
    who = "any one broker" if spare == 1 else f"any {spare} brokers"
    return ClusterVerdict("healthy", "good", f"Healthy: {who} can be lost.", spare)


def _have(partitions: int) -> str:
    return f"{count(partitions, 'partition')} {'has' if partitions == 1 else 'have'}"
