"""What the topic of replication events tells of partitions and brokers, kept as far as it matters.

Built by noting events in the order of the topic; what it does not know it does not guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidelog.model.ids import Millis, NodeId, Offset, TopicPartition

Event = Mapping[str, Any]


class Membership(NamedTuple):
    """In or out of the in-sync set, since when, and why."""

    is_in_sync: bool
    since: Millis
    reason: str | None = None
    end_offset: Offset | None = None
    lag_ms: Millis | None = None
    lag: int | None = None
    """How many records it lacked when it left."""


class Follower(NamedTuple):
    """A follower as its leader last told of it."""

    told_at: Millis
    end_offset: Offset | None
    lag: int | None
    lag_ms: Millis | None
    last_fetch_ms: Millis | None

    def lag_ms_at(self, now: Millis) -> Millis | None:
        """For how long it has lacked something; one that lacked nothing when told of: 0."""
        if self.lag_ms is None or self.lag_ms == 0:
            return self.lag_ms
        return self.lag_ms + max(0, now - self.told_at)


class Election(NamedTuple):
    at: Millis
    leader: NodeId
    leader_before: NodeId
    reason: str
    is_clean: bool


class Loss(NamedTuple):
    at: Millis
    node: NodeId
    from_offset: Offset
    to_offset: Offset


class Standing(NamedTuple):
    """A broker, fenced or not, since when, and why."""

    is_fenced: bool
    since: Millis
    reason: str


@dataclass(slots=True)
class PartitionHistory:
    members: dict[NodeId, Membership] = field(default_factory=dict)
    followers: dict[NodeId, Follower] = field(default_factory=dict)
    election: Election | None = None
    loss: Loss | None = None
    """The last that is known."""
    high_watermark: Offset | None = None
    """The highest that a leader has told."""


class ReplicaHistory:
    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, PartitionHistory] = {}
        self.brokers: dict[NodeId, Standing] = {}

    def of(self, partition: TopicPartition) -> PartitionHistory:
        return self.partitions.setdefault(partition, PartitionHistory())

    def note(self, event: Event) -> None:
        """The next event of the topic; one that is not known is passed over."""
        kind, ts = event.get("event"), event["ts"]
        if kind in ("broker_fenced", "broker_unfenced"):
            standing = Standing(kind == "broker_fenced", ts, event["reason"])
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
                    history.members[broker] = Membership(True, ts)
            case "leader_elected":
                _elected(history, event)
            case "unclean_loss":
                lost = (event["from_offset"], event["to_offset"])
                history.loss = Loss(ts, event["node"], *lost)
            case "replica_state":
                _state(history, event)


def _shrunk(history: PartitionHistory, event: Event) -> None:
    leader_end = event.get("leader_end_offset")
    for left in event["left"]:
        end = left["end_offset"]
        lag = None if leader_end is None or end is None else max(0, leader_end - end)
        history.members[left["broker"]] = Membership(
            False, event["ts"], left["reason"], end, left["lag_ms"], lag
        )


def _elected(history: PartitionHistory, event: Event) -> None:
    ts = event["ts"]
    if event["reason"] == "created":
        history.members.clear()
    for broker in event["isr"]:
        known = history.members.get(broker)
        if known is None or not known.is_in_sync:
            history.members[broker] = Membership(True, ts)
    history.election = Election(
        ts, event["leader"], event["leader_before"], event["reason"], event["clean"]
    )


def _state(history: PartitionHistory, event: Event) -> None:
    history.high_watermark = event["high_watermark"]
    history.followers = {
        one["broker"]: Follower(
            event["ts"], one["end_offset"], one["lag"], one["lag_ms"], one["last_fetch_ms"]
        )
        for one in event["followers"]
    }
