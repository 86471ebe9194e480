"""Requests that only stories send."""

from collections.abc import Sequence
from datetime import timedelta

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)

from tidelog.model.ids import NodeId, TopicPartition


def reassign(
    partition: TopicPartition, replicas: Sequence[NodeId]
) -> AlterPartitionReassignmentsRequest:
    """Reassign the partition to these brokers."""
    one = ReassignablePartition(partition_index=partition.partition, replicas=tuple(replicas))
    return AlterPartitionReassignmentsRequest(
        timeout=timedelta(seconds=10),
        topics=(ReassignableTopic(name=partition.topic, partitions=(one,)),),
    )
