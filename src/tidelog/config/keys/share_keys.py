"""The broker keys about share groups and the share coordinator (KIP-932)."""

from tidelog.config.checks import at_least, between
from tidelog.config.key import int16, int32

SHARE_KEYS = (
    int32(
        "group.share.session.timeout.ms",
        45000,
        "The session timeout of a member of a share group.",
        at_least(1),
    ),
    int32(
        "group.share.min.session.timeout.ms",
        45000,
        "The lower limit of the group key share.session.timeout.ms.",
        at_least(1),
    ),
    int32(
        "group.share.max.session.timeout.ms",
        60000,
        "The upper limit of the group key share.session.timeout.ms.",
        at_least(1),
    ),
    int32(
        "group.share.heartbeat.interval.ms",
        5000,
        "The heartbeat interval of a member of a share group.",
        at_least(1),
    ),
    int32(
        "group.share.min.heartbeat.interval.ms",
        5000,
        "The lower limit of the group key share.heartbeat.interval.ms.",
        at_least(1),
    ),
    int32(
        "group.share.max.heartbeat.interval.ms",
        15000,
        "The upper limit of the group key share.heartbeat.interval.ms.",
        at_least(1),
    ),
    int32(
        "group.share.assignment.interval.ms",
        1000,
        "The shortest time between two assignments of a share group.",
        at_least(0),
    ),
    int32(
        "group.share.min.assignment.interval.ms",
        0,
        "The lower limit of the group key share.assignment.interval.ms.",
        at_least(0),
    ),
    int32(
        "group.share.max.assignment.interval.ms",
        15000,
        "The upper limit of the group key share.assignment.interval.ms.",
        at_least(0),
    ),
    int32(
        "group.share.max.size",
        200,
        "The maximum number of members of a share group.",
        between(1, 1000),
    ),
    int32(
        "group.share.max.share.sessions",
        2000,
        "The maximum number of share sessions of a broker.",
        at_least(1),
    ),
    int32(
        "group.share.record.lock.duration.ms",
        30000,
        "How long a member of a share group holds a record.",
        between(1000, 3600000),
    ),
    int32(
        "group.share.min.record.lock.duration.ms",
        15000,
        "The lower limit of the group key share.record.lock.duration.ms.",
        between(1000, 30000),
    ),
    int32(
        "group.share.max.record.lock.duration.ms",
        60000,
        "The upper limit of the group key share.record.lock.duration.ms.",
        between(30000, 3600000),
    ),
    int32(
        "group.share.delivery.count.limit",
        5,
        "How often a record is delivered to a share group at most.",
        between(2, 10),
    ),
    int32(
        "group.share.min.delivery.count.limit",
        2,
        "The lower limit of the group key share.delivery.count.limit.",
        between(2, 5),
    ),
    int32(
        "group.share.max.delivery.count.limit",
        10,
        "The upper limit of the group key share.delivery.count.limit.",
        between(5, 25),
    ),
    int32(
        "group.share.partition.max.record.locks",
        2000,
        "How many records of a partition a share group holds at most.",
        between(100, 10000),
    ),
    int32(
        "group.share.min.partition.max.record.locks",
        100,
        "The lower limit of the group key share.partition.max.record.locks.",
        between(100, 2000),
    ),
    int32(
        "group.share.max.partition.max.record.locks",
        4000,
        "The upper limit of the group key share.partition.max.record.locks.",
        between(2000, 20000),
    ),
    int32(
        "share.coordinator.state.topic.num.partitions",
        50,
        "The number of partitions of __share_group_state.",
        at_least(1),
    ),
    int16(
        "share.coordinator.state.topic.replication.factor",
        3,
        "The replication factor of __share_group_state.",
        at_least(1),
    ),
    int16(
        "share.coordinator.state.topic.min.isr",
        2,
        "The min.insync.replicas of __share_group_state.",
        at_least(1),
    ),
    int32(
        "share.coordinator.state.topic.segment.bytes",
        104857600,
        "The segment.bytes of __share_group_state.",
        at_least(1),
    ),
    int32(
        "share.coordinator.state.topic.prune.interval.ms",
        300000,
        "How often records that are no longer needed are removed from __share_group_state.",
        at_least(1),
    ),
    int32(
        "share.coordinator.snapshot.update.records.per.snapshot",
        500,
        "The number of updates of a share partition between two snapshots of its state.",
        between(0, 500),
    ),
    int32(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        300000,
        "The age at which a share partition without writes gets a new snapshot of its state.",
        at_least(1),
    ),
    int32(
        "share.coordinator.write.timeout.ms",
        5000,
        "How long the share coordinator waits for its records to be replicated.",
        at_least(1),
    ),
)
