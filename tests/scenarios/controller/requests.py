"""Builds a Kafka request from the words of a command; omitted values come from the image."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from kio.schema.alter_partition.v3 import request as alter_partition
from kio.schema.alter_partition_reassignments.v1 import request as reassignments
from kio.schema.broker_registration.v4 import request as registration
from kio.schema.create_topics.v7 import request as create_topics
from kio.schema.delete_topics.v6 import request as delete_topics
from kio.schema.elect_leaders.v2 import request as elect_leaders
from kio.schema.incremental_alter_configs.v1 import request as alter_configs
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from tests.scenarios.transcript import Words
from tests.unit.controller.support import CLUSTER_ID, TIMEOUT, directory

from tidelog.controller.image.image import TOPIC_RESOURCE, ClusterImage
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, LogEndReport

FEATURES = {"metadata.version": (7, 27), "eligible.leader.replicas.version": (0, 1)}
COMMIT_RULES = {"tidelog.commit.rule": (0, 1)}
NO_EPOCH = -1


def _epoch(image: ClusterImage, broker: int) -> int:
    known = image.brokers.get(broker)
    return NO_EPOCH if known is None else known.epoch


def register(image: ClusterImage, words: Words) -> object:
    broker = words.number("broker")
    disk, is_kafka = directory(broker + (50 if "new_disk" in words else 0)), "kafka" in words
    return registration.BrokerRegistrationRequest(
        broker_id=broker,
        cluster_id=CLUSTER_ID,
        incarnation_id=UUID(int=broker << 8 | ord(words.text("run", "a"))),
        listeners=(registration.Listener(name="PLAINTEXT", host="h", port=9, security_protocol=0),),
        features=tuple(
            registration.Feature(name=name, min_supported_version=low, max_supported_version=high)
            for name, (low, high) in (FEATURES | ({} if is_kafka else COMMIT_RULES)).items()
        ),
        rack=None,
        log_dirs=(disk,),
        previous_broker_epoch=_epoch(image, broker) if "clean" in words else NO_EPOCH,
    )


def heartbeat(image: ClusterImage, words: Words) -> object:
    broker = words.number("broker")
    return BrokerHeartbeatRequest(
        broker_id=broker,
        broker_epoch=words.number("epoch", _epoch(image, broker)),
        current_metadata_offset=words.number("offset", image.offset),
        want_fence="fence" in words,
        want_shut_down="shutdown" in words,
        log_ends=tuple(_log_end(image, one) for one in words.list("log_end", "")),
    )


def _log_end(image: ClusterImage, text: str) -> LogEndReport:
    """`5/100@7`: in leader epoch 7, the log of t-0 ends with epoch 5 at offset 100."""
    end, _, leader_epoch = text.partition("@")
    last_epoch, _, offset = end.partition("/")
    return LogEndReport(
        topic_id=image.topics["t"].topic_id,
        partition_index=0,
        leader_epoch=int(leader_epoch),
        last_epoch=int(last_epoch),
        log_end_offset=int(offset),
    )


def unregister(image: ClusterImage, words: Words) -> object:
    return UnregisterBrokerRequest(broker_id=words.number("broker"))


def create(image: ClusterImage, words: Words) -> object:
    assigned = [tuple(map(int, one.split("-"))) for one in words.list("replicas", "")]
    return create_topics.CreateTopicsRequest(
        topics=(
            create_topics.CreatableTopic(
                name=words.text("topic"),
                num_partitions=words.number("partitions", -1),
                replication_factor=words.number("factor", -1),
                assignments=tuple(
                    create_topics.CreatableReplicaAssignment(partition_index=index, broker_ids=ids)
                    for index, ids in enumerate(assigned)
                ),
                configs=tuple(
                    create_topics.CreatableTopicConfig(name=name, value=words.text(word))
                    for word, name in CONFIGS.items()
                    if word in words
                ),
            ),
        )
    )


CONFIGS = {
    "min": "min.insync.replicas",
    "unclean": "unclean.leader.election.enable",
    "rule": "tidelog.commit.rule",
}


def delete(image: ClusterImage, words: Words) -> object:
    state = delete_topics.DeleteTopicState(name=words.text("topic"), topic_id=None)
    return delete_topics.DeleteTopicsRequest(topics=(state,), timeout=TIMEOUT)


def config(image: ClusterImage, words: Words) -> object:
    return alter_configs.IncrementalAlterConfigsRequest(
        resources=(
            alter_configs.AlterConfigsResource(
                resource_type=TOPIC_RESOURCE,
                resource_name=words.text("topic"),
                configs=tuple(
                    alter_configs.AlterableConfig(
                        name=name, config_operation=0, value=words.text(word)
                    )
                    for word, name in CONFIGS.items()
                    if word in words
                ),
            ),
        ),
        validate_only=False,
    )


def isr(image: ClusterImage, words: Words) -> object:
    """An AlterPartition request; in `isr=`, `3@1007` is broker 3 with the broker epoch 1007."""
    topic = image.topics[words.text("topic", "t")]
    partition, leader = topic.partitions[0], words.number("from")
    members = (member.partition("@")[::2] for member in words.list("isr"))
    state = alter_partition.PartitionData(
        partition_index=0,
        leader_epoch=words.number("leader_epoch", partition.leader_epoch),
        new_isr_with_epochs=tuple(
            alter_partition.BrokerState(
                broker_id=int(id_), broker_epoch=int(run) if run else _epoch(image, int(id_))
            )
            for id_, run in members
        ),
        leader_recovery_state=int("recovering" in words),
        partition_epoch=words.number("partition_epoch", partition.partition_epoch),
    )
    id_ = UUID(int=words.number("id")) if "id" in words else topic.topic_id
    return alter_partition.AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=words.number("broker_epoch", _epoch(image, leader)),
        topics=(alter_partition.TopicData(topic_id=id_, partitions=(state,)),),
    )


def elect(image: ClusterImage, words: Words) -> object:
    asked = elect_leaders.TopicPartitions(topic=words.text("topic", "t"), partitions=(0,))
    return elect_leaders.ElectLeadersRequest(
        election_type={"preferred": 0, "unclean": 1}[words.text("kind")],
        topic_partitions=(asked,),
        timeout=TIMEOUT,
    )


def reassign(image: ClusterImage, words: Words) -> object:
    """A request to reassign to `replicas=`; with the word `cancel`, to cancel a reassignment."""
    replicas = None if "cancel" in words else words.numbers("replicas")
    moved = reassignments.ReassignablePartition(partition_index=0, replicas=replicas)
    topic = reassignments.ReassignableTopic(name=words.text("topic", "t"), partitions=(moved,))
    return reassignments.AlterPartitionReassignmentsRequest(timeout=TIMEOUT, topics=(topic,))


REQUESTS: dict[str, Callable[[ClusterImage, Words], Any]] = {
    one.__name__: one
    for one in (
        register,
        heartbeat,
        unregister,
        create,
        delete,
        config,
        isr,
        elect,
        reassign,
    )
}
