"""The configuration of a topic in typed form; all topics without overrides share one object."""

from collections.abc import Collection, Mapping
from typing import Any

from tidelog.config.settings import BrokerSettings
from tidelog.controller.configs.effective import broker_value, topic_defaults, with_overrides
from tidelog.controller.image.image import TOPIC_RESOURCE, ClusterImage
from tidelog.log.config import LARGEST_BATCH, MILLION, LogConfig, StoredCodec
from tidelog.model.ids import Millis, NodeId
from tidelog.replication.rules import QUORUM, RULES, CommitRule, majority_of
from tidelog.replication.throttle import Throttling

_LEVELS = {
    "gzip": "compression.gzip.level",
    "lz4": "compression.lz4.level",
    "zstd": "compression.zstd.level",
}
PRODUCER_ID_EXPIRATION = "producer.id.expiration.ms"


class TopicConfig:
    """The settings that the log and the leader of a partition apply."""

    __slots__ = (
        "_min_insync_replicas",
        "_throttled_followers",
        "_throttled_leaders",
        "commit",
        "log",
    )

    def __init__(self, values: Mapping[str, Any], producer_id_expiration_ms: Millis) -> None:
        self._min_insync_replicas: int = values["min.insync.replicas"]
        self.commit: CommitRule = RULES[values["tidelog.commit.rule"]]
        self._throttled_leaders = frozenset(values["leader.replication.throttled.replicas"])
        self._throttled_followers = frozenset(values["follower.replication.throttled.replicas"])
        self.log = LogConfig(
            segment_bytes=values.get("internal.segment.bytes") or values["segment.bytes"],
            segment_ms=values["segment.ms"],
            segment_jitter_ms=values["segment.jitter.ms"],
            segment_index_bytes=values["segment.index.bytes"],
            index_interval_bytes=values["index.interval.bytes"],
            retention_ms=values["retention.ms"],
            retention_bytes=values["retention.bytes"],
            max_message_bytes=min(values["max.message.bytes"], LARGEST_BATCH),
            flush_messages=values["flush.messages"],
            flush_ms=values["flush.ms"],
            message_timestamp_type=values["message.timestamp.type"],
            message_timestamp_before_max_ms=values["message.timestamp.before.max.ms"],
            message_timestamp_after_max_ms=values["message.timestamp.after.max.ms"],
            cleanup_policy=frozenset(values["cleanup.policy"]),
            file_delete_delay_ms=values["file.delete.delay.ms"],
            delete_retention_ms=values["delete.retention.ms"],
            min_cleanable_dirty_millionths=round(values["min.cleanable.dirty.ratio"] * MILLION),
            min_compaction_lag_ms=values["min.compaction.lag.ms"],
            max_compaction_lag_ms=values["max.compaction.lag.ms"],
            producer_id_expiration_ms=producer_id_expiration_ms,
            stored_codec=_stored_codec(values),
        )

    def least_in_sync(self, replicas: Collection[NodeId]) -> int:
        """How many of these replicas must be in sync, so that the leader accepts acks=all."""
        if self.commit is QUORUM:
            return majority_of(replicas)
        return min(self._min_insync_replicas, len(replicas))

    def throttling(self, partition: int, broker: NodeId) -> Throttling:
        """Whether the topic's lists of throttled replicas include this broker's replica."""
        named = {"*", f"{partition}:{broker}"}
        return Throttling(
            not named.isdisjoint(self._throttled_leaders),
            not named.isdisjoint(self._throttled_followers),
        )


def _stored_codec(values: Mapping[str, Any]) -> StoredCodec | None:
    name = values["compression.type"]
    if name == "producer":
        return None
    if name == "uncompressed":
        return StoredCodec("none")
    level = _LEVELS.get(name)
    return StoredCodec(name, None if level is None else values[level])


class TopicConfigs:
    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._seen: Mapping[tuple[int, str], Mapping[str, str]] | None = None
        self._values: Mapping[str, Any] = {}
        self._producer_id_expiration_ms: Millis = settings.producer_id_expiration_ms
        self._default: TopicConfig | None = None

    def of(self, image: ClusterImage, topic: str) -> TopicConfig:
        if self._default is None or self._seen is not image.configs:
            self._seen = image.configs
            self._values = topic_defaults(image, self._settings)
            expiration = broker_value(image, self._settings, PRODUCER_ID_EXPIRATION)
            assert isinstance(expiration, int)
            self._producer_id_expiration_ms = expiration
            self._default = TopicConfig(self._values, expiration)
        overrides = image.config(TOPIC_RESOURCE, topic)
        if not overrides:
            return self._default
        values = with_overrides(self._values, overrides)
        return TopicConfig(values, self._producer_id_expiration_ms)
