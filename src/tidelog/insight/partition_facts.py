"""The facts about one partition at one moment, from the cluster and from past events."""

from dataclasses import dataclass, field
from typing import NamedTuple

from tidelog.insight.replica_history import BrokerStanding, PartitionHistory
from tidelog.model.ids import NO_NODE, Millis, NodeId, Offset, TopicPartition
from tidelog.model.replication_events import FenceReason, LeaveReason


class Speed(NamedTuple):
    """The growth rate of a replica's log."""

    records_per_s: float
    bytes_per_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The known state of one partition at one moment."""

    partition: TopicPartition
    now: Millis
    leader: NodeId
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    adding: tuple[NodeId, ...] = ()
    min_isr: int = 1
    """The configured min.insync.replicas, which may exceed the number of replicas; see `needed`."""
    allows_unclean: bool = False
    up: frozenset[NodeId] = frozenset()
    """The brokers that the cluster considers alive."""
    offline: tuple[NodeId, ...] = ()
    """The replicas whose brokers are down or whose log directories have failed."""
    ends: dict[NodeId, Offset | None] = field(default_factory=dict)
    speeds: dict[NodeId, Speed] = field(default_factory=dict)
    controller: NodeId | None = NO_NODE
    """The active controller; None if there is none."""
    history: PartitionHistory = field(default_factory=PartitionHistory)
    brokers: dict[NodeId, BrokerStanding] = field(default_factory=dict)
    events_missing: str | None = None
    events_since: Millis | None = None
    """The time before which events are unknown; None if the history is complete."""

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_NODE

    @property
    def out(self) -> tuple[NodeId, ...]:
        return tuple(one for one in self.replicas if one not in self.isr)

    @property
    def needed(self) -> int:
        return min(self.min_isr, len(self.replicas))

    @property
    def is_led(self) -> bool:
        """Whether the partition has a leader that answers."""
        return self.has_leader and self.ends.get(self.leader) is not None

    @property
    def is_healthy(self) -> bool:
        return self.is_led and not self.out and self.controller is not None

    @property
    def is_explained(self) -> bool:
        """Whether past events explain each replica that is out of sync, and a missing leader."""
        left = (one for one in self.out if one not in self.adding)
        has_lead = self.has_leader or self.history.election is not None
        return has_lead and all(one in self.history.members for one in left)

    def lag(self, replica: NodeId) -> int | None:
        mine, leaders = self.ends.get(replica), self.ends.get(self.leader)
        return None if mine is None or leaders is None else max(0, leaders - mine)

    def has_lost_directory(self, replica: NodeId) -> bool:
        """Whether the replica's log directory has failed. The broker may still run."""
        if self.ends.get(replica) is not None:
            return False
        known = self.history.members.get(replica)
        is_told = known is not None and known.reason == LeaveReason.LOG_DIR_FAILED
        return is_told or (replica in self.up and replica in self.offline)

    def is_silent(self, broker: NodeId) -> bool:
        """Whether the broker is fenced because of missed heartbeats. Its process may still run."""
        standing = self.brokers.get(broker)
        return (
            broker not in self.up
            and standing is not None
            and standing.is_fenced
            and standing.reason == FenceReason.SESSION_EXPIRED
        )
