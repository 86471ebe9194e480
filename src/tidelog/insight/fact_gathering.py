"""Collects the facts about partitions from a running cluster: Kafka's answers and past events."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_log_dirs.v4 import request as log_dirs
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse

from tidelog.client import admin
from tidelog.client.administration import quorum_admin
from tidelog.client.administration.config_admin import Config, describe_configs
from tidelog.client.client import Client
from tidelog.client.replica_offsets import PAGE, look
from tidelog.client.replica_offsets import PartitionOffsets as Looked
from tidelog.config.resource_type import ResourceType
from tidelog.insight.event_log import EventLog
from tidelog.insight.partition_facts import Facts, Speed
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.model.user_error import UserError

SAMPLE_SECONDS = 1.0
"""How long to measure the speed of a replica that catches up."""


class _Sample(NamedTuple):
    """The offsets and sizes of the replicas at one moment."""

    at: float
    looked: dict[TopicPartition, Looked]
    sizes: dict[tuple[NodeId, TopicPartition], int]


def gather(client: Client, topic: str, partition: int | None) -> list[Facts]:
    """The facts about the partitions of a topic, or about one of them."""
    (described,) = admin.describe(client, [topic], PAGE)
    chosen = {
        TopicPartition(topic, one.number): one
        for one in described.partitions
        if partition in (None, one.number)
    }
    if not chosen:
        raise UserError(f"topic '{topic}' has no partition {partition}.")
    up = _alive(client)
    returning = [where for where, one in chosen.items() if _is_returning(one, up)]
    looked, speeds = _measure(client, topic, returning)
    events = EventLog(client, chosen)
    events.catch_up()
    config = describe_configs(client, ResourceType.TOPIC, [topic])[topic]
    moving = admin.ongoing_reassignments(client)
    controller = quorum_admin.active_controller(client)
    return [
        Facts(
            partition=where,
            now=round(time.time() * 1000),
            leader=one.leader,
            replicas=one.replicas,
            isr=one.isr,
            elr=one.elr or (),
            last_known_elr=one.last_known_elr or (),
            adding=moving[where].adding if where in moving else (),
            min_isr=int(_value(config, "min.insync.replicas", "1")),
            allows_unclean=_value(config, "unclean.leader.election.enable", "") == "true",
            up=up,
            offline=one.offline,
            ends={replica.node: replica.log_end_offset for replica in looked[where].replicas},
            speeds={node: speed for (node, of), speed in speeds.items() if of == where},
            controller=controller,
            history=events.history.of(where),
            brokers=events.history.brokers,
            events_missing=events.missing,
            events_since=events.history.begins_at,
        )
        for where, one in chosen.items()
    ]


def _alive(client: Client) -> frozenset[NodeId]:
    """The brokers that are not fenced. Metadata may still list brokers that have just died."""
    if not client.speaks(DescribeClusterRequest):
        return frozenset(client.node_ids())
    brokers = quorum_admin.describe_cluster(client).brokers
    return frozenset(one.broker_id for one in brokers if not one.is_fenced)


def _is_returning(one: admin.PartitionDescription, up: frozenset[NodeId]) -> bool:
    """Whether a live replica is out of sync and may be catching up."""
    return one.leader in up and any(r in up and r not in one.isr for r in one.replicas)


def _measure(
    client: Client, topic: str, returning: Sequence[TopicPartition]
) -> tuple[dict[TopicPartition, Looked], dict[tuple[NodeId, TopicPartition], Speed]]:
    """The offsets of all replicas, and the speed of replicas that catch up."""
    first = _sample(client, topic, returning)
    if not returning:
        return first.looked, {}
    time.sleep(SAMPLE_SECONDS)
    second = _sample(client, topic, returning)
    return second.looked, _speeds(first, second)


def _value(config: Sequence[Config], name: str, default: str) -> str:
    return next((one.value or default for one in config if one.name == name), default)


def _sample(client: Client, topic: str, sized: Sequence[TopicPartition]) -> _Sample:
    looked = {one.partition: one for one in look(client, [topic])}
    nodes = {replica.node for where in sized for replica in looked[where].replicas}
    sizes = {
        (node, where): size
        for node in sorted(nodes.intersection(client.node_ids()))
        for where, size in _sizes(client, node, sized).items()
    }
    return _Sample(time.monotonic(), looked, sizes)


def _sizes(
    client: Client, node: NodeId, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    request = log_dirs.DescribeLogDirsRequest(
        topics=(
            log_dirs.DescribableLogDirTopic(
                topic=partitions[0].topic, partitions=tuple(one.partition for one in partitions)
            ),
        )
    )
    try:
        answer = client.ask_node(node, request, DescribeLogDirsResponse)
    except UserError:
        return {}
    return {
        TopicPartition(topic.name, one.partition_index): one.partition_size
        for directory in answer.results
        for topic in directory.topics
        for one in topic.partitions
    }


def _speeds(before: _Sample, after: _Sample) -> dict[tuple[NodeId, TopicPartition], Speed]:
    seconds = max(0.001, after.at - before.at)
    speeds = {}
    for where, now in after.looked.items():
        ends = {one.node: one.log_end_offset for one in before.looked[where].replicas}
        for replica in now.replicas:
            was, end = ends.get(replica.node), replica.log_end_offset
            if was is None or end is None:
                continue
            key = (replica.node, where)
            grown = None
            if key in before.sizes and key in after.sizes:
                grown = max(0, after.sizes[key] - before.sizes[key]) / seconds
            speeds[key] = Speed(max(0, end - was) / seconds, grown)
    return speeds
