"""The page of the cluster: the verdict, the brokers, the quorum, and the unhealthy partitions."""

import time
from collections.abc import Sequence
from typing import Any

from kio.schema.describe_cluster.v2.request import DescribeClusterRequest

from tidelog.client import admin
from tidelog.client.administration import quorum_admin
from tidelog.client.administration.config_admin import describe_configs
from tidelog.client.client import Client
from tidelog.config.resource_type import ResourceType
from tidelog.insight.verdict import PartitionHealth, verdict
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.model.user_error import UserError

MOST_LISTED = 200
"""At most this number of unhealthy partitions is listed; the count tells of the others."""
CONFIG_SECONDS = 10.0
"""How long the configurations of topics are not asked for again."""


class MinIsrs:
    """min.insync.replicas of each topic, read again after some seconds or for new topics."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._read_at = 0.0

    def of(self, client: Client, topics: Sequence[str]) -> dict[str, int]:
        now = time.monotonic()
        if now - self._read_at > CONFIG_SECONDS or not self._known.keys() >= set(topics):
            self._known = _min_isrs(client, topics)
            self._read_at = now
        return self._known


def _min_isrs(client: Client, topics: Sequence[str]) -> dict[str, int]:
    if not topics:
        return {}
    try:
        configs = describe_configs(client, ResourceType.TOPIC, topics)
    except UserError:
        return {}  # the user may not be allowed to describe configurations
    return {
        topic: int(one.value)
        for topic, entries in configs.items()
        for one in entries
        if one.name == "min.insync.replicas" and one.value
    }


def cluster_view(client: Client, min_isrs: MinIsrs) -> dict[str, Any]:
    topics = admin.topics(client)
    names = [one.name for one in topics]
    minimum = min_isrs.of(client, names)
    described = admin.describe_from_metadata(client, names) if names else []
    partitions = [
        PartitionHealth(
            TopicPartition(topic.name, one.number),
            one.leader,
            one.replicas,
            one.isr,
            minimum.get(topic.name),
        )
        for topic in described
        for one in topic.partitions
    ]
    controller = quorum_admin.active_controller(client)
    quorum = _quorum(client)
    voters = None if quorum is None else len(quorum["voters"])
    found = verdict(partitions, has_controller=controller is not None, voters=voters)
    sick = [one for one in partitions if one.is_under_replicated or not one.is_available]
    sick.sort(key=lambda one: (one.is_available, one.spare, one.partition))
    return {
        "verdict": found._asdict(),
        "brokers": _brokers(client, partitions, controller),
        "controller": controller,
        "quorum": quorum,
        "topics": _topic_rows(topics, partitions),
        "partitions": len(partitions),
        "unhealthy": [health_row(one) for one in sick[:MOST_LISTED]],
        "unhealthy_count": len(sick),
    }


def _topic_rows(
    topics: Sequence[admin.Topic], partitions: Sequence[PartitionHealth]
) -> list[dict[str, Any]]:
    by_topic: dict[str, list[PartitionHealth]] = {}
    for one in partitions:
        by_topic.setdefault(one.partition.topic, []).append(one)
    return [_topic_row(topic, by_topic.get(topic.name, [])) for topic in topics]


def _topic_row(topic: admin.Topic, partitions: Sequence[PartitionHealth]) -> dict[str, Any]:
    return {
        "name": topic.name,
        "internal": topic.is_internal,
        "partitions": len(partitions),
        "replicas": max((len(one.replicas) for one in partitions), default=0),
        "min_isr": partitions[0].min_isr if partitions else None,
        "under_replicated": sum(one.is_under_replicated for one in partitions),
        "unavailable": sum(not one.is_available for one in partitions),
    }


def health_row(one: PartitionHealth) -> dict[str, Any]:
    return {
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "leader": one.leader,
        "replicas": one.replicas,
        "isr": one.isr,
        "min_isr": one.min_isr,
        "spare": one.spare,
    }


def _brokers(
    client: Client, partitions: Sequence[PartitionHealth], controller: NodeId | None
) -> list[dict[str, Any]]:
    if client.speaks(DescribeClusterRequest):
        known = quorum_admin.describe_cluster(client).brokers
        brokers = {
            one.broker_id: (f"{one.host}:{one.port}", one.rack, one.is_fenced) for one in known
        }
    else:
        answer = client.metadata(())
        brokers = {
            one.node_id: (f"{one.host}:{one.port}", one.rack, False) for one in answer.brokers
        }
    leads: dict[NodeId, int] = {}
    holds: dict[NodeId, int] = {}
    lags: dict[NodeId, int] = {}
    for one in partitions:
        leads[one.leader] = leads.get(one.leader, 0) + 1
        for node in one.replicas:
            holds[node] = holds.get(node, 0) + 1
            if node not in one.isr:
                lags[node] = lags.get(node, 0) + 1
    return [
        {
            "id": node,
            "address": brokers[node][0] if node in brokers else None,
            "rack": brokers[node][1] if node in brokers else None,
            "state": "down" if node not in brokers or brokers[node][2] else "up",
            "is_controller": node == controller,
            "leads": leads.get(node, 0),
            "replicas": holds.get(node, 0),
            "out_of_sync": lags.get(node, 0),
        }
        for node in sorted(brokers.keys() | holds.keys())
    ]


def _quorum(client: Client) -> dict[str, Any] | None:
    try:
        answer = quorum_admin.describe_quorum(client)
    except UserError:
        return None
    partition = answer.topics[0].partitions[0]
    return {
        "leader": partition.leader_id,
        "epoch": partition.leader_epoch,
        "high_watermark": partition.high_watermark,
        "voters": [
            {"id": one.replica_id, "log_end_offset": one.log_end_offset}
            for one in partition.current_voters
        ],
    }
