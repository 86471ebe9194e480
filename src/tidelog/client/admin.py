"""Topic administration for the command line, with plain values as results."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from kio.schema.create_partitions.v3 import request as create_partitions
from kio.schema.create_partitions.v3.response import CreatePartitionsResponse
from kio.schema.create_topics.v7 import request as create_topics
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.describe_topic_partitions.v0 import request as describe_partitions
from kio.schema.describe_topic_partitions.v0.response import DescribeTopicPartitionsResponse
from kio.schema.list_partition_reassignments.v0 import request as reassignments
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse

from tidelog.client.client import Client, explain
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.model.user_error import UserError

TIMEOUT = timedelta(seconds=30)
CLUSTER_DEFAULT = -1

Assignment = Sequence[Sequence[NodeId]]


class RequestRefused(UserError):
    """The cluster refused a change; `error` is Kafka's error code."""

    def __init__(self, error: ErrorCode, message: str | None) -> None:
        super().__init__(explain(error, message))
        self.error = error


class Topic(NamedTuple):
    name: str
    id: UUID | None
    is_internal: bool


class PartitionDescription(NamedTuple):
    number: int
    leader: NodeId
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    elr: tuple[NodeId, ...] | None
    """The eligible leader replicas; None if the broker does not report them."""
    last_known_elr: tuple[NodeId, ...] | None
    offline: tuple[NodeId, ...] = ()
    """Replicas on unreachable brokers or in failed log directories."""


class Described(NamedTuple):
    name: str
    id: UUID | None
    partitions: list[PartitionDescription]


class Reassignment(NamedTuple):
    adding: tuple[NodeId, ...]
    removing: tuple[NodeId, ...]
    replicas: tuple[NodeId, ...] = ()
    """All replicas, including those that are added and removed."""


def _check(error: ErrorCode, message: str | None) -> None:
    if error is not ErrorCode.none:
        raise RequestRefused(error, message)


def topics(client: Client) -> list[Topic]:
    """Every topic, sorted by name."""
    found = client.metadata(topics=None).topics
    return sorted(Topic(one.name or "", one.topic_id, one.is_internal) for one in found)


def create_topic(
    client: Client,
    name: str,
    *,
    partitions: int | None,
    replication_factor: int | None,
    assignment: Assignment,
    configs: Mapping[str, str],
) -> None:
    topic = create_topics.CreatableTopic(
        name=name,
        num_partitions=CLUSTER_DEFAULT if partitions is None else partitions,
        replication_factor=CLUSTER_DEFAULT if replication_factor is None else replication_factor,
        assignments=tuple(
            create_topics.CreatableReplicaAssignment(
                partition_index=index, broker_ids=tuple(replicas)
            )
            for index, replicas in enumerate(assignment)
        ),
        configs=tuple(
            create_topics.CreatableTopicConfig(name=key, value=value)
            for key, value in configs.items()
        ),
    )
    request = create_topics.CreateTopicsRequest(topics=(topic,), timeout=TIMEOUT)
    for result in client.ask(request, CreateTopicsResponse).topics:
        _check(result.error_code, result.error_message)


@contextmanager
def topic_may_exist() -> Iterator[None]:
    """Ignore TOPIC_ALREADY_EXISTS, because the client's own request may have created the topic.

    If a broker is slow, the client repeats the request at the next broker, although the first
    request may have succeeded.
    """
    try:
        yield
    except RequestRefused as refused:
        if refused.error is not ErrorCode.topic_already_exists:
            raise


def add_partitions(
    client: Client, names: Iterable[str], count: int, assignments: Mapping[str, Assignment]
) -> None:
    """Raise each topic's partition count; `assignments` optionally places the new partitions."""
    request = create_partitions.CreatePartitionsRequest(
        topics=tuple(
            create_partitions.CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=tuple(
                    create_partitions.CreatePartitionsAssignment(broker_ids=tuple(replicas))
                    for replicas in assignments[name]
                )
                if name in assignments
                else None,
            )
            for name in names
        ),
        timeout=TIMEOUT,
        validate_only=False,
    )
    for result in client.ask(request, CreatePartitionsResponse).results:
        _check(result.error_code, result.error_message)


def delete_topics(client: Client, names: Iterable[str]) -> None:
    request = DeleteTopicsRequest(
        topics=tuple(DeleteTopicState(name=name, topic_id=None) for name in names), timeout=TIMEOUT
    )
    for result in client.ask(request, DeleteTopicsResponse).responses:
        _check(result.error_code, result.error_message)


def describe(client: Client, names: Sequence[str], page: int) -> list[Described]:
    """Describe the topics' partitions, at most `page` partitions per request.

    The ELR is None if the broker does not report it.
    """
    if not names:
        return []  # an empty request would return all topics
    if not client.speaks(describe_partitions.DescribeTopicPartitionsRequest):
        return describe_from_metadata(client, names)
    found = {name: Described(name, None, []) for name in names}
    cursor: describe_partitions.Cursor | None = None
    while True:
        answer = client.ask(
            describe_partitions.DescribeTopicPartitionsRequest(
                topics=tuple(describe_partitions.TopicRequest(name=name) for name in sorted(names)),
                response_partition_limit=page,
                cursor=cursor,
            ),
            DescribeTopicPartitionsResponse,
        )
        for topic in answer.topics:
            _check(topic.error_code, None)
            name = topic.name or ""
            partitions = found[name].partitions
            partitions += (
                PartitionDescription(
                    one.partition_index,
                    one.leader_id,
                    one.replica_nodes,
                    one.isr_nodes,
                    one.eligible_leader_replicas,
                    one.last_known_elr,
                    one.offline_replicas,
                )
                for one in topic.partitions
            )
            found[name] = Described(name, topic.topic_id, partitions)
        if answer.next_cursor is None:
            return list(found.values())
        cursor = describe_partitions.Cursor(
            topic_name=answer.next_cursor.topic_name,
            partition_index=answer.next_cursor.partition_index,
        )


def describe_from_metadata(client: Client, names: Sequence[str]) -> list[Described]:
    described = []
    for topic in client.metadata(tuple(names)).topics:
        _check(topic.error_code, None)
        partitions = [
            PartitionDescription(
                one.partition_index,
                one.leader_id,
                one.replica_nodes,
                one.isr_nodes,
                None,
                None,
                one.offline_replicas,
            )
            for one in topic.partitions
        ]
        partitions.sort()
        described.append(Described(topic.name or "", topic.topic_id, partitions))
    return sorted(described)


def ongoing_reassignments(client: Client) -> dict[TopicPartition, Reassignment]:
    """Every reassignment in progress; none if the broker does not support the request."""
    if not client.speaks(reassignments.ListPartitionReassignmentsRequest):
        return {}
    answer = client.ask(
        reassignments.ListPartitionReassignmentsRequest(topics=None, timeout=TIMEOUT),
        ListPartitionReassignmentsResponse,
    )
    _check(answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, one.partition_index): Reassignment(
            one.adding_replicas, one.removing_replicas, one.replicas
        )
        for topic in answer.topics
        for one in topic.partitions
    }
