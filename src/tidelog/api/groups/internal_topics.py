"""The topics that the broker makes for itself on first use, with Kafka's settings for each."""

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
"""What clients are told is internal: some, such as Spark's connector, then refuse to read it."""
_WEEK_MS = 7 * 24 * 60 * 60 * 1000


def creatable_topic(name: str, settings: BrokerSettings) -> CreatableTopic | None:
    """What to create when a client first needs the topic; None for one that nothing here uses."""
    if name == CONSUMER_OFFSETS:
        return consumer_offsets(settings)
    if name == TRANSACTION_STATE:
        return _transaction_state(settings)
    if name in (SHARE_GROUP_STATE, REPLICATION_EVENTS):
        return None  # nothing here uses the first; brokers make the second when they need it
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


def replication_events(replication_factor: int) -> CreatableTopic:
    """Tidelog's own: one partition, so that events have one order; a week, then they go.

    It takes events as long as any replica is there to take them: that is when they matter.
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
