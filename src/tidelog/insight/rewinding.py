"""A partition as it was at an earlier moment, from the replication events up to then."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidelog.client.client import Client
from tidelog.insight.event_log import EventLog
from tidelog.insight.partition_facts import Facts
from tidelog.insight.replica_history import Event, ReplicaHistory
from tidelog.insight.wording import brokers, count
from tidelog.model.ids import NO_NODE, LeaderEpoch, Millis, NodeId, Offset, TopicPartition
from tidelog.model.user_error import UserError


class RecordedEvents(ReplicaHistory):
    """A history that also keeps its events."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []

    def note(self, event: Event) -> None:
        super().note(event)
        self.events.append(event)


def recorded_events(client: Client, partition: TopicPartition) -> list[Event]:
    """The events of one partition and of all brokers, as far back as they are read."""
    log = EventLog(client, [partition])
    recorded = RecordedEvents()
    log.history = recorded
    log.catch_up()
    if log.missing is not None:
        raise UserError(f"{log.missing}.")
    return sorted(recorded.events, key=lambda one: one["ts"])


class PastEvent(NamedTuple):
    at: Millis
    kind: str
    text: str


def past_events(events: Sequence[Event]) -> Iterator[PastEvent]:
    """Every event but the periodic states, in one sentence each."""
    for event in events:
        text = _sentence(event)
        if text is not None:
            yield PastEvent(event["ts"], event["event"], text)


def _sentence(event: Event) -> str | None:
    match event.get("event"):
        case "leader_elected" if event["leader"] == NO_NODE:
            return f"The partition lost its leader ({event['reason']})."
        case "leader_elected":
            how = "" if event["clean"] else ", uncleanly"
            return (
                f"Broker {event['leader']} was elected leader in epoch {event['leader_epoch']}"
                f"{how} ({event['reason']})."
            )
        case "isr_shrink":
            left = ", ".join(f"{one['broker']} ({one['reason']})" for one in event["left"])
            return f"Left the in-sync set: {left}."
        case "isr_expand":
            return f"Joined the in-sync set: {brokers(event['joined'], word=False)}."
        case "broker_fenced":
            return f"Broker {event['broker']} was fenced ({event['reason']})."
        case "broker_unfenced":
            return f"Broker {event['broker']} was unfenced ({event['reason']})."
        case "truncated":
            number = event["from_offset"] - event["to_offset"]
            return f"Broker {event['node']} truncated {count(number, 'record')}."
        case "unclean_loss":
            number = event["from_offset"] - event["to_offset"]
            return f"{count(number, 'committed record')} lost."
        case _:
            return None


@dataclass(slots=True)
class PastPartition:
    """What the events up to a moment tell about a partition."""

    leader: NodeId = NO_NODE
    leader_epoch: LeaderEpoch = -1
    isr: tuple[NodeId, ...] = ()
    elr: tuple[NodeId, ...] = ()
    replicas: tuple[NodeId, ...] = ()
    min_isr: int = 1
    start: Offset | None = None
    high_watermark: Offset | None = None
    ends: dict[NodeId, Offset | None] = field(default_factory=dict)
    epochs: list[tuple[LeaderEpoch, Offset]] = field(default_factory=list)
    down: set[NodeId] = field(default_factory=set)
    history: ReplicaHistory = field(default_factory=ReplicaHistory)

    def note(self, event: Event) -> None:
        self.history.note(event)
        match event.get("event"):
            case "broker_fenced":
                self.down.add(event["broker"])
            case "broker_unfenced":
                self.down.discard(event["broker"])
            case "leader_elected":
                self._lead(event)
                self.elr = tuple(event.get("elr") or ())
            case "isr_shrink" | "isr_expand":
                self._lead(event)
            case "replica_state":
                self._lead(event)
                self._offsets(event)
            case "truncated":
                self.ends[event["node"]] = event["to_offset"]

    def _lead(self, event: Event) -> None:
        epoch = event["leader_epoch"]
        if epoch > self.leader_epoch:
            known = [one for one in self.ends.values() if one is not None]
            self.epochs.append((epoch, max(known, default=0)))
        if epoch >= self.leader_epoch:
            self.leader, self.leader_epoch = event["leader"], epoch
            self.isr, self.replicas = tuple(event["isr"]), tuple(event["replicas"])
            self.min_isr = event["min_isr"]

    def _offsets(self, event: Event) -> None:
        self.high_watermark, self.start = event["high_watermark"], event["log_start_offset"]
        self.ends[event["leader"]] = event["end_offset"]
        for one in event["followers"]:
            if one["end_offset"] is not None:
                self.ends[one["broker"]] = one["end_offset"]

    def facts(self, partition: TopicPartition, at: Millis) -> Facts:
        up = frozenset(one for one in self.replicas if one not in self.down)
        return Facts(
            partition=partition,
            now=at,
            leader=self.leader,
            replicas=self.replicas,
            isr=self.isr,
            elr=self.elr,
            min_isr=self.min_isr,
            up=up,
            offline=tuple(one for one in self.replicas if one in self.down),
            ends={one: self.ends.get(one, 0) if one in up else None for one in self.replicas},
            history=self.history.of(partition),
            brokers=self.history.brokers,
        )


def partition_at(events: Sequence[Event], at: Millis) -> PastPartition:
    """The partition at a moment; `events` are in the order of time."""
    past = PastPartition()
    for event in events:
        if event["ts"] > at:
            break
        past.note(event)
    if not past.replicas:
        raise UserError("the events do not go back to this moment.")
    return past


def as_lanes(past: PastPartition) -> dict[str, Any]:
    """The replicas of a past moment, in the form in which a page draws them."""
    top = max((one for one in past.ends.values() if one is not None), default=0)
    return {
        "leader": past.leader,
        "epoch": past.leader_epoch,
        "epochs": past.epochs,
        "start": past.start,
        "high_watermark": past.high_watermark,
        "replicas": [
            {
                "id": one,
                "end": None if one in past.down else past.ends.get(one),
                "lag": max(0, top - (past.ends.get(one) or 0)),
                "in_sync": one in past.isr,
            }
            for one in past.replicas
        ],
    }
