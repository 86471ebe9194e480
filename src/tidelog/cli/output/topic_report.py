"""Kafka's report on topics: a line per topic and per partition, with tabs between columns."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from tidelog.client import admin
from tidelog.client.administration.config_admin import Config, describe_configs
from tidelog.client.client import Client
from tidelog.config.resource_type import ResourceType
from tidelog.model.ids import ZERO_TOPIC_ID, NodeId, TopicPartition


class Filter(NamedTuple):
    """Selects the partitions to show. If no field is set, all partitions are shown."""

    under_replicated: bool = False
    at_min_isr: bool = False
    under_min_isr: bool = False
    unavailable: bool = False

    def wants(
        self, partition: admin.PartitionDescription, replication_factor: int, min_isr: int
    ) -> bool:
        has_leader = partition.leader >= 0
        isr = len(partition.isr)
        return (
            not any(self)
            or (self.under_replicated and isr < replication_factor)
            or (self.at_min_isr and isr == min_isr)
            or (self.under_min_isr and (not has_leader or isr < min_isr))
            or (self.unavailable and not has_leader)
        )


def report(
    client: Client, described: Sequence[admin.Described], only: Filter, *, overrides: bool
) -> Iterator[str]:
    """The lines of `--describe`; with `overrides`, only for topics with configuration overrides."""
    if not described:
        return
    names = [topic.name for topic in described]
    configs = describe_configs(client, ResourceType.TOPIC, names)
    moving = admin.ongoing_reassignments(client)
    for topic in described:
        config = configs[topic.name]
        changed = [one for one in config if not one.is_default]
        if not any(only) and (changed or not overrides):
            yield _topic_line(topic, changed, moving)
        if overrides:
            continue
        for partition in topic.partitions:
            move = moving.get(TopicPartition(topic.name, partition.number))
            factor = _replication_factor(partition, move)
            if only.wants(partition, factor, _min_isr(config)):
                yield _partition_line(topic.name, partition, move)


def _topic_line(
    topic: admin.Described,
    changed: Sequence[Config],
    moving: dict[TopicPartition, admin.Reassignment],
) -> str:
    first = topic.partitions[0]
    factor = _replication_factor(first, moving.get(TopicPartition(topic.name, first.number)))
    columns = [
        f"Topic: {topic.name}",
        *([f"TopicId: {topic_id_text(topic.id)}"] if topic.id not in (None, ZERO_TOPIC_ID) else []),
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {factor}",
        f"Configs: {','.join(f'{one.name}={one.value}' for one in changed)}",
    ]
    return "\t".join(columns)


def _partition_line(
    topic: str, partition: admin.PartitionDescription, move: admin.Reassignment | None
) -> str:
    columns = [
        f"\tTopic: {topic}",
        f"Partition: {partition.number}",
        f"Leader: {partition.leader if partition.leader >= 0 else 'none'}",
        f"Replicas: {_ids(partition.replicas)}",
        f"Isr: {_ids(partition.isr)}",
    ]
    if move is not None:
        columns += [f"Adding Replicas: {_ids(move.adding)}"]
        columns += [f"Removing Replicas: {_ids(move.removing)}"]
    columns += [f"Elr: {_ids(partition.elr)}", f"LastKnownElr: {_ids(partition.last_known_elr)}"]
    return "\t".join(columns)


def topic_id_text(topic_id: UUID | None) -> str:
    assert topic_id is not None
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _ids(nodes: Sequence[NodeId] | None) -> str:
    return "N/A" if nodes is None else ",".join(map(str, nodes))


def _replication_factor(
    partition: admin.PartitionDescription, move: admin.Reassignment | None
) -> int:
    """The number of replicas, without the replicas that a reassignment is adding."""
    return len(partition.replicas) - (len(move.adding) if move else 0)


def _min_isr(config: Sequence[Config]) -> int:
    return next((int(one.value or 1) for one in config if one.name == "min.insync.replicas"), 1)
