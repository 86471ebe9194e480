"""What a story asks of the cluster besides what every simulated client does."""

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
    """Let these brokers hold the partition from now on."""
    one = ReassignablePartition(partition_index=partition.partition, replicas=tuple(replicas))
    return AlterPartitionReassignmentsRequest(
        timeout=timedelta(seconds=10),
        topics=(ReassignableTopic(name=partition.topic, partitions=(one,)),),
    )
