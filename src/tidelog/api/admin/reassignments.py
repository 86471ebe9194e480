"""ElectLeaders (key 43), versions 0-2; AlterPartitionReassignments (45), 0-1;
ListPartitionReassignments (46), version 0 (KIP-455).

The controller handles ElectLeaders and AlterPartitionReassignments. ElectLeaders elects preferred
leaders (KIP-183); version 1 adds unclean elections (KIP-460). AlterPartitionReassignments 1 adds an
option to keep the replication factor (KIP-860).

ListPartitionReassignments lists the partitions that are being reassigned. If the list of topics is
null, it lists the partitions of all topics. `kafka-topics --describe` sends this request.
"""

from collections.abc import Iterable
from datetime import timedelta

from kio.schema.list_partition_reassignments.v0.response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

from tidelog.api.handler import Handling, Request
from tidelog.controller.image.image import TopicImage
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode


def elect_leaders(request: Request) -> Handling:
    """Elects preferred leaders, or any live replica in an unclean election."""
    return (yield ChangeMetadata(request.message))


def alter_partition_reassignments(request: Request) -> Handling:
    """Starts or cancels reassignments of partitions to other replicas."""
    return (yield ChangeMetadata(request.message))


def list_partition_reassignments(request: Request) -> ListPartitionReassignmentsResponse:
    """Lists the reassignments in progress."""
    topics, asked = request.image.topics, request.message.topics
    if asked is None:
        found = [_ongoing(topics[name], topics[name].partitions) for name in sorted(topics)]
    else:
        found = [
            _ongoing(topics[topic.name], topic.partition_indexes)
            for topic in asked
            if topic.name in topics
        ]
    return ListPartitionReassignmentsResponse(
        throttle_time=timedelta(0),
        error_code=ErrorCode.none,
        error_message=None,
        topics=tuple(topic for topic in found if topic.partitions),
    )


def _ongoing(topic: TopicImage, indexes: Iterable[int]) -> OngoingTopicReassignment:
    return OngoingTopicReassignment(
        name=topic.name,
        partitions=tuple(
            OngoingPartitionReassignment(
                partition_index=index,
                replicas=partition.replicas,
                adding_replicas=partition.adding,
                removing_replicas=partition.removing,
            )
            for index in sorted(indexes)
            if (partition := topic.partitions.get(index)) and partition.is_reassigning
        ),
    )
