"""Kafka's topic configuration keys, and the broker keys that give each its cluster-wide default."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.config.key import (
    ConfigKey,
    ConfigType,
    at_least,
    between,
    boolean,
    double,
    int32,
    int64,
    level_or,
    one_of,
    string,
    strings,
    throttled_replicas,
)

_FOREVER = (1 << 63) - 1

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

_KEYS = (
    strings(
        "cleanup.policy",
        "delete",
        "What happens to old segments: delete them, compact them by key, or both.",
        one_of("compact", "delete"),
    ),
    int32(
        "compression.gzip.level",
        -1,
        "Level for compression.type=gzip; -1 is the codec's own default.",
        level_or(-1, 1, 9),
    ),
    int32(
        "compression.lz4.level",
        9,
        "Level for compression.type=lz4.",
        between(1, 17),
    ),
    string(
        "compression.type",
        "producer",
        "Codec of the stored batches; `producer` keeps what the producer chose.",
        one_of(*COMPRESSION_TYPES),
    ),
    int32(
        "compression.zstd.level",
        3,
        "Level for compression.type=zstd.",
        between(-131072, 22),
    ),
    int64(
        "delete.retention.ms",
        86400000,
        "How long a compacted topic keeps tombstones, so that readers can see them.",
        at_least(0),
    ),
    int64(
        "file.delete.delay.ms",
        60000,
        "How long a removed segment's file stays before it is deleted.",
        at_least(0),
    ),
    int64(
        "flush.messages",
        _FOREVER,
        "Force an fsync after this many records; 1 flushes after each.",
        at_least(1),
    ),
    int64(
        "flush.ms",
        _FOREVER,
        "Force an fsync when records have waited this long for one.",
        at_least(0),
    ),
    strings(
        "follower.replication.throttled.replicas",
        "",
        "Replicas whose fetching is throttled: partition:broker pairs, or * for all.",
        throttled_replicas,
    ),
    int32(
        "index.interval.bytes",
        4096,
        "Bytes of log between two entries of the offset index.",
        at_least(0),
    ),
    strings(
        "leader.replication.throttled.replicas",
        "",
        "Replicas whose serving is throttled: partition:broker pairs, or * for all.",
        throttled_replicas,
    ),
    int64(
        "local.retention.bytes",
        -2,
        "Bytes kept locally under tiered storage; -2 follows retention.bytes.",
        at_least(-2),
    ),
    int64(
        "local.retention.ms",
        -2,
        "Time kept locally under tiered storage; -2 follows retention.ms.",
        at_least(-2),
    ),
    int64(
        "max.compaction.lag.ms",
        _FOREVER,
        "The longest that a record may stay out of reach of compaction.",
        at_least(1),
    ),
    int32(
        "max.message.bytes",
        1048588,
        "The largest record batch that the topic takes, after compression.",
        at_least(0),
    ),
    int64(
        "message.timestamp.after.max.ms",
        3600000,
        "How far a CreateTime timestamp may lie ahead of the broker's clock.",
        at_least(0),
    ),
    int64(
        "message.timestamp.before.max.ms",
        _FOREVER,
        "How far a CreateTime timestamp may lie behind the broker's clock.",
        at_least(0),
    ),
    string(
        "message.timestamp.type",
        "CreateTime",
        "Whether a record's timestamp is the producer's or the time of the append.",
        one_of(*TIMESTAMP_TYPES),
    ),
    double(
        "min.cleanable.dirty.ratio",
        "0.5",
        "Share of uncompacted bytes at which a log is worth compacting.",
        between(0, 1),
    ),
    int64(
        "min.compaction.lag.ms",
        0,
        "The shortest that a record stays as written before compaction may drop it.",
        at_least(0),
    ),
    int32(
        "min.insync.replicas",
        1,
        "In-sync replicas that acks=all needs; with fewer, writes are refused.",
        at_least(1),
    ),
    boolean(
        "preallocate",
        False,
        "Whether a new segment's file is given its full size at once.",
    ),
    boolean(
        "remote.log.copy.disable",
        False,
        "Whether tiered data is read only, with nothing more copied.",
    ),
    boolean(
        "remote.log.delete.on.disable",
        False,
        "Whether tiered data is deleted when tiering is turned off.",
    ),
    boolean(
        "remote.storage.enable",
        False,
        "Whether the topic uses tiered storage.",
    ),
    int64(
        "retention.bytes",
        -1,
        "Bytes kept per partition before the oldest segments go; -1 is no limit.",
    ),
    int64(
        "retention.ms",
        604800000,
        "Time that records are kept before their segments go; -1 is no limit.",
        at_least(-1),
    ),
    int32(
        "segment.bytes",
        1073741824,
        "Size at which a new segment is begun.",
        at_least(1048576),
    ),
    int32(
        "segment.index.bytes",
        10485760,
        "Size at which a full offset index begins a new segment.",
        at_least(4),
    ),
    ConfigKey(
        "internal.segment.bytes",
        ConfigType.INT,
        None,
        "Size at which a new segment is begun, without the lower limit of segment.bytes.",
        internal=True,
    ),
    int64(
        "segment.jitter.ms",
        0,
        "Random time taken off segment.ms, so that segments do not roll all at once.",
        at_least(0),
    ),
    int64(
        "segment.ms",
        604800000,
        "Age at which a new segment is begun even if the old one is small.",
        at_least(1),
    ),
    boolean(
        "unclean.leader.election.enable",
        False,
        "Whether a replica out of sync may lead as a last resort, losing records.",
    ),
)

TOPIC_KEYS: Mapping[str, ConfigKey] = {key.name: key for key in _KEYS}


@dataclass(frozen=True, slots=True)
class BrokerSynonym:
    """A broker key that sets a topic key's default, and the factor between their units."""

    name: str
    factor: int = 1


