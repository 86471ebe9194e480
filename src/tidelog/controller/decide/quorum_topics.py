"""Topics under the quorum rule: which topics they are, and which brokers may have their partitions.

Apache Kafka's nodes do not know the rule (ADR 27). A Tidelog node registers the feature
COMMIT_RULES, and only such brokers get a partition under the rule.
"""

from collections.abc import Iterable
from dataclasses import replace

from tidelog.controller.decide.decision import Refusal
from tidelog.controller.features import COMMIT_RULES, elr_enabled
from tidelog.controller.image.image import TOPIC_RESOURCE, ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.replication.rules import ISR, QUORUM, RULES, CommitRule

COMMIT_RULE = "tidelog.commit.rule"


def rule_of(image: ClusterImage, topic: str) -> CommitRule:
    """The commit rule of a topic. It never changes, so every node sees the same one."""
    return RULES[image.config(TOPIC_RESOURCE, topic).get(COMMIT_RULE, ISR.name)]


def has_quorum_topics(image: ClusterImage) -> bool:
    return any(
        values.get(COMMIT_RULE) == QUORUM.name
        for (kind, _), values in image.configs.items()
        if kind == TOPIC_RESOURCE
    )


def check_cluster(image: ClusterImage) -> Refusal | None:
    """The reason why this cluster cannot have a topic under the quorum rule."""
    if not elr_enabled(image):
        return Refusal(
            ErrorCode.invalid_config,
            f"{COMMIT_RULE}=quorum requires eligible.leader.replicas.version 1.",
        )
    lacking = [one.id for one in image.controllers.values() if COMMIT_RULES not in one.features]
    if lacking:
        return Refusal(
            ErrorCode.invalid_config,
            f"Controller {lacking[0]} does not support {COMMIT_RULE}=quorum.",
        )
    return None


def with_able_brokers(image: ClusterImage) -> ClusterImage:
    """The image with only those brokers that know the quorum rule, to place partitions on them."""
    able = {id_: one for id_, one in image.brokers.items() if COMMIT_RULES in one.features}
    return replace(image, brokers=able)


def check_replicas(image: ClusterImage, replicas: Iterable[NodeId]) -> Refusal | None:
    """The reason why a partition under the quorum rule cannot be on these brokers."""
    for replica in replicas:
        broker = image.brokers.get(replica)
        if broker is not None and COMMIT_RULES not in broker.features:
            return Refusal(
                ErrorCode.invalid_replica_assignment,
                f"Broker {replica} does not support {COMMIT_RULE}=quorum.",
            )
    return None


def holds_quorum_partition(image: ClusterImage, broker: NodeId) -> bool:
    return any(
        broker in partition.replicas
        for topic in image.topics.values()
        if rule_of(image, topic.name) is QUORUM
        for partition in topic.partitions.values()
    )
