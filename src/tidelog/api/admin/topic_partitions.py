"""DescribeTopicPartitions (key 75), version 0 (KIP-966).

Lists topics in pages, with the eligible leader replicas that Metadata omits. Topics are ordered by
name. A page holds at least one partition. The maximum number of partitions is the smaller of two
limits: the client's limit and `max.request.partition.size.limit`. `next_cursor` is the start of the
next page. An empty list requests all topics. With an authorizer, a list of all topics omits those
that the client may not describe, and a request for such a topic gets TOPIC_AUTHORIZATION_FAILED.

As in Kafka, the whole request gets INVALID_REQUEST if its cursor has a negative partition or a
topic that is not requested. If a topic name is empty, the whole request gets UNKNOWN_SERVER_ERROR.
"""

from collections.abc import Iterator
from datetime import timedelta

from kio.schema.describe_topic_partitions.v0.response import (
    Cursor,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

from tidelog.api.access.permits import TOPIC_OPERATIONS, permits, permitted_operations
from tidelog.api.groups.internal_topics import SHOWN_AS_INTERNAL
from tidelog.api.handler import Handling, Request
from tidelog.api.slicing import PAUSE, Pace
from tidelog.api.view import ListenerView
from tidelog.controller.decide.topic_names import name_problem
from tidelog.controller.image.image import TopicImage
from tidelog.model.errors import ErrorCode
from tidelog.security.acls import AclOperation, AclResource


def handle(request: Request) -> Handling:
    """Lists one page of topics and partitions, starting at the cursor."""
    message = request.message
    asked = {topic.name for topic in message.topics}
    cursor = message.cursor
    if cursor is not None and (
        cursor.partition_index < 0 or (asked and cursor.topic_name not in asked)
    ):
        return _refused(sorted(asked), ErrorCode.invalid_request)
    if "" in asked:
        return _refused(sorted(asked), ErrorCode.unknown_server_error)
    names = sorted(asked or request.image.topics)
    hidden: list[str] = []
    if request.authorizer is not None:
        allowed = [name for name in names if _may_describe(request, name)]
        hidden = sorted(asked.difference(allowed))
        names = allowed
    if cursor is not None:
        names = [name for name in names if name >= cursor.topic_name]
    limit = min(message.response_partition_limit, request.settings.max_request_partition_size_limit)
    page = _Page(request, max(limit, 1))
    page.topics.extend(_refused(hidden, ErrorCode.topic_authorization_failed).topics)
    pace = Pace()
    for name in names:
        if pace.is_due():
            yield PAUSE
        at_cursor = cursor is not None and name == cursor.topic_name
        if not page.add(name, cursor.partition_index if at_cursor else 0):
            break
    return DescribeTopicPartitionsResponse(
        throttle_time=timedelta(0), topics=tuple(page.topics), next_cursor=page.next_cursor
    )


def _refused(names: list[str], error: ErrorCode) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(
        throttle_time=timedelta(0),
        topics=tuple(
            DescribeTopicPartitionsResponseTopic(
                error_code=error, name=name, topic_id=None, partitions=()
            )
            for name in names
        ),
    )


class _Page:
    """A page of topics up to the partition limit, and the cursor of the next page."""

    def __init__(self, request: Request, limit: int) -> None:
        self._request = request
        self._view = ListenerView(request.image, request.listener)
        self._left = limit
        self.topics: list[DescribeTopicPartitionsResponseTopic] = []
        self.next_cursor: Cursor | None = None

    def add(self, name: str, start: int) -> bool:
        """Add a topic starting at partition `start`; returns False if the page is full."""
        if self._left == 0:
            self.next_cursor = Cursor(topic_name=name, partition_index=0)
            return False
        topic = self._view.image.topics.get(name)
        if topic is None:
            self.topics.append(_missing(name, self._operations(name)))
            return True
        end = min(len(topic.partitions), start + self._left)
        self.topics.append(self._described(topic, range(start, end)))
        self._left -= max(end - start, 0)
        if end < len(topic.partitions):
            self.next_cursor = Cursor(topic_name=name, partition_index=end)
            return False
        return True

    def _described(self, topic: TopicImage, indexes: range) -> DescribeTopicPartitionsResponseTopic:
        return DescribeTopicPartitionsResponseTopic(
            error_code=ErrorCode.none,
            name=topic.name,
            topic_id=topic.topic_id,
            is_internal=topic.name in SHOWN_AS_INTERNAL,
            partitions=tuple(self._partitions(topic, indexes)),
            topic_authorized_operations=self._operations(topic.name),
        )

    def _operations(self, name: str) -> int:
        return permitted_operations(self._request, TOPIC_OPERATIONS, AclResource.TOPIC, name)

    def _partitions(
        self, topic: TopicImage, indexes: range
    ) -> Iterator[DescribeTopicPartitionsResponsePartition]:
        for index in indexes:
            partition = topic.partitions[index]
            yield DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.none,
                partition_index=index,
                leader_id=self._view.leader(partition),
                leader_epoch=partition.leader_epoch,
                replica_nodes=partition.replicas,
                isr_nodes=partition.isr,
                eligible_leader_replicas=partition.elr,
                last_known_elr=partition.last_known_elr,
                offline_replicas=self._view.offline_replicas(partition),
            )


def _may_describe(request: Request, name: str) -> bool:
    return permits(request, AclOperation.DESCRIBE, AclResource.TOPIC, name, logs_denial=False)


def _missing(name: str, operations: int) -> DescribeTopicPartitionsResponseTopic:
    unusable = name_problem(name) is not None
    return DescribeTopicPartitionsResponseTopic(
        error_code=(
            ErrorCode.invalid_topic_exception if unusable else ErrorCode.unknown_topic_or_partition
        ),
        name=name,
        topic_id=None,
        is_internal=name in SHOWN_AS_INTERNAL,
        partitions=(),
        topic_authorized_operations=operations,
    )
