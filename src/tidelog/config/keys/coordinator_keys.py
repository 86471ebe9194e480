"""The broker keys about groups, committed offsets and transactions."""

from tidelog.config import reasons
from tidelog.config.checks import at_least, one_of_ignoring_case
from tidelog.config.key import ConfigScope, boolean, int16, int32, int64, string, strings

_MOST = (1 << 31) - 1

GROUP_COORDINATOR_KEYS = (
    int32(
        "group.min.session.timeout.ms",
        6000,
        "The shortest session timeout of a member of a classic group.",
    ),
    int32(
        "group.max.session.timeout.ms",
        1800000,
        "The longest session timeout of a member of a classic group.",
    ),
    int32(
        "group.initial.rebalance.delay.ms",
        3000,
        "How long the first rebalance of a new group waits for more members.",
    ),
    int32(
        "group.max.size", _MOST, "The maximum number of members of a classic group.", at_least(1)
    ),
    strings(
        "group.coordinator.rebalance.protocols",
        "classic,consumer,streams",
        "The group protocols that brokers serve.",
    ),
    int32(
        "group.consumer.session.timeout.ms",
        45000,
        "The session timeout of a member of a consumer group.",
        at_least(1),
    ),
    int32(
        "group.consumer.min.session.timeout.ms",
        45000,
        "The lower limit of the group key consumer.session.timeout.ms.",
        at_least(1),
    ),
    int32(
        "group.consumer.max.session.timeout.ms",
        60000,
        "The upper limit of the group key consumer.session.timeout.ms.",
        at_least(1),
    ),
    int32(
        "group.consumer.heartbeat.interval.ms",
        5000,
        "The heartbeat interval of a member of a consumer group.",
        at_least(1),
    ),
    int32(
        "group.consumer.min.heartbeat.interval.ms",
        5000,
        "The lower limit of the group key consumer.heartbeat.interval.ms.",
        at_least(1),
    ),
    int32(
        "group.consumer.max.heartbeat.interval.ms",
        15000,
        "The upper limit of the group key consumer.heartbeat.interval.ms.",
        at_least(1),
    ),
    int32(
        "group.consumer.max.size",
        _MOST,
        "The maximum number of members of a consumer group.",
        at_least(1),
    ),
    strings(
        "group.consumer.assignors",
        "uniform,range",
        "The assignors of consumer groups, the default first.",
    ),
    string(
        "group.consumer.migration.policy",
        "bidirectional",
        "Whether a group may change between the classic and the consumer protocol.",
        one_of_ignoring_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
    ),
    int32(
        "group.consumer.assignment.interval.ms",
        1000,
        "The shortest time between two assignments of a consumer group.",
        at_least(0),
    ),
    int32(
        "group.consumer.min.assignment.interval.ms",
        0,
        "The lower limit of the group key consumer.assignment.interval.ms.",
        at_least(0),
    ),
    int32(
        "group.consumer.max.assignment.interval.ms",
        15000,
        "The upper limit of the group key consumer.assignment.interval.ms.",
        at_least(0),
    ),
    int32(
        "group.consumer.regex.refresh.interval.ms",
        600000,
        "How often the coordinator matches regular expressions again.",
        at_least(10000),
    ),
    int32("offset.metadata.max.bytes", 4096, "The longest metadata of a committed offset."),
    int32(
        "offsets.commit.timeout.ms",
        5000,
        "How long a coordinator waits for its records to be replicated.",
        at_least(1),
    ),
    int32(
        "offsets.load.buffer.size",
        5242880,
        "The bytes that a coordinator reads at once while it loads.",
        at_least(1),
        support=reasons.LOADING,
    ),
    int64(
        "offsets.retention.check.interval.ms",
        600000,
        "How often expired offsets are removed.",
        at_least(1),
    ),
    int32(
        "offsets.retention.minutes",
        10080,
        "How long the offsets of a group without members are kept.",
        at_least(1),
    ),
    int32(
        "offsets.topic.num.partitions",
        50,
        "The number of partitions of __consumer_offsets.",
        at_least(1),
    ),
    int16(
        "offsets.topic.replication.factor",
        3,
        "The replication factor of __consumer_offsets.",
        at_least(1),
    ),
    int32(
        "offsets.topic.segment.bytes",
        104857600,
        "The segment.bytes of __consumer_offsets.",
        at_least(1),
    ),
    int32(
        "offsets.topic.compression.codec",
        0,
        "The compression codec of __consumer_offsets.",
        support=reasons.COMPRESSED_OFFSETS,
    ),
)

TRANSACTION_KEYS = (
    int32(
        "transactional.id.expiration.ms",
        604800000,
        "How long an idle transactional id is kept.",
        at_least(1),
    ),
    int32(
        "transaction.max.timeout.ms",
        900000,
        "The longest transaction timeout that a producer may ask for.",
        at_least(1),
    ),
    int32(
        "transaction.state.log.num.partitions",
        50,
        "The number of partitions of __transaction_state.",
        at_least(1),
    ),
    int16(
        "transaction.state.log.replication.factor",
        3,
        "The replication factor of __transaction_state.",
        at_least(1),
    ),
    int32(
        "transaction.state.log.min.isr",
        2,
        "The min.insync.replicas of __transaction_state.",
        at_least(1),
    ),
    int32(
        "transaction.state.log.segment.bytes",
        104857600,
        "The segment.bytes of __transaction_state.",
        at_least(1),
    ),
    int32(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10000,
        "How often transactions past their timeout are aborted.",
        at_least(1),
    ),
    int32(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3600000,
        "How often expired transactional ids are removed.",
        at_least(1),
    ),
    boolean(
        "transaction.partition.verification.enable",
        True,
        "Whether a leader asks the coordinator before a client of transaction version 1 writes.",
        scope=ConfigScope.CLUSTER_WIDE,
    ),
    int32(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        "How long a leader waits for the end of a producer's last transaction.",
        at_least(0),
    ),
    int32(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        "How often a leader asks again whether a producer's last transaction has ended.",
        at_least(1),
    ),
)
