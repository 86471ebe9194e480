"""The history of partitions and brokers, built from the events of the replication-events topic.

Each node writes its own events, so the order in the topic may differ from the order in which the
events happened. The partition epochs show the true order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from tidelog.insight.observation import NOT_KNOWN
from tidelog.model.ids import Millis, NodeId, Offset, TopicPartition

Event = Mapping[str, Any]


class IsrMembership(NamedTuple):
    """Whether a replica is in the in-sync set, since what time, and why it left."""

    is_in_sync: bool
    since: Millis
    reason: str | None = None
    end_offset: Offset | None = None
    lag_ms: Millis | None = None
    lag: int | None = None
    """The number of records that the replica lacked when it left."""


class FollowerHistory(NamedTuple):
    """The state of a follower in its leader's last report."""

    told_at: Millis
    leader: NodeId
    end_offset: Offset | None
    lag: int | None
    lag_ms: Millis | None
    """The time since the follower was last caught up; 0 if it is caught up now.

    None if the follower was never caught up under this leader.
    """
    is_in_sync: bool

    @property
    def leader_end(self) -> Offset | None:
        """The leader's own log end offset."""
        if self.end_offset is None or self.lag is None:
            return None
        return self.end_offset + self.lag


class PastElection(NamedTuple):
    at: Millis
    leader: NodeId
    leader_before: NodeId
    reason: str
    is_clean: bool


class Loss(NamedTuple):
    """The loss of committed records from `to_offset` up to, but excluding, `from_offset`."""

    at: Millis
    from_offset: Offset
    to_offset: Offset

    def overlaps(self, other: "Loss") -> bool:
        return self.to_offset < other.from_offset and other.to_offset < self.from_offset

    def joined(self, other: "Loss") -> "Loss":
        return Loss(
            min(self.at, other.at),
            max(self.from_offset, other.from_offset),
            min(self.to_offset, other.to_offset),
        )


class BrokerStanding(NamedTuple):
    """Whether a broker is fenced, since what time, and why."""

    is_fenced: bool
    since: Millis
    reason: str


@dataclass(slots=True)
class PartitionHistory:
    members: dict[NodeId, IsrMembership] = field(default_factory=dict)
    followers: dict[NodeId, FollowerHistory] = field(default_factory=dict)
    election: PastElection | None = None
    losses: list[Loss] = field(default_factory=list)
    """The losses in order of time. The offsets of two losses do not overlap."""
    _elected_in: int = NOT_KNOWN
    _told_in: dict[NodeId, int] = field(default_factory=dict)
    """The partition epoch of the latest event about each member."""

    def began(self, at: Millis) -> None:
        """Note the creation of the topic. Older facts belong to a deleted topic and are dropped."""
        for broker, known in list(self.members.items()):
            if known.since < at:
                del self.members[broker]
                self._told_in.pop(broker, None)
        self.followers = {
            broker: known for broker, known in self.followers.items() if known.told_at >= at
        }
        self.losses = [known for known in self.losses if known.at >= at]
        if self.election is not None and self.election.at < at:
            self._elected_in = NOT_KNOWN

    def learn(self, broker: NodeId, member: IsrMembership, partition_epoch: int) -> None:
        if partition_epoch >= self._told_in.get(broker, NOT_KNOWN):
            self._told_in[broker] = partition_epoch
            known = self.members.get(broker)
            if known is None or not known.is_in_sync or not member.is_in_sync:
                self.members[broker] = member

    def elect(self, election: PastElection, partition_epoch: int) -> None:
        if partition_epoch >= self._elected_in:
            self._elected_in, self.election = partition_epoch, election

    def lose(self, loss: Loss) -> None:
        """Add a loss. Several replicas may report parts of one loss, so overlaps are merged."""
        others = [known for known in self.losses if not known.overlaps(loss)]
        whole = reduce(Loss.joined, (known for known in self.losses if known.overlaps(loss)), loss)
        self.losses = sorted([*others, whole])


class ReplicaHistory:
    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, PartitionHistory] = {}
        self.brokers: dict[NodeId, BrokerStanding] = {}
        self.begins_at: Millis | None = None
        """The time before which events are unknown; None if no events are missing."""

    def of(self, partition: TopicPartition) -> PartitionHistory:
        return self.partitions.setdefault(partition, PartitionHistory())

    def note(self, event: Event) -> None:
        """Add the next event of the topic; an unknown event is ignored."""
        kind, ts = event.get("event"), event["ts"]
        if kind in ("broker_fenced", "broker_unfenced"):
            standing = BrokerStanding(kind == "broker_fenced", ts, event["reason"])
            self.brokers[event["broker"]] = standing
            return
        if "topic" not in event:
            return
        history = self.of(TopicPartition(event["topic"], event["partition"]))
        match kind:
            case "isr_shrink":
                _shrunk(history, event)
            case "isr_expand":
                for broker in event["joined"]:
                    history.learn(broker, IsrMembership(True, ts), _epoch_of(event))
            case "leader_elected":
                _elected(history, event)
            case "unclean_loss":
                history.lose(Loss(ts, event["from_offset"], event["to_offset"]))
            case "replica_state":
                _state(history, event)


def _shrunk(history: PartitionHistory, event: Event) -> None:
    leader_end = event.get("leader_end_offset")
    for left in event["left"]:
        end = left["end_offset"]
        lag = None if leader_end is None or end is None else max(0, leader_end - end)
        member = IsrMembership(False, event["ts"], left["reason"], end, left["lag_ms"], lag)
        history.learn(left["broker"], member, _epoch_of(event))


def _elected(history: PartitionHistory, event: Event) -> None:
    ts = event["ts"]
    if event["reason"] == "created":
        history.began(ts)
    for broker in event["isr"]:
        history.learn(broker, IsrMembership(True, ts), _epoch_of(event))
    election = PastElection(
        ts, event["leader"], event["leader_before"], event["reason"], event["clean"]
    )
    history.elect(election, _epoch_of(event))


def _epoch_of(event: Event) -> int:
    epoch: int = event.get("partition_epoch", NOT_KNOWN)
    return epoch


def _state(history: PartitionHistory, event: Event) -> None:
    history.followers = {
        one["broker"]: FollowerHistory(
            event["ts"],
            event["leader"],
            one["end_offset"],
            one["lag"],
            one["lag_ms"],
            one["in_sync"],
        )
        for one in event["followers"]
    }
