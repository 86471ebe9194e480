"""CreateTopics and DeleteTopics: each topic of a request succeeds or fails on its own."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import (
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsResponse,
)
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse

from tidelog.controller.configs.check import check_topic_config
from tidelog.controller.configs.effective import config_of_topic
from tidelog.controller.decide.decision import NOT_THROTTLED, DecideContext, Decision, Refusal
from tidelog.controller.decide.placement import check_assignment, new_partition, place, place_of
from tidelog.controller.decide.quorum_topics import (
    COMMIT_RULE,
    check_cluster,
    check_replicas,
    with_able_brokers,
)
from tidelog.controller.decide.topic_names import MetricNames, name_problem
from tidelog.controller.image.image import TOPIC_RESOURCE, ClusterImage, TopicImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, NodeId, TopicId
from tidelog.protocol.metadata.metadata_records import (
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tidelog.replication.rules import ISR, QUORUM, RULES, CommitRule

MAX_PARTITIONS_PER_REQUEST = 10_000
TOO_MANY_PARTITIONS = Refusal(
    ErrorCode.policy_violation, "Excessively large number of partitions per request."
)
_USE_DEFAULT = -1


# -- CreateTopics ----------------------------------------------------------------------------------


_Described: TypeAlias = dict[tuple[tuple[str, str], ...], tuple[CreatableTopicConfigs, ...]]


class _Created(NamedTuple):
    topic_id: TopicId
    partitions: Sequence[PartitionRecord]
    configs: dict[str, str]

    def records(self, name: str) -> Iterable[MetadataRecord]:
        yield TopicRecord(name=name, topic_id=self.topic_id)
        for key, value in self.configs.items():
            yield ConfigRecord(
                resource_type=TOPIC_RESOURCE, resource_name=name, name=key, value=value
            )
        yield from self.partitions


def create_topics(
    image: ClusterImage, request: CreateTopicsRequest, context: DecideContext
) -> Decision:
    """Create topics with their partitions and configurations, or return the reasons for refusal."""
    times = Counter(topic.name for topic in request.topics)
    default = context.settings.num_partitions
    asked = sum(partitions_asked(topic, default) for topic in request.topics)
    too_many = asked > MAX_PARTITIONS_PER_REQUEST
    metric_names = MetricNames(image.topics)
    records: list[MetadataRecord] = []
    results: list[CreatableTopicResult] = []
    described: _Described = {}
    for topic in {topic.name: topic for topic in request.topics}.values():
        if times[topic.name] > 1:
            outcome: _Created | Refusal = Refusal(
                ErrorCode.invalid_request, "Duplicate topic name."
            )
        elif too_many:
            outcome = TOO_MANY_PARTITIONS
        else:
            outcome = _create(image, topic, metric_names, context)
        if isinstance(outcome, Refusal):
            results.append(refused_topic(topic.name, outcome))
        else:
            records += outcome.records(topic.name)
            results.append(
                _accepted(
                    topic.name, outcome, _describe(image, outcome.configs, context, described)
                )
            )
    response = CreateTopicsResponse(throttle_time=NOT_THROTTLED, topics=tuple(results))
    return Decision(() if request.validate_only else tuple(records), response)


def partitions_asked(topic: CreatableTopic, default: int) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return default if topic.num_partitions == _USE_DEFAULT else max(topic.num_partitions, 0)


def _create(
    image: ClusterImage, topic: CreatableTopic, metric_names: MetricNames, context: DecideContext
) -> _Created | Refusal:
    fault = _check_name(image, topic.name, metric_names)
    if fault is not None:
        return fault
    unset = [config.name for config in topic.configs if config.value is None]
    if unset:
        return Refusal(
            ErrorCode.invalid_config,
            f"Null value not supported for topic configs: {','.join(unset)}",
        )
    configs = {config.name: config.value or "" for config in topic.configs}
    fault = check_topic_config(context.settings, configs)
    if fault is not None:
        return fault
    if configs.get(COMMIT_RULE) == QUORUM.name:
        fault = check_cluster(image)
        if fault is not None:
            return fault
    topic_id = context.dice.uuid()
    while topic_id in image.topic_names:
        topic_id = context.dice.uuid()
    rule = RULES[configs.get(COMMIT_RULE, ISR.name)]
    partitions = (
        _assigned(image, topic_id, topic, rule)
        if topic.assignments
        else _placed(image, topic_id, topic, context, rule)
    )
    return (
        partitions if isinstance(partitions, Refusal) else _Created(topic_id, partitions, configs)
    )


def _check_name(image: ClusterImage, name: str, metric_names: MetricNames) -> Refusal | None:
    problem = name_problem(name)
    if problem is not None:
        return Refusal(ErrorCode.invalid_topic_exception, problem)
    if name == METADATA_TOPIC:
        return Refusal(
            ErrorCode.invalid_request, f"Creation of internal topic {name} is prohibited."
        )
    if name in image.topics:
        return Refusal(ErrorCode.topic_already_exists, f"Topic '{name}' already exists.")
    other = metric_names.colliding(name)
    if other is not None:
        return Refusal(
            ErrorCode.invalid_topic_exception,
            f"Topic '{name}' collides with existing topic: {other}",
        )
    return None


def _assigned(
    image: ClusterImage, topic_id: TopicId, topic: CreatableTopic, rule: CommitRule
) -> list[PartitionRecord] | Refusal:
    """Create partitions on the brokers that the client chose."""
    if topic.replication_factor != _USE_DEFAULT:
        return Refusal(
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, "
            "but replication factor was not set to -1.",
        )
    if topic.num_partitions != _USE_DEFAULT:
        return Refusal(
            ErrorCode.invalid_request,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    made: dict[int, PartitionRecord] = {}
    replication_factor: int | None = None
    for assignment in topic.assignments:
        index, replicas = assignment.partition_index, tuple(assignment.broker_ids)
        if index in made:
            return Refusal(
                ErrorCode.invalid_replica_assignment,
                f"Found multiple manual partition assignments for partition {index}",
            )
        record = assigned_partition(image, topic_id, index, replicas, replication_factor, rule)
        if isinstance(record, Refusal):
            return record
        made[index] = record
        replication_factor = len(replicas)
    if sorted(made) != list(range(len(made))):
        return Refusal(
            ErrorCode.invalid_replica_assignment,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [made[index] for index in sorted(made)]


def assigned_partition(
    image: ClusterImage,
    topic_id: TopicId,
    index: int,
    replicas: tuple[NodeId, ...],
    replication_factor: int | None,
    rule: CommitRule,
) -> PartitionRecord | Refusal:
    """Create one partition on the given brokers; at least one of them must be active."""
    fault = check_assignment(image, replicas, replication_factor)
    if fault is None and rule is QUORUM:
        fault = check_replicas(image, replicas)
    if fault is not None:
        return fault
    place = place_of(image, replicas)
    if place is None:
        return Refusal(
            ErrorCode.invalid_replica_assignment,
            "All brokers specified in the manual partition assignment for "
            f"partition {index} are fenced or in controlled shutdown.",
        )
    return new_partition(topic_id, index, replicas, place)


def _placed(
    image: ClusterImage,
    topic_id: TopicId,
    topic: CreatableTopic,
    context: DecideContext,
    rule: CommitRule,
) -> list[PartitionRecord] | Refusal:
    """Create partitions on brokers that the controller chooses."""
    factor, count = topic.replication_factor, topic.num_partitions
    if factor < _USE_DEFAULT or factor == 0:
        return Refusal(
            ErrorCode.invalid_replication_factor,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < _USE_DEFAULT or count == 0:
        return Refusal(
            ErrorCode.invalid_partitions,
            "Number of partitions was set to an invalid non-positive value.",
        )
    if factor == _USE_DEFAULT:
        factor = context.settings.default_replication_factor
    if count == _USE_DEFAULT:
        count = context.settings.num_partitions
    return placed_partitions(image, topic_id, 0, count, factor, context, rule)


def placed_partitions(
    image: ClusterImage,
    topic_id: TopicId,
    first: int,
    count: int,
    replication_factor: int,
    context: DecideContext,
    rule: CommitRule,
) -> list[PartitionRecord] | Refusal:
    """Create `count` partitions, starting at index `first`, spread over the brokers."""
    if rule is QUORUM:
        image = with_able_brokers(image)
    placed = place(image, context.dice, first, count, replication_factor)
    if isinstance(placed, Refusal):
        return placed
    places = {replicas: place_of(image, replicas) for replicas in dict.fromkeys(placed)}
    made: list[PartitionRecord] = []
    for index, replicas in enumerate(placed, first):
        found = places[replicas]
        assert found is not None, "every leader is placed on an active broker"
        made.append(new_partition(topic_id, index, replicas, found))
    return made


def refused_topic(name: str, fault: Refusal) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        topic_id=None,
        error_code=fault.error,
        error_message=fault.message,
        num_partitions=-1,
        replication_factor=-1,
        configs=(),
    )


def _accepted(
    name: str, created: _Created, configs: tuple[CreatableTopicConfigs, ...]
) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        topic_id=created.topic_id,
        error_code=ErrorCode.none,
        error_message=None,
        num_partitions=len(created.partitions),
        replication_factor=len(created.partitions[0].replicas),
        configs=configs,
    )


def _describe(
    image: ClusterImage, configs: dict[str, str], context: DecideContext, described: _Described
) -> tuple[CreatableTopicConfigs, ...]:
    """The effective configuration, cached because topics of one request usually share it."""
    key = tuple(sorted(configs.items()))
    if key not in described:
        effective = config_of_topic(image, context.settings, configs)
        described[key] = tuple(
            CreatableTopicConfigs(
                name=name,
                value=configs.get(name, config.text),  # a given value is returned unchanged
                read_only=False,
                config_source=config.source,
                is_sensitive=config.key.is_sensitive,
            )
            for name, config in sorted(effective.items())
        )
    return described[key]


# -- DeleteTopics ----------------------------------------------------------------------------------


def delete_topics(
    image: ClusterImage, request: DeleteTopicsRequest, context: DecideContext
) -> Decision:
    """Delete topics by name or by id, with their partitions and configurations."""
    names = Counter(topic.name for topic in request.topics if topic.name is not None)
    ids = Counter(topic.topic_id for topic in request.topics if topic.topic_id is not None)
    removed: dict[TopicId, RemoveTopicRecord] = {}
    results: list[DeletableTopicResult] = []
    seen: set[tuple[str | None, TopicId | None]] = set()
    for topic in request.topics:
        if (topic.name, topic.topic_id) in seen:
            continue
        seen.add((topic.name, topic.topic_id))
        fault = _check_deletion(topic, names, ids)
        found = _find(image, topic) if fault is None else fault
        if not isinstance(found, Refusal) and found.topic_id in removed:
            found = Refusal(
                ErrorCode.invalid_request,
                "The provided topic name maps to an ID that was already supplied.",
            )
        if isinstance(found, Refusal):
            results.append(
                DeletableTopicResult(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    error_code=found.error,
                    error_message=found.message,
                )
            )
            continue
        removed[found.topic_id] = RemoveTopicRecord(topic_id=found.topic_id)
        results.append(
            DeletableTopicResult(
                name=found.name, topic_id=found.topic_id, error_code=ErrorCode.none
            )
        )
    response = DeleteTopicsResponse(throttle_time=NOT_THROTTLED, responses=tuple(results))
    return Decision(tuple(removed.values()), response)


def _check_deletion(
    topic: DeleteTopicState, names: Counter[str], ids: Counter[TopicId]
) -> Refusal | None:
    if topic.name is not None and topic.topic_id is not None:
        return Refusal(
            ErrorCode.invalid_request, "You may not specify both topic name and topic id."
        )
    if topic.name is None and topic.topic_id is None:
        return Refusal(ErrorCode.invalid_request, "Neither topic name nor id were specified.")
    if topic.name is not None and names[topic.name] > 1:
        return Refusal(ErrorCode.invalid_request, "Duplicate topic name.")
    if topic.topic_id is not None and ids[topic.topic_id] > 1:
        return Refusal(ErrorCode.invalid_request, "Duplicate topic id.")
    return None


def _find(image: ClusterImage, topic: DeleteTopicState) -> TopicImage | Refusal:
    if topic.topic_id is not None:
        return image.topic(topic.topic_id) or Refusal(
            ErrorCode.unknown_topic_id, "This server does not host this topic ID."
        )
    return image.topics.get(topic.name or "") or Refusal(
        ErrorCode.unknown_topic_or_partition, "This server does not host this topic-partition."
    )