_MINUTES, _HOURS = 60 * 1000, 60 * 60 * 1000

SYNONYMS: Mapping[str, tuple[BrokerSynonym, ...]] = {
    "cleanup.policy": (BrokerSynonym("log.cleanup.policy"),),
    "compression.gzip.level": (BrokerSynonym("compression.gzip.level"),),
    "compression.lz4.level": (BrokerSynonym("compression.lz4.level"),),
    "compression.type": (BrokerSynonym("compression.type"),),
    "compression.zstd.level": (BrokerSynonym("compression.zstd.level"),),
    "delete.retention.ms": (BrokerSynonym("log.cleaner.delete.retention.ms"),),
    "file.delete.delay.ms": (BrokerSynonym("log.segment.delete.delay.ms"),),
    "flush.messages": (BrokerSynonym("log.flush.interval.messages"),),
    "flush.ms": (
        BrokerSynonym("log.flush.interval.ms"),
        BrokerSynonym("log.flush.scheduler.interval.ms"),
    ),
    "index.interval.bytes": (BrokerSynonym("log.index.interval.bytes"),),
    "local.retention.bytes": (BrokerSynonym("log.local.retention.bytes"),),
    "local.retention.ms": (BrokerSynonym("log.local.retention.ms"),),
    "max.compaction.lag.ms": (BrokerSynonym("log.cleaner.max.compaction.lag.ms"),),
    "max.message.bytes": (BrokerSynonym("message.max.bytes"),),
    "message.timestamp.after.max.ms": (BrokerSynonym("log.message.timestamp.after.max.ms"),),
    "message.timestamp.before.max.ms": (BrokerSynonym("log.message.timestamp.before.max.ms"),),
    "message.timestamp.type": (BrokerSynonym("log.message.timestamp.type"),),
    "min.cleanable.dirty.ratio": (BrokerSynonym("log.cleaner.min.cleanable.ratio"),),
    "min.compaction.lag.ms": (BrokerSynonym("log.cleaner.min.compaction.lag.ms"),),
    "min.insync.replicas": (BrokerSynonym("min.insync.replicas"),),
    "preallocate": (BrokerSynonym("log.preallocate"),),
    "retention.bytes": (BrokerSynonym("log.retention.bytes"),),
    "retention.ms": (
        BrokerSynonym("log.retention.ms"),
        BrokerSynonym("log.retention.minutes", _MINUTES),
        BrokerSynonym("log.retention.hours", _HOURS),
    ),
    "segment.bytes": (BrokerSynonym("log.segment.bytes"),),
    "segment.index.bytes": (BrokerSynonym("log.index.size.max.bytes"),),
    "segment.jitter.ms": (
        BrokerSynonym("log.roll.jitter.ms"),
        BrokerSynonym("log.roll.jitter.hours", _HOURS),
    ),
    "segment.ms": (BrokerSynonym("log.roll.ms"), BrokerSynonym("log.roll.hours", _HOURS)),
    "unclean.leader.election.enable": (BrokerSynonym("unclean.leader.election.enable"),),
}
"""Most telling first: log.retention.ms over log.retention.minutes over log.retention.hours."""
