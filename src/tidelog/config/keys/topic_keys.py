"""The keys of a topic, and the broker keys from which they take their defaults."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tidelog.config import reasons
from tidelog.config.checks import at_least, between, level_or, one_of, throttled_replicas
from tidelog.config.key import (
    ConfigKey,
    ConfigScope,
    ConfigType,
    boolean,
    double,
    int32,
    int64,
    string,
    strings,
)
from tidelog.config.keys.table_keys import TABLE_KEYS

_FOREVER = (1 << 63) - 1

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")

_KEYS = (
    strings(
        "cleanup.policy",
        "delete",
        "Whether old segments are deleted, compacted, or both.",
        one_of("compact", "delete"),
    ),
    int32(
        "compression.gzip.level",
        -1,
        "The level of compression.type=gzip; -1 is the codec's own default.",
        level_or(-1, 1, 9),
    ),
    int32(
        "compression.lz4.level",
        9,
        "The level of compression.type=lz4.",
        between(1, 17),
    ),
    string(
        "compression.type",
        "producer",
        "The codec of stored batches; `producer` keeps the codec of the producer.",
        one_of(*COMPRESSION_TYPES),
    ),
    int32(
        "compression.zstd.level",
        3,
        "The level of compression.type=zstd.",
        between(-131072, 22),
    ),
    int64(
        "delete.retention.ms",
        86400000,
        "How long a compacted topic keeps tombstones, so that consumers can read them.",
        at_least(0),
    ),
    int64(
        "file.delete.delay.ms",
        60000,
        "How long the file of a deleted segment stays on disk.",
        at_least(0),
    ),
    int64(
        "flush.messages",
        _FOREVER,
        "The number of records after which a log is flushed (fsync); 1 flushes every batch.",
        at_least(1),
    ),
    int64(
        "flush.ms", _FOREVER, "The longest time that records wait for a flush (fsync).", at_least(0)
    ),
    strings(
        "follower.replication.throttled.replicas",
        "",
        "Replicas that fetch at a throttled rate: partition:broker pairs, or * for all.",
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
        "Replicas that leaders serve at a throttled rate: partition:broker pairs, or * for all.",
        throttled_replicas,
    ),
    int64(
        "local.retention.bytes",
        -2,
        "Bytes kept locally under tiered storage; -2 follows retention.bytes.",
        at_least(-2),
        support=reasons.TIERED_STORAGE,
    ),
    int64(
        "local.retention.ms",
        -2,
        "Time kept locally under tiered storage; -2 follows retention.ms.",
        at_least(-2),
        support=reasons.TIERED_STORAGE,
    ),
    int64(
        "max.compaction.lag.ms",
        _FOREVER,
        "The longest time before a record becomes eligible for compaction.",
        at_least(1),
    ),
    int32(
        "max.message.bytes",
        1048588,
        "The largest record batch that a producer may write, after compression.",
        at_least(0),
    ),
    int64(
        "message.timestamp.after.max.ms",
        3600000,
        "How far a CreateTime timestamp may be ahead of the broker's clock.",
        at_least(0),
    ),
    int64(
        "message.timestamp.before.max.ms",
        _FOREVER,
        "How far a CreateTime timestamp may be behind the broker's clock.",
        at_least(0),
    ),
    string(
        "message.timestamp.type",
        "CreateTime",
        "Whether a record has the producer's timestamp or the time of the append.",
        one_of(*TIMESTAMP_TYPES),
    ),
    double(
        "min.cleanable.dirty.ratio",
        "0.5",
        "The share of uncompacted bytes at which a log is compacted.",
        between(0, 1),
    ),
    int64(
        "min.compaction.lag.ms",
        0,
        "The shortest time before a record may be compacted.",
        at_least(0),
    ),
    int32(
        "min.insync.replicas",
        1,
        "The in-sync replicas that a write with acks=all needs; with fewer it fails.",
        at_least(1),
    ),
    boolean(
        "preallocate",
        False,
        "Whether a new segment file has its full size from the start.",
        support=reasons.PREALLOCATION,
    ),
    boolean(
        "remote.log.copy.disable",
        False,
        "Whether tiered storage stops copying segments and serves reads only.",
        support=reasons.TIERED_STORAGE,
    ),
    boolean(
        "remote.log.delete.on.disable",
        False,
        "Whether tiered data is deleted when tiered storage is disabled.",
        support=reasons.TIERED_STORAGE,
    ),
    boolean(
        "remote.storage.enable",
        False,
        "Whether the topic uses tiered storage.",
        support=reasons.TIERED_STORAGE,
    ),
    int64(
        "retention.bytes",
        -1,
        "The size of a partition above which old segments are deleted; -1 means no limit.",
    ),
    int64(
        "retention.ms",
        604800000,
        "The age at which segments are deleted; -1 means no limit.",
        at_least(-1),
    ),
    int32(
        "segment.bytes", 1073741824, "The size at which a new segment begins.", at_least(1048576)
    ),
    int32(
        "segment.index.bytes",
        10485760,
        "The size of the offset index at which a new segment begins.",
        at_least(4),
    ),
    ConfigKey(
        "internal.segment.bytes",
        ConfigType.INT,
        None,
        "The size at which a new segment begins, without the lower limit of segment.bytes.",
        internal=True,
    ),
    int64(
        "segment.jitter.ms",
        0,
        "The upper bound of a random time by which segment.ms is shortened, per segment.",
        at_least(0),
    ),
    int64(
        "segment.ms",
        604800000,
        "The age at which a new segment begins, even if the current one is small.",
        at_least(1),
    ),
    *TABLE_KEYS,
    replace(
        string(
            "tidelog.commit.rule",
            "isr",
            "When a record is committed: when every in-sync replica holds it (`isr`), or when a "
            "majority of the replicas does (`quorum`); fixed when the topic is created.",
            one_of("isr", "quorum"),
        ),
        internal=True,
    ),
    boolean(
        "unclean.leader.election.enable",
        False,
        "Whether a replica out of sync may become leader as a last resort, which loses records.",
    ),
)

TOPIC_KEYS: Mapping[str, ConfigKey] = {
    key.name: replace(key, scope=ConfigScope.PER_TOPIC) for key in _KEYS
}


@dataclass(frozen=True, slots=True)
class BrokerSynonym:
    """A broker key that gives a topic key its default; `factor` converts the broker key's unit."""

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
"""The broker keys for each topic key, in order of precedence."""
