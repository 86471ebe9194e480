"""Starts, cancels and lists reassignments, and moves replicas between log directories."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any, NamedTuple

from kio.schema.alter_partition_reassignments.v0 import request as plain
from kio.schema.alter_partition_reassignments.v0.response import AlterPartitionReassignmentsResponse
from kio.schema.alter_partition_reassignments.v1 import request as strict
from kio.schema.alter_partition_reassignments.v1.response import (
    AlterPartitionReassignmentsResponse as StrictResponse,
)
from kio.schema.alter_replica_log_dirs.v2 import request as move
from kio.schema.alter_replica_log_dirs.v2.response import AlterReplicaLogDirsResponse

from tidelog.client.administration.partition_admin import check
from tidelog.client.client import Client
from tidelog.client.kafka_exceptions import default_message
from tidelog.client.partitions import by_topic
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, TopicPartition

TIMEOUT = timedelta(seconds=30)


class ReplicaPlace(NamedTuple):
    """A replica of a partition on a broker. Sorted by broker, as Kafka's tool prints them."""

    broker: NodeId
    partition: TopicPartition

    def __str__(self) -> str:
        return f"{self.partition}-{self.broker}"


def reassign(
    client: Client,
    targets: Mapping[TopicPartition, Sequence[NodeId] | None],
    *,
    keep_factor: bool = False,
) -> dict[TopicPartition, str]:
    """Move partitions to these replicas (None cancels); returns the message of each error.

    With `keep_factor`, the controller refuses to change the number of replicas. This needs the
    newer version of the request.
    """
    answer: AlterPartitionReassignmentsResponse | StrictResponse
    if keep_factor:
        request = strict.AlterPartitionReassignmentsRequest(
            timeout=TIMEOUT, allow_replication_factor_change=False, topics=_topics(strict, targets)
        )
        answer = client.ask(request, StrictResponse)
    else:
        answer = client.ask(
            plain.AlterPartitionReassignmentsRequest(
                timeout=TIMEOUT, topics=_topics(plain, targets)
            ),
            AlterPartitionReassignmentsResponse,
        )
    check(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, one.partition_index): one.error_message
        or default_message(one.error_code)
        for topic in answer.responses
        for one in topic.partitions
        if one.error_code is not ErrorCode.none
    }


def _topics(
    version: Any, targets: Mapping[TopicPartition, Sequence[NodeId] | None]
) -> tuple[Any, ...]:
    return tuple(
        version.ReassignableTopic(
            name=topic,
            partitions=tuple(
                version.ReassignablePartition(
                    partition_index=one.partition, replicas=_replicas(targets[one])
                )
                for one in members
            ),
        )
        for topic, members in by_topic(targets)
    )


def _replicas(replicas: Sequence[NodeId] | None) -> tuple[NodeId, ...] | None:
    return None if replicas is None else tuple(replicas)


def move_replicas(
    client: Client, node: NodeId, paths: Mapping[TopicPartition, str]
) -> dict[TopicPartition, ErrorCode]:
    """Ask a broker to move its replicas of these partitions to other log directories."""
    ordered = sorted((path, where) for where, path in paths.items())
    request = move.AlterReplicaLogDirsRequest(
        dirs=tuple(
            move.AlterReplicaLogDir(
                path=path,
                topics=tuple(
                    move.AlterReplicaLogDirTopic(
                        name=topic, partitions=tuple(one.partition for one in partitions)
                    )
                    for topic, partitions in by_topic(where for _, where in members)
                ),
            )
            for path, members in groupby(ordered, key=lambda one: one[0])
        )
    )
    answer = client.ask_node(node, request, AlterReplicaLogDirsResponse)
    return {
        TopicPartition(topic.topic_name, one.partition_index): one.error_code
        for topic in answer.results
        for one in topic.partitions
    }
