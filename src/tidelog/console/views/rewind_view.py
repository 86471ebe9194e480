"""The page that goes back in time: the events of a partition, and its lanes at one moment."""

import time
from typing import Any

from tidelog.client.client import Client
from tidelog.console.views.partition_view import paragraphs
from tidelog.insight.explanation import explain
from tidelog.insight.replica_history import Event
from tidelog.insight.rewinding import as_lanes, partition_at, past_events, recorded_events
from tidelog.model.ids import Millis, TopicPartition

KEEP_SECONDS = 10.0
"""How long the events of a partition are kept, so that a moved slider does not read them again."""


class Rewinder:
    """The events of the partition that was asked for last."""

    def __init__(self) -> None:
        self._kept: tuple[TopicPartition, float, list[Event]] | None = None

    def _events(self, client: Client, partition: TopicPartition) -> list[Event]:
        kept = self._kept
        if kept is not None and kept[0] == partition and time.monotonic() - kept[1] < KEEP_SECONDS:
            return kept[2]
        events = recorded_events(client, partition)
        self._kept = (partition, time.monotonic(), events)
        return events

    def timeline(self, client: Client, partition: TopicPartition) -> dict[str, Any]:
        events = self._events(client, partition)
        return {
            "topic": partition.topic,
            "partition": partition.partition,
            "events": [one._asdict() for one in past_events(events)],
            "moments": sorted({one["ts"] for one in events if "topic" in one}),
        }

    def moment(self, client: Client, partition: TopicPartition, at: Millis) -> dict[str, Any]:
        past = partition_at(self._events(client, partition), at)
        lines = list(explain(past.facts(partition, at)))
        return {**as_lanes(past), "at": at, "explanation": paragraphs(lines)}
