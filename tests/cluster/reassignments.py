"""Reassigns partitions of a real cluster, and lists the reassignments in progress."""

from typing import TypeVar

from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_partition_reassignments.v0.response import (
    AlterPartitionReassignmentsResponse,
)
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
)
from kio.static.protocol import RequestPayload, ResponsePayload
from tests.clients.systems import PATIENCE

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster

R = TypeVar("R", bound=ResponsePayload)


def change(cluster: Cluster, request: RequestPayload, response: type[R]) -> R:
    """Send the request to the active controller, with a long timeout.

    The long timeout avoids a retry, because a retry could find that the change is already made.
    """
    return cluster.ask(request, response, cluster.controller(), PATIENCE)


def reassign(cluster: Cluster, topic: str, replicas: list[NodeId] | None) -> ErrorCode:
    """Reassign partition 0; None cancels its reassignment."""
    wanted = None if replicas is None else tuple(replicas)
    partition = ReassignablePartition(partition_index=0, replicas=wanted)
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name=topic, partitions=(partition,)),)
    )
    answer = change(cluster, request, AlterPartitionReassignmentsResponse)
    assert answer.error_code is ErrorCode.none
    return answer.responses[0].partitions[0].error_code


def moves(cluster: Cluster) -> list[OngoingPartitionReassignment]:
    request = ListPartitionReassignmentsRequest(topics=None)
    answer = cluster.ask(request, ListPartitionReassignmentsResponse)
    return [one for topic in answer.topics for one in topic.partitions]
