"""The request that reassigns a partition of a simulated cluster."""

from datetime import timedelta

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)


def reassign(topic: str, replicas: list[int]) -> AlterPartitionReassignmentsRequest:
    partition = ReassignablePartition(partition_index=0, replicas=tuple(replicas))
    return AlterPartitionReassignmentsRequest(
        timeout=timedelta(seconds=10),
        topics=(ReassignableTopic(name=topic, partitions=(partition,)),),
    )
