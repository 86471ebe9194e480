"""ListPartitionReassignments (key 46), version 0 (KIP-455).

The partitions whose replicas are being changed, of all topics (null) or of those asked for; a
partition that is not, or does not exist, is left out. `kafka-topics --describe` asks this.
"""

from collections.abc import Iterable
from datetime import timedelta

from kio.schema.list_partition_reassignments.v0.response import (
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

from tidelog.api.handler import Request
from tidelog.controller.image import TopicImage
from tidelog.model.errors import ErrorCode


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
