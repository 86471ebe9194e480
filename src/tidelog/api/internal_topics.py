"""The topics that the broker makes for itself on first use, with Kafka's settings for each."""

from datetime import timedelta

from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)

from tidelog.controller.settings import BrokerSettings

CONSUMER_OFFSETS = "__consumer_offsets"
TRANSACTION_STATE = "__transaction_state"
SHARE_GROUP_STATE = "__share_group_state"
INTERNAL_TOPICS = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})


def creatable_topic(name: str, settings: BrokerSettings) -> CreatableTopic | None:
    """What to create when a client first needs the topic; None for one that nothing here uses."""
    if name == CONSUMER_OFFSETS:
        return consumer_offsets(settings)
    if name == TRANSACTION_STATE:
        return _transaction_state(settings)
    if name == SHARE_GROUP_STATE:
        return None
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


def creation(topics: list[CreatableTopic], settings: BrokerSettings) -> CreateTopicsRequest:
    """The request that the controller decides on."""
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
