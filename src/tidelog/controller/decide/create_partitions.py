"""CreatePartitions: add partitions to existing topics. A topic never loses partitions."""

from collections import Counter

from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_partitions.v3.response import (
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)

from tidelog.controller.decide.decision import (
    NO_FAULT,
    NOT_THROTTLED,
    DecideContext,
    Decision,
    Refusal,
)
from tidelog.controller.decide.quorum_topics import rule_of
from tidelog.controller.decide.topics import (
    MAX_PARTITIONS_PER_REQUEST,
    TOO_MANY_PARTITIONS,
    assigned_partition,
    placed_partitions,
)
from tidelog.controller.image.image import ClusterImage, TopicImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.metadata.metadata_records import PartitionRecord


def create_partitions(
    image: ClusterImage, request: CreatePartitionsRequest, context: DecideContext
) -> Decision:
    """Add partitions up to the requested count, or return the reason for the refusal."""
    times = Counter(topic.name for topic in request.topics)
    records: list[PartitionRecord] = []
    results: list[CreatePartitionsTopicResult] = []
    for topic in {topic.name: topic for topic in request.topics}.values():
        made: list[PartitionRecord] | Refusal = (
            Refusal(ErrorCode.invalid_request, "Duplicate topic name.")
            if times[topic.name] > 1
            else _add(image, topic, len(records), context)
        )
        fault = made if isinstance(made, Refusal) else NO_FAULT
        if not isinstance(made, Refusal):
            records += made
        results.append(
            CreatePartitionsTopicResult(
                name=topic.name, error_code=fault.error, error_message=fault.message
            )
        )
    response = CreatePartitionsResponse(throttle_time=NOT_THROTTLED, results=tuple(results))
    return Decision(() if request.validate_only else tuple(records), response)


def _add(
    image: ClusterImage, asked: CreatePartitionsTopic, made_so_far: int, context: DecideContext
) -> list[PartitionRecord] | Refusal:
    topic = image.topics.get(asked.name)
    if topic is None:
        return Refusal(ErrorCode.unknown_topic_or_partition)
    have = len(topic.partitions)
    additional = asked.count - have
    if additional == 0:
        return Refusal(ErrorCode.invalid_partitions, f"Topic already has {have} partition(s).")
    if additional < 0:
        return Refusal(
            ErrorCode.invalid_partitions,
            f"The topic {topic.name} currently has {have} partition(s); "
            f"{asked.count} would not be an increase.",
        )
    if made_so_far + additional > MAX_PARTITIONS_PER_REQUEST:
        return TOO_MANY_PARTITIONS
    replication_factor = len(topic.partitions[0].replicas)
    if asked.assignments is None:
        return placed_partitions(
            image,
            topic.topic_id,
            have,
            additional,
            replication_factor,
            context,
            rule_of(image, topic.name),
        )
    if len(asked.assignments) != additional:
        return Refusal(
            ErrorCode.invalid_replica_assignment,
            f"Attempted to add {additional} additional partition(s), but only "
            f"{len(asked.assignments)} assignment(s) were specified.",
        )
    return _assigned(image, topic, asked, replication_factor)


def _assigned(
    image: ClusterImage, topic: TopicImage, asked: CreatePartitionsTopic, replication_factor: int
) -> list[PartitionRecord] | Refusal:
    made: list[PartitionRecord] = []
    for index, assignment in enumerate(asked.assignments or (), len(topic.partitions)):
        record = assigned_partition(
            image,
            topic.topic_id,
            index,
            tuple(assignment.broker_ids),
            replication_factor,
            rule_of(image, topic.name),
        )
        if isinstance(record, Refusal):
            return record
        made.append(record)
    return made
