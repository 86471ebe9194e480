"""The keys of a group, set dynamically on the group itself."""

from collections.abc import Mapping
from dataclasses import replace

from tidelog.config import reasons
from tidelog.config.checks import at_least, one_of
from tidelog.config.key import ENFORCED, ConfigKey, ConfigScope, Support, boolean, int32, string

_KEYS: Mapping[Support, tuple[ConfigKey, ...]] = {
    ENFORCED: (
        int32(
            "consumer.assignment.interval.ms",
            1000,
            "The shortest time between two assignments of a consumer group.",
            at_least(0),
        ),
        int32(
            "consumer.heartbeat.interval.ms",
            5000,
            "The heartbeat interval of a member of a consumer group.",
            at_least(1),
        ),
        int32(
            "consumer.session.timeout.ms",
            45000,
            "The session timeout of a member of a consumer group.",
            at_least(1),
        ),
        int32(
            "share.assignment.interval.ms",
            1000,
            "The shortest time between two assignments of a share group.",
            at_least(0),
        ),
        string("share.auto.offset.reset", "latest", "The offset at which a share group starts."),
        int32(
            "share.delivery.count.limit",
            5,
            "How often a record is delivered to a share group at most.",
            at_least(2),
        ),
        int32(
            "share.heartbeat.interval.ms",
            5000,
            "The heartbeat interval of a member of a share group.",
            at_least(1),
        ),
        string(
            "share.isolation.level",
            "read_uncommitted",
            "Whether a share group reads records of open transactions.",
            one_of("read_committed", "read_uncommitted"),
        ),
        int32(
            "share.partition.max.record.locks",
            2000,
            "How many records of a partition a share group holds at most.",
            at_least(100),
        ),
        int32(
            "share.record.lock.duration.ms",
            30000,
            "How long a member of a share group holds a record.",
            at_least(1000),
        ),
        boolean(
            "share.renew.acknowledge.enable",
            True,
            "Whether members of a share group may renew their locks on records.",
        ),
        int32(
            "share.session.timeout.ms",
            45000,
            "The session timeout of a member of a share group.",
            at_least(1),
        ),
    ),
    reasons.ASSIGNORS_AT_ONCE: (
        boolean(
            "share.assignor.offload.enable",
            True,
            "Whether the assignment of a share group is computed by another thread.",
        ),
    ),
    reasons.STREAMS_GROUPS: (
        int32(
            "streams.heartbeat.interval.ms",
            5000,
            "The heartbeat interval of a member of a streams group.",
            at_least(1),
        ),
        int32(
            "streams.num.standby.replicas",
            0,
            "The number of standby replicas of each task.",
            at_least(0),
        ),
        int32(
            "streams.session.timeout.ms",
            45000,
            "The session timeout of a member of a streams group.",
            at_least(1),
        ),
    ),
}

GROUP_KEYS: Mapping[str, ConfigKey] = {
    key.name: replace(key, scope=ConfigScope.PER_GROUP, support=support)
    for support, keys in _KEYS.items()
    for key in keys
}
