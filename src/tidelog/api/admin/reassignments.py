"""ElectLeaders (key 43), versions 0-2; AlterPartitionReassignments (45), 0-1;
ListPartitionReassignments (46), version 0 (KIP-455).

The controller elects and moves replicas: preferred leaders (KIP-183), unclean elections since
ElectLeaders 1 (KIP-460), the number of replicas as a thing to insist on since
AlterPartitionReassignments 1 (KIP-860).

ListPartitionReassignments gives the partitions whose replicas are being changed, of all topics
(null) or of those asked for; a partition that is not, or does not exist, is left out.
`kafka-topics --describe` asks this.
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
    """Gives the lead to preferred replicas, or uncleanly to any that is alive."""
    return (yield ChangeMetadata(request.message))


def alter_partition_reassignments(request: Request) -> Handling:
    """Moves partitions to other replicas, or cancels such moves."""
    return (yield ChangeMetadata(request.message))


def list_partition_reassignments(request: Request) -> ListPartitionReassignmentsResponse:
    """The reassignments under way."""
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
