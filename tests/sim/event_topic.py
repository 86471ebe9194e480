"""Reads the replication events of a simulated cluster, and compares them with the metadata log.

Every event must report a committed change, and no change may be reported twice.
"""

import json
from collections import Counter
from typing import Any

from tests.sim.messages import records_in

from tidelog.controller.image.apply import apply_all
from tidelog.controller.image.image import ClusterImage, PartitionImage
from tidelog.model.ids import NO_NODE, NodeId, TopicPartition
from tidelog.model.replication_events import REPLICATION_EVENTS
from tidelog.protocol.metadata.codec import decode_record
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import read_records
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

OF_PARTITIONS = ("isr_shrink", "isr_expand", "leader_elected")


def events(cluster: SimCluster, *kinds: str, topic: str | None = None) -> list[dict[str, Any]]:
    """The events in order, filtered by kind and topic if given."""
    leader = leader_of_events(cluster)
    if leader < 0 or not cluster.hosts[leader].is_up:
        return []
    recorded = []
    for record in records_in(_log(cluster.hosts[leader], f"{REPLICATION_EVENTS}-0")):
        event = json.loads(record.value)
        assert (event["v"], event["ts"]) == (1, record.timestamp)
        number = event["partition"] if "topic" in event else event["broker"]
        assert record.key == f"{event.get('topic', 'broker')}-{number}".encode()
        recorded.append(event)
    return [
        one
        for one in recorded
        if (not kinds or one["event"] in kinds) and topic in (None, one.get("topic"))
    ]


def leader_of_events(cluster: SimCluster) -> NodeId:
    """The leader of the topic of events, from the first node that knows the topic; -1 for none."""
    for host in cluster.up:
        placed = host.node.image.partition(TopicPartition(REPLICATION_EVENTS, 0))
        if placed is not None:
            return placed.leader
    return NO_NODE


def check_events(cluster: SimCluster) -> int:
    """Check that each reported change is in the metadata log and reported once; count them."""
    history = _history(cluster.up[0])
    recorded = events(cluster, *OF_PARTITIONS)
    for event in recorded:
        key = (event["topic"], event["partition"], event["partition_epoch"])
        placed = history[key]
        assert sorted(event["isr"]) == sorted(placed.isr), event
        assert (event["leader"], event["leader_epoch"]) == (placed.leader, placed.leader_epoch)
        assert sorted(event["replicas"]) == sorted(placed.replicas), event
    times = Counter(
        (one["event"], one["topic"], one["partition"], one["partition_epoch"]) for one in recorded
    )
    assert not [one for one, count in times.items() if count > 1], "told twice"
    of_brokers = Counter(
        (one["event"], one["broker"], one["broker_epoch"], one["ts"])
        for one in events(cluster, "broker_fenced", "broker_unfenced")
    )
    assert not [one for one, count in of_brokers.items() if count > 1], "told twice"
    return len(recorded)


def _history(host: SimHost) -> dict[tuple[str, int, int], PartitionImage]:
    """Every state of every partition, by partition epoch, from the metadata log."""
    history: dict[tuple[str, int, int], PartitionImage] = {}
    image = ClusterImage()
    data = _log(host, "__cluster_metadata-0")
    for at, header in iterate(data):
        if header.is_control:
            continue
        for record in read_records(data[at : at + header.size]):
            assert record.value is not None
            image = apply_all(image, [decode_record(record.value)], record.offset, 0)
            for name, topic in image.topics.items():
                for index, placed in topic.partitions.items():
                    history[name, index, placed.partition_epoch] = placed
    return history


def _log(host: SimHost, directory: str) -> bytes:
    names = sorted(name for name in host.disk.list(directory) if name.endswith(".log"))
    return b"".join(host.disk.read_file(f"{directory}/{name}") for name in names)
