"""The keys of server.properties that a broker acts on, with Kafka's defaults and limits."""

from collections.abc import Mapping

from tidelog.config.key import (
    ConfigKey,
    at_least,
    between,
    boolean,
    double,
    host_counts,
    int16,
    int32,
    int64,
    level_or,
    one_of,
    one_of_ignoring_case,
    string,
    strings,
    throttled_rate,
    unlimited_or_positive,
)
from tidelog.config.topic_keys import COMPRESSION_TYPES, TIMESTAMP_TYPES

_MOST = (1 << 31) - 1
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
_FOREVER = (1 << 63) - 1

DEFAULT_SECURITY_MAP = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"

_IDENTITY = (
    int32("node.id", None, "The node's id, unique in the cluster.", at_least(0)),
    strings("process.roles", None, "What the process is: broker, controller, or both."),
    string("broker.rack", None, "The rack of this broker; replicas are spread over racks."),
    strings("listeners", "PLAINTEXT://:9092", "Where to listen: name://host:port, ..."),
    strings(
        "advertised.listeners", None, "What clients are told, where it differs from listeners."
    ),
    string(
        "listener.security.protocol.map",
        DEFAULT_SECURITY_MAP,
        "The security protocol of each listener name.",
    ),
    string("inter.broker.listener.name", None, "The listener that brokers use among themselves."),
    string(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "Security protocol among brokers, where inter.broker.listener.name is not set.",
        one_of("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    ),
    strings("controller.listener.names", None, "The listeners of the controller."),
    strings("controller.quorum.voters", "", "The fixed voters of the quorum: id@host:port, ..."),
    strings("controller.quorum.bootstrap.servers", "", "Where to find the quorum: host:port, ..."),
    strings("log.dir", "/tmp/kafka-logs", "The log directory, where log.dirs is not set."),
    strings("log.dirs", None, "The log directories, separated by commas."),
    string(
        "metadata.log.dir", None, "The metadata log's directory; the first of log.dirs if unset."
    ),
)

_TOPICS = (
    int32("num.partitions", 1, "Partitions of a topic made without a number.", at_least(1)),
    int32("default.replication.factor", 1, "Replicas of a topic made without a number."),
    boolean("auto.create.topics.enable", True, "Whether a topic is made when first asked for."),
    boolean("delete.topic.enable", True, "Whether topics may be deleted."),
    int32("max.request.partition.size.limit", 2000, "Partitions in one page.", at_least(1)),
    boolean("auto.leader.rebalance.enable", True, "Whether leadership goes back by itself."),
    int64(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often leaders are compared with the preferred ones.",
        at_least(1),
    ),
)

_LOG = (
    strings("log.cleanup.policy", "delete", "Default cleanup.policy.", one_of("compact", "delete")),
    int32("compression.gzip.level", -1, "Default compression.gzip.level.", level_or(-1, 1, 9)),
    int32("compression.lz4.level", 9, "Default compression.lz4.level.", between(1, 17)),
    string("compression.type", "producer", "Default compression.type.", one_of(*COMPRESSION_TYPES)),
    int32("compression.zstd.level", 3, "Default compression.zstd.level.", between(-131072, 22)),
    int64("log.cleaner.delete.retention.ms", 86400000, "Default delete.retention.ms.", at_least(0)),
    int64(
        "log.cleaner.max.compaction.lag.ms",
        _FOREVER,
        "Default max.compaction.lag.ms.",
        at_least(1),
    ),
    double(
        "log.cleaner.min.cleanable.ratio",
        "0.5",
        "Default min.cleanable.dirty.ratio.",
        between(0, 1),
    ),
    int64("log.cleaner.min.compaction.lag.ms", 0, "Default min.compaction.lag.ms.", at_least(0)),
    boolean("log.cleaner.enable", True, "Whether compaction runs."),
    int64("log.cleaner.backoff.ms", 15000, "Pause when nothing is to compact.", at_least(0)),
    int32("log.index.interval.bytes", 4096, "Default index.interval.bytes.", at_least(0)),
    int32("log.index.size.max.bytes", 10485760, "Default segment.index.bytes.", at_least(4)),
    int64("log.local.retention.bytes", -2, "Default local.retention.bytes.", at_least(-2)),
    int64("log.local.retention.ms", -2, "Default local.retention.ms.", at_least(-2)),
    int64(
        "log.message.timestamp.after.max.ms",
        3600000,
        "Default message.timestamp.after.max.ms.",
        at_least(0),
    ),
    int64(
        "log.message.timestamp.before.max.ms",
        _FOREVER,
        "Default message.timestamp.before.max.ms.",
        at_least(0),
    ),
    string(
        "log.message.timestamp.type",
        "CreateTime",
        "Default message.timestamp.type.",
        one_of(*TIMESTAMP_TYPES),
    ),
    boolean("log.preallocate", False, "Default preallocate."),
    int64("log.retention.bytes", -1, "Default retention.bytes."),
    int64("log.retention.ms", None, "Default retention.ms.", unlimited_or_positive),
    int32(
        "log.retention.minutes",
        None,
        "retention.ms in minutes, if log.retention.ms is unset.",
        unlimited_or_positive,
    ),
    int32(
        "log.retention.hours",
        168,
        "retention.ms in hours, if neither of the others is set.",
        unlimited_or_positive,
    ),
    int64("log.retention.check.interval.ms", 300000, "How often retention runs.", at_least(1)),
    int64("log.roll.ms", None, "Default segment.ms."),
    int32("log.roll.hours", 168, "segment.ms in hours, if log.roll.ms is unset.", at_least(1)),
    int64("log.roll.jitter.ms", None, "Default segment.jitter.ms."),
    int32("log.roll.jitter.hours", 0, "segment.jitter.ms in hours.", at_least(0)),
    int32("log.segment.bytes", 1073741824, "Default segment.bytes.", at_least(1048576)),
    int64("log.segment.delete.delay.ms", 60000, "Default file.delete.delay.ms.", at_least(0)),
    int64("log.initial.task.delay.ms", 30000, "Pause before background tasks.", at_least(0)),
    int64("log.flush.interval.messages", _FOREVER, "Default flush.messages.", at_least(1)),
    int64("log.flush.interval.ms", None, "Default flush.ms."),
    int64("log.flush.scheduler.interval.ms", _FOREVER, "How often flush.ms is looked at."),
    int32(
        "log.flush.offset.checkpoint.interval.ms",
        60000,
        "How often recovery points are written down.",
        at_least(0),
    ),
    int32(
        "log.flush.start.offset.checkpoint.interval.ms",
        60000,
        "How often log start offsets are written down.",
        at_least(0),
    ),
    int32("message.max.bytes", 1048588, "Default max.message.bytes.", at_least(0)),
    int32("min.insync.replicas", 1, "Default min.insync.replicas.", at_least(1)),
    boolean("unclean.leader.election.enable", False, "Default unclean.leader.election.enable."),
    int32("producer.id.expiration.ms", 86400000, "Idle producers are forgotten.", at_least(1)),
    int32(
        "producer.id.expiration.check.interval.ms",
        600000,
        "How often idle producers are looked for.",
        at_least(1),
    ),
)

_REPLICATION = (
    int64(
        "log.dir.failure.timeout.ms",
        30000,
        "A broker that cannot say for so long that a log directory has failed stops.",
        at_least(1),
    ),
    throttled_rate("leader.replication.throttled.rate", "Bytes per second to throttled replicas."),
    throttled_rate("follower.replication.throttled.rate", "Bytes per second of throttled ones."),
    int64("replica.lag.time.max.ms", 30000, "A follower behind for longer leaves the ISR."),
    int32("replica.fetch.min.bytes", 1, "Bytes that a follower's fetch waits for."),
    int32("replica.fetch.max.bytes", 1048576, "Bytes per partition and fetch.", at_least(0)),
    int32("replica.fetch.wait.max.ms", 500, "How long a follower's fetch waits."),
    int32("replica.fetch.response.max.bytes", 10485760, "Bytes per fetch.", at_least(0)),
    int32("replica.fetch.backoff.ms", 1000, "Pause after a failed fetch.", at_least(0)),
    int32("replica.socket.timeout.ms", 30000, "How long a fetch may go unanswered."),
    int32("num.replica.fetchers", 1, "Fetchers per leader."),
    int64(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "How often high watermarks are written down.",
    ),
    string(
        "replica.selector.class",
        None,
        "Which replica a consumer is sent to.",
        one_of(RACK_AWARE_SELECTOR, LEADER_SELECTOR),
    ),
    int32("broker.heartbeat.interval.ms", 2000, "How often a broker says that it lives."),
    int32("broker.session.timeout.ms", 9000, "A broker silent for longer is fenced."),
    int32("initial.broker.registration.timeout.ms", 60000, "How long a start may take."),
    boolean("controlled.shutdown.enable", True, "Whether a stop first hands over leadership."),
    int32("request.timeout.ms", 30000, "How long a request may go unanswered."),
)

_QUORUM = (
    int32("controller.quorum.append.linger.ms", 25, "Appends wait for company.", at_least(0)),
    int32("controller.quorum.election.backoff.max.ms", 1000, "Longest backoff.", at_least(0)),
    int32("controller.quorum.election.timeout.ms", 1000, "Wait for an election.", at_least(0)),
    int32("controller.quorum.fetch.timeout.ms", 2000, "Wait for the leader.", at_least(0)),
    int32("controller.quorum.request.timeout.ms", 2000, "Wait for an answer.", at_least(0)),
    int32("controller.quorum.retry.backoff.ms", 20, "Pause before asking again.", at_least(0)),
    int32("metadata.log.segment.bytes", 1073741824, "Segment size.", at_least(8388608)),
    int64("metadata.log.segment.ms", 604800000, "Age at which a segment is closed."),
    int64("metadata.max.retention.bytes", 104857600, "Metadata log kept, in bytes."),
    int64("metadata.max.retention.ms", 604800000, "Metadata log kept, in time."),
    int32("metadata.max.idle.interval.ms", 500, "How often an idle log grows.", at_least(0)),
    int64(
        "metadata.log.max.record.bytes.between.snapshots",
        20971520,
        "Bytes of metadata after which a snapshot is taken.",
        at_least(1),
    ),
    int64(
        "metadata.log.max.snapshot.interval.ms",
        3600000,
        "Time after which a snapshot is taken; 0 is never.",
        at_least(0),
    ),
)

_GROUPS = (
    int32("group.min.session.timeout.ms", 6000, "Shortest session that a member may ask for."),
    int32("group.max.session.timeout.ms", 1800000, "Longest session that a member may ask for."),
    int32("group.initial.rebalance.delay.ms", 3000, "A new group waits for more members."),
    int32("group.max.size", _MOST, "Members of a classic group.", at_least(1)),
    strings("group.coordinator.rebalance.protocols", "classic,consumer,streams", "Protocols."),
    int32("group.consumer.session.timeout.ms", 45000, "A member's session.", at_least(1)),
    int32("group.consumer.min.session.timeout.ms", 45000, "Shortest session.", at_least(1)),
    int32("group.consumer.max.session.timeout.ms", 60000, "Longest session.", at_least(1)),
    int32("group.consumer.heartbeat.interval.ms", 5000, "A member's heartbeat.", at_least(1)),
    int32("group.consumer.min.heartbeat.interval.ms", 5000, "Shortest interval.", at_least(1)),
    int32("group.consumer.max.heartbeat.interval.ms", 15000, "Longest interval.", at_least(1)),
    int32("group.consumer.max.size", _MOST, "Members of a consumer group.", at_least(1)),
    strings("group.consumer.assignors", "uniform,range", "Assignors, the default first."),
    string(
        "group.consumer.migration.policy",
        "bidirectional",
        "Which way a group may change its protocol.",
        one_of_ignoring_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
    ),
    int32("offset.metadata.max.bytes", 4096, "Longest metadata of a committed offset."),
    int32("offsets.commit.timeout.ms", 5000, "Wait for a commit's replicas.", at_least(1)),
    int32("offsets.load.buffer.size", 5242880, "Bytes read at once.", at_least(1)),
    int64("offsets.retention.check.interval.ms", 600000, "How often.", at_least(1)),
    int32("offsets.retention.minutes", 10080, "Offsets of a dead group are kept.", at_least(1)),
    int32("offsets.topic.num.partitions", 50, "Of __consumer_offsets.", at_least(1)),
    int16("offsets.topic.replication.factor", 3, "Of __consumer_offsets.", at_least(1)),
    int32("offsets.topic.segment.bytes", 104857600, "Of __consumer_offsets.", at_least(1)),
    int32("offsets.topic.compression.codec", 0, "Of __consumer_offsets."),
)

_TRANSACTIONS = (
    int32("transactional.id.expiration.ms", 604800000, "Idle ids are forgotten.", at_least(1)),
    int32("transaction.max.timeout.ms", 900000, "Longest transaction.", at_least(1)),
    int32("transaction.state.log.num.partitions", 50, "Of __transaction_state.", at_least(1)),
    int16("transaction.state.log.replication.factor", 3, "Of __transaction_state.", at_least(1)),
    int32("transaction.state.log.min.isr", 2, "Of __transaction_state.", at_least(1)),
    int32("transaction.state.log.segment.bytes", 104857600, "Of __transaction_state.", at_least(1)),
    int32(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10000,
        "How often transactions that ran out of time are looked for.",
        at_least(1),
    ),
    int32(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3600000,
        "How often expired transactional ids are looked for.",
        at_least(1),
    ),
)

_NETWORK = (
    int32("socket.request.max.bytes", 104857600, "Largest request.", at_least(1)),
    int32("socket.listen.backlog.size", 50, "Connections waiting to be taken.", at_least(1)),
    int32("socket.receive.buffer.bytes", 102400, "SO_RCVBUF; -1 is the system's."),
    int32("socket.send.buffer.bytes", 102400, "SO_SNDBUF; -1 is the system's."),
    int64("connections.max.idle.ms", 600000, "An idle connection is closed after this."),
    int32("max.connections", _MOST, "Connections in all.", at_least(0)),
    int32("max.connections.per.ip", _MOST, "Connections from one address.", at_least(0)),
    string(
        "max.connections.per.ip.overrides",
        "",
        "The same for single hosts or addresses, as host:connections,...",
        host_counts,
    ),
    int32("fetch.max.bytes", 57671680, "Most that one fetch answers.", at_least(1024)),
    int32("max.incremental.fetch.session.cache.slots", 1000, "Fetch sessions.", at_least(0)),
    int64("queued.max.request.bytes", -1, "Bytes of requests at once; -1 is no limit."),
    int32("queued.max.requests", 500, "Requests at once.", at_least(1)),
)

_TIDELOG = (
    boolean(
        "tidelog.replication.events.enable",
        False,
        "Whether what happens to replicas is told in the topic __tidelog_replication_events.",
    ),
    int64(
        "tidelog.replication.events.interval.ms",
        5000,
        "How often the state of replicas is told there, if it has changed.",
        at_least(100),
    ),
    int32(
        "tidelog.metrics.port",
        None,
        "Port of the Prometheus metrics, on the host of the first listener; none if unset.",
        between(1, 65535),
    ),
)

BROKER_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for family in (
        _IDENTITY,
        _TOPICS,
        _LOG,
        _REPLICATION,
        _QUORUM,
        _GROUPS,
        _TRANSACTIONS,
        _NETWORK,
        _TIDELOG,
    )
    for key in family
}

DYNAMIC_KEYS = frozenset(
    {
        "background.threads",
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleaner.threads",
        "log.cleanup.policy",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.index.interval.bytes",
        "log.index.size.max.bytes",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.type",
        "log.preallocate",
        "log.retention.bytes",
        "log.retention.ms",
        "log.roll.jitter.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "log.segment.delete.delay.ms",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "message.max.bytes",
        "metric.reporters",
        "min.insync.replicas",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "producer.id.expiration.ms",
        "transaction.partition.verification.enable",
        "unclean.leader.election.enable",
    }
)
"""Broker keys that may be altered while brokers run, per broker or for the whole cluster."""
