"""Reads the replication events that a cluster has recorded."""

import json
from typing import Any

from tidelog.client.client import Client
from tidelog.client.fetcher import Fetcher
from tidelog.client.log_offsets import EARLIEST, LATEST
from tidelog_pipelines.transformations.events import TOPIC as EVENTS


def recorded_events(client: Client) -> list[dict[str, Any]]:
    """The events that the cluster has recorded so far; nodes record them with a short delay."""
    client.partitions(EVENTS)
    fetcher = Fetcher(client, EVENTS)
    fetcher.start([0], EARLIEST)
    end = fetcher.end_of(0, LATEST)
    found = []
    while fetcher.positions[0] < end:
        found += [json.loads(one.record.value or b"{}") for one in fetcher.poll()]
    return found
