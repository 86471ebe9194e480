"""Internal topics that the broker creates on first use, with Kafka's settings for each."""

from datetime import timedelta

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

from tidelog.config.settings import BrokerSettings
from tidelog.model.replication_events import REPLICATION_EVENTS

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset(
    {CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, REPLICATION_EVENTS}
)
SHOWN_AS_INTERNAL = INTERNAL_TOPICS - {REPLICATION_EVENTS}
"""Topics that clients see as internal. Some clients, such as Spark, refuse to read internal topics,
so the event topic is not in this set.
"""
_WEEK_MS = 7 * 24 * 60 * 60 * 1000


def creatable_topic(name: str, settings: BrokerSettings) -> CreatableTopic | None:
    """The topic to create when a client first uses it; None if clients cannot create it."""
    if name == CONSUMER_OFFSETS:
        return consumer_offsets(settings)
    if name == TRANSACTION_STATE:
        return _transaction_state(settings)
    if name == SHARE_GROUP_STATE:
        return share_group_state(settings)
    if name == REPLICATION_EVENTS:
        return None  # brokers create the event topic
    return _topic(name, settings.num_partitions, settings.default_replication_factor, {})


def consumer_offsets(settings: BrokerSettings) -> CreatableTopic:
    return _topic(
        CONSUMER_OFFSETS,
        settings.offsets_topic_num_partitions,
        settings.offsets_topic_replication_factor,
        {
            "cleanup.policy": "compact",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
            "compression.type": "producer",
        },
    )


def _transaction_state(settings: BrokerSettings) -> CreatableTopic:
    return _topic(
        TRANSACTION_STATE,
        settings.transaction_state_log_num_partitions,
        settings.transaction_state_log_replication_factor,
        {
            "cleanup.policy": "compact",
            "segment.bytes": str(settings.transaction_state_log_segment_bytes),
            "compression.type": "uncompressed",
            "min.insync.replicas": str(settings.transaction_state_log_min_isr),
            "unclean.leader.election.enable": "false",
        },
    )


def share_group_state(settings: BrokerSettings) -> CreatableTopic:
    """Retention never deletes a record of this topic: the share coordinator needs them."""
    return _topic(
        SHARE_GROUP_STATE,
        settings.share_coordinator_state_topic_num_partitions,
        settings.share_coordinator_state_topic_replication_factor,
        {
            "cleanup.policy": "delete",
            "retention.ms": "-1",
            "segment.bytes": str(settings.share_coordinator_state_topic_segment_bytes),
            "compression.type": "producer",
            "min.insync.replicas": str(settings.share_coordinator_state_topic_min_isr),
        },
    )


def replication_events(replication_factor: int) -> CreatableTopic:
    """Tidelog's event topic: one partition, so that events are ordered, and one week of retention.

    The topic accepts writes with one in-sync replica, so that events are recorded during failures.
    """
    return _topic(
        REPLICATION_EVENTS,
        1,
        replication_factor,
        {
            "cleanup.policy": "delete",
            "retention.ms": str(_WEEK_MS),
            "min.insync.replicas": "1",
            "unclean.leader.election.enable": "false",
        },
    )


def creation(topics: list[CreatableTopic], settings: BrokerSettings) -> CreateTopicsRequest:
    """The CreateTopics request for these topics."""
    return CreateTopicsRequest(
        topics=tuple(topics),
        timeout=timedelta(milliseconds=settings.request_timeout_ms),
        validate_only=False,
    )


def _topic(
    name: str, partitions: int, replication_factor: int, configs: dict[str, str]
) -> CreatableTopic:
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=(),
        configs=tuple(
            CreatableTopicConfig(name=key, value=value) for key, value in configs.items()
        ),
    )
