"""AlterPartition: a leader requests a new in-sync set for the current partition epoch.

The controller decides which replicas may be in sync. It rejects a replica that is fenced or
shutting down. It also rejects a replica whose broker epoch differs from the epoch that the leader
saw (KIP-903), because the replica may have lost records that the leader has counted.
"""

from kio.schema.alter_partition.v3.request import AlterPartitionRequest, BrokerState
from kio.schema.alter_partition.v3.request import PartitionData as Asked
from kio.schema.alter_partition.v3.request import TopicData as AskedTopic
from kio.schema.alter_partition.v3.response import (
    AlterPartitionResponse,
    PartitionData,
    TopicData,
)

from tidelog.controller.decide.decision import NOT_THROTTLED, DecideContext, Decision
from tidelog.controller.decide.elections import election_of, rules_for
from tidelog.controller.decide.partition_change import Target, change_partition
from tidelog.controller.image.apply import merge
from tidelog.controller.image.image import (
    RECOVERED,
    RECOVERING,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_EPOCH, NO_NODE, NodeId
from tidelog.protocol.metadata.metadata_records import PartitionChangeRecord

_UNKNOWN_BROKER_EPOCH = -1
"""Sent by a leader that does not know a follower's broker epoch. This value is not checked."""


def alter_partition(
    image: ClusterImage, request: AlterPartitionRequest, context: DecideContext
) -> Decision:
    """Change the in-sync sets of partitions that the requesting broker leads."""
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        response = AlterPartitionResponse(
            throttle_time=NOT_THROTTLED, error_code=ErrorCode.stale_broker_epoch, topics=()
        )
        return Decision((), response)
    records: list[PartitionChangeRecord] = []
    topics = tuple(
        _alter_topic(image, broker.id, topic, records, context) for topic in request.topics
    )
    response = AlterPartitionResponse(
        throttle_time=NOT_THROTTLED, error_code=ErrorCode.none, topics=topics
    )
    return Decision(tuple(records), response)


def _alter_topic(
    image: ClusterImage,
    leader: NodeId,
    asked: AskedTopic,
    records: list[PartitionChangeRecord],
    context: DecideContext,
) -> TopicData:
    topic = None if asked.topic_id is None else image.topic(asked.topic_id)
    answers: list[PartitionData] = []
    for one in asked.partitions:
        if topic is None:
            answers.append(_refused(one.partition_index, ErrorCode.unknown_topic_id))
            continue
        partition = topic.partitions.get(one.partition_index)
        error = _check(image, leader, one, partition)
        if error is not ErrorCode.none or partition is None:
            answers.append(_refused(one.partition_index, error))
            continue
        answers.append(_alter(image, topic, one, partition, records, context))
    return TopicData(topic_id=asked.topic_id, partitions=tuple(answers))


def _check(
    image: ClusterImage, leader: NodeId, asked: Asked, partition: PartitionImage | None
) -> ErrorCode:
    if partition is None:
        return ErrorCode.unknown_topic_or_partition
    if (
        asked.leader_epoch > partition.leader_epoch
        or asked.partition_epoch > partition.partition_epoch
    ):
        # The leader knows a newer epoch, so this node is no longer the active controller (F28).
        return ErrorCode.not_controller
    if asked.leader_epoch < partition.leader_epoch:
        return ErrorCode.fenced_leader_epoch
    if leader != partition.leader:
        return ErrorCode.invalid_request
    if asked.partition_epoch < partition.partition_epoch:
        return ErrorCode.invalid_update_version
    return _check_isr(image, asked, partition)


def _check_isr(image: ClusterImage, asked: Asked, partition: PartitionImage) -> ErrorCode:
    isr = [member.broker_id for member in asked.new_isr_with_epochs]
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas):
        return ErrorCode.invalid_request
    if partition.leader not in isr:
        return ErrorCode.invalid_request
    if asked.leader_recovery_state not in (RECOVERED, RECOVERING):
        return ErrorCode.invalid_request
    if asked.leader_recovery_state == RECOVERING and (
        len(isr) > 1 or partition.leader_recovery_state == RECOVERED
    ):
        return ErrorCode.invalid_request
    if not all(_is_eligible(image, member) for member in asked.new_isr_with_epochs):
        return ErrorCode.ineligible_replica
    return ErrorCode.none


def _is_eligible(image: ClusterImage, member: BrokerState) -> bool:
    broker = image.brokers.get(member.broker_id)
    return (
        broker is not None
        and broker.is_active
        and member.broker_epoch in (_UNKNOWN_BROKER_EPOCH, broker.epoch)
    )


def _alter(
    image: ClusterImage,
    topic: TopicImage,
    asked: Asked,
    partition: PartitionImage,
    records: list[PartitionChangeRecord],
    context: DecideContext,
) -> PartitionData:
    target = Target(
        isr=tuple(member.broker_id for member in asked.new_isr_with_epochs),
        recovery_state=asked.leader_recovery_state,
        election=election_of(image, topic.name, context),
    )
    index = asked.partition_index
    rules = rules_for(image, topic, index, partition, context)
    record = change_partition(topic.topic_id, index, partition, target, rules)
    if record is None:
        return _answer(index, partition)
    records.append(record)
    altered = merge(partition, record)
    if altered.leader != partition.leader:
        # The change completes a reassignment that moves leadership away from the requester.
        return _refused(index, ErrorCode.new_leader_elected)
    return _answer(index, altered)


def _answer(index: int, partition: PartitionImage) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=ErrorCode.none,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        isr=partition.isr,
        leader_recovery_state=partition.leader_recovery_state,
        partition_epoch=partition.partition_epoch,
    )


def _refused(index: int, error: ErrorCode) -> PartitionData:
    return PartitionData(
        partition_index=index,
        error_code=error,
        leader_id=NO_NODE,
        leader_epoch=NO_EPOCH,
        isr=(),
        partition_epoch=-1,
    )
