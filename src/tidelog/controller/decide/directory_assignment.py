"""AssignReplicasToDirs: a broker reports the log directories of its replicas (KIP-858).

A replica is offline if its directory has failed or is unknown to the broker. An offline replica
leaves the in-sync set. If it was the leader, another replica takes over.
"""

from dataclasses import replace
from uuid import UUID

from kio.schema.assign_replicas_to_dirs.v0.request import (
    AssignReplicasToDirsRequest,
)
from kio.schema.assign_replicas_to_dirs.v0.request import TopicData as AskedTopic
from kio.schema.assign_replicas_to_dirs.v0.response import (
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)

from tidelog.controller.decide.decision import NOT_THROTTLED, DecideContext, Decision
from tidelog.controller.decide.elections import election_of, rules_for
from tidelog.controller.decide.partition_change import Target, change_partition
from tidelog.controller.decide.quorum_topics import rule_of
from tidelog.controller.image.image import (
    FIRST_FREE_DIRECTORY,
    BrokerImage,
    ClusterImage,
    PartitionImage,
    TopicImage,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, NodeId
from tidelog.protocol.metadata.metadata_records import PartitionChangeRecord
from tidelog.replication.rules import QUORUM


def assign_replicas_to_dirs(
    image: ClusterImage, request: AssignReplicasToDirsRequest, context: DecideContext
) -> Decision:
    """Record the directories of the requesting broker's replicas."""
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        response = AssignReplicasToDirsResponse(
            throttle_time=NOT_THROTTLED, error_code=ErrorCode.stale_broker_epoch, directories=()
        )
        return Decision((), response)
    records: list[PartitionChangeRecord] = []
    directories = tuple(
        DirectoryData(
            id_=directory.id_,
            topics=tuple(
                _assign_topic(image, broker, directory.id_ or UUID(int=0), topic, records, context)
                for topic in directory.topics
            ),
        )
        for directory in request.directories
    )
    response = AssignReplicasToDirsResponse(
        throttle_time=NOT_THROTTLED, error_code=ErrorCode.none, directories=directories
    )
    return Decision(tuple(records), response)


def _assign_topic(
    image: ClusterImage,
    broker: BrokerImage,
    directory: UUID,
    asked: AskedTopic,
    records: list[PartitionChangeRecord],
    context: DecideContext,
) -> TopicData:
    topic = None if asked.topic_id is None else image.topic(asked.topic_id)
    answers: list[PartitionData] = []
    for one in asked.partitions:
        index = one.partition_index
        partition = None if topic is None else topic.partitions.get(index)
        if topic is None:
            error = ErrorCode.unknown_topic_id
        elif partition is None:
            error = ErrorCode.unknown_topic_or_partition
        elif broker.id not in partition.replicas:
            error = ErrorCode.not_leader_or_follower
        else:
            error = ErrorCode.none
            record = _assign(image, topic, index, partition, broker, directory, context)
            if record is not None:
                records.append(record)
        answers.append(PartitionData(partition_index=index, error_code=error))
    return TopicData(topic_id=asked.topic_id, partitions=tuple(answers))


def _assign(
    image: ClusterImage,
    topic: TopicImage,
    index: int,
    partition: PartitionImage,
    broker: BrokerImage,
    directory: UUID,
    context: DecideContext,
) -> PartitionChangeRecord | None:
    before = partition.directory_of(broker.id)
    directories = tuple(
        directory if replica == broker.id else partition.directory_of(replica)
        for replica in partition.replicas
    )
    isr, removed, without_log = partition.isr, NO_NODE, frozenset[NodeId]()
    # If a replica has lost records, its broker reports a directory that the broker does not have.
    is_known = directory in broker.directories
    has_lost_records = directory.int >= FIRST_FREE_DIRECTORY and not is_known
    if not is_known:
        isr, removed = tuple(member for member in isr if member != broker.id), broker.id
    elif before.int >= FIRST_FREE_DIRECTORY and before not in broker.directories:
        # The broker no longer has the replica's earlier directory, so the replica's log is empty.
        without_log = frozenset({broker.id})
    if not is_known and rule_of(image, topic.name) is QUORUM:
        without_log = frozenset({broker.id})  # its log does not count in an election (F84)
    target = Target(
        isr=isr,
        directories=directories,
        election=election_of(image, topic.name, context),
        without_log=without_log,
        forgets_fetches=has_lost_records and partition.has_leader,
    )
    moved = replace(partition, directories=directories)
    rules = rules_for(image, topic, index, moved, context, removed=removed)
    return change_partition(topic.topic_id, index, partition, target, rules)
