"""AlterPartitionReassignments: add the new replicas of a partition, then remove the old ones.

The AlterPartition that adds the last new replica to the in-sync set also removes the old replicas.
A cancellation restores the original replicas. The cancellation is refused if it would leave the
partition without a leader, or if it needs an unclean election that the topic does not allow.
"""

from dataclasses import replace

from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
)
from kio.schema.alter_partition_reassignments.v1.response import (
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

from tidelog.controller.decide.decision import (
    NO_FAULT,
    NOT_THROTTLED,
    DecideContext,
    Decision,
    Refusal,
)
from tidelog.controller.decide.elections import allows_unclean, rules_for
from tidelog.controller.decide.partition_change import Election, Target, change_partition
from tidelog.controller.decide.placement import check_assignment
from tidelog.controller.decide.quorum_topics import COMMIT_RULE, rule_of
from tidelog.controller.image.image import ClusterImage, PartitionImage, TopicImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.metadata.metadata_records import PartitionChangeRecord
from tidelog.replication.rules import QUORUM


def alter_partition_reassignments(
    image: ClusterImage, request: AlterPartitionReassignmentsRequest, context: DecideContext
) -> Decision:
    """Start a reassignment, or cancel the current one if no replicas are given."""
    records: list[PartitionChangeRecord] = []
    responses: list[ReassignableTopicResponse] = []
    for asked in request.topics:
        answers: list[ReassignablePartitionResponse] = []
        for one in asked.partitions:
            target = _target(image, asked.name, one, request, context)
            fault = target if isinstance(target, Refusal) else NO_FAULT
            if isinstance(target, Target):
                topic = image.topics[asked.name]
                partition = topic.partitions[one.partition_index]
                rules = rules_for(image, topic, one.partition_index, partition, context)
                record = change_partition(
                    topic.topic_id, one.partition_index, partition, target, rules
                )
                records += [record] if record is not None else []
            answers.append(
                ReassignablePartitionResponse(
                    partition_index=one.partition_index,
                    error_code=fault.error,
                    error_message=fault.message,
                )
            )
        responses.append(ReassignableTopicResponse(name=asked.name, partitions=tuple(answers)))
    response = AlterPartitionReassignmentsResponse(
        throttle_time=NOT_THROTTLED,
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.none,
        # Kafka sends null, or an empty string in reply to an empty request.
        error_message=None if request.topics else "",
        responses=tuple(responses),
    )
    return Decision(tuple(records), response)


def _target(
    image: ClusterImage,
    name: str,
    asked: ReassignablePartition,
    request: AlterPartitionReassignmentsRequest,
    context: DecideContext,
) -> Target | Refusal:
    topic = image.topics.get(name)
    if topic is None:
        return Refusal(
            ErrorCode.unknown_topic_or_partition, f"Unable to find a topic named {name}."
        )
    partition = topic.partitions.get(asked.partition_index)
    if partition is None:
        return Refusal(
            ErrorCode.unknown_topic_or_partition,
            f"Unable to find partition {name}:{asked.partition_index}.",
        )
    if rule_of(image, name) is QUORUM:
        return Refusal(
            ErrorCode.invalid_replica_assignment,
            f"The replicas of {name} cannot be changed, because it has {COMMIT_RULE}=quorum.",
        )
    if asked.replicas is None:
        return _cancelled(image, topic, asked.partition_index, partition, context)
    replicas = tuple(asked.replicas)
    fault = check_assignment(image, replicas, None)
    if fault is not None:
        return fault
    if not request.allow_replication_factor_change:
        fault = _check_factor(partition, replicas)
        if fault is not None:
            return fault
    removing = tuple(sorted(set(partition.replicas) - set(replicas)))
    adding = tuple(sorted(set(replicas) - set(partition.replicas)))
    return Target(
        replicas=(*replicas, *removing),
        # As in Kafka, an assignment that moves nothing leaves a running reassignment unchanged.
        removing=removing or None,
        adding=adding or None,
    )


def _check_factor(partition: PartitionImage, replicas: tuple[int, ...]) -> Refusal | None:
    """KIP-860: the client may require that the replication factor stays the same."""
    before = len(partition.replicas) - len(partition.adding)
    if len(replicas) == before:
        return None
    return Refusal(
        ErrorCode.invalid_replication_factor,
        f"The replication factor is changed from {before} to {len(replicas)}",
    )


def _cancelled(
    image: ClusterImage,
    topic: TopicImage,
    index: int,
    partition: PartitionImage,
    context: DecideContext,
) -> Target | Refusal:
    if not partition.is_reassigning:
        return Refusal(ErrorCode.no_reassignment_in_progress)
    replicas = tuple(one for one in partition.replicas if one not in partition.adding)
    isr = tuple(one for one in partition.isr if one not in partition.adding)
    # Kafka adds the first replica to an empty in-sync set. That replica may be fenced or may lack
    # records (F35). Tidelog therefore leaves the in-sync set empty, and the election looks for an
    # eligible leader replica.
    target = Target(replicas=replicas, isr=isr, adding=(), removing=())
    may_lead = rules_for(image, topic, index, partition, context).may_lead
    if isr or any(may_lead(one) for one in partition.elr if one in replicas):
        return target
    if not allows_unclean(image, topic.name, context):
        return _not_reverted(topic, index, "it would require an unclean leader election")
    if not any(may_lead(one) for one in replicas):
        return _not_reverted(topic, index, "none of its replicas can lead")
    return replace(target, election=Election.UNCLEAN)


def _not_reverted(topic: TopicImage, index: int, reason: str) -> Refusal:
    return Refusal(
        ErrorCode.invalid_replica_assignment,
        f"Unable to revert partition assignment for {topic.name}:{index} because {reason}.",
    )
