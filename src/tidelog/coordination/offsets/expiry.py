"""Expiry of committed offsets, for groups without members and for deleted topics.

After the last member of a group has left, the group's offsets expire when
`offsets.retention.minutes` have passed. In a group with members or in a simple group, the retention
time of an offset starts at its commit. An offset stays while a member subscribes to its topic. A
group without offsets and members is removed.
"""

from collections.abc import Collection

from tidelog.coordination.core import Change, ShardCore
from tidelog.coordination.groups.administration import restore
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.records import GroupMetadataKey, OffsetCommitKey, OffsetCommitValue
from tidelog.coordination.timers import RetentionCheck
from tidelog.model.ids import NO_TIMESTAMP, Millis, TopicPartition


def schedule_check(core: ShardCore) -> None:
    core.schedule(RetentionCheck(), core.settings.offsets_retention_check_interval_ms)


def check(core: ShardCore) -> None:
    """Remove expired offsets and empty groups, and schedule the next check."""
    schedule_check(core)
    in_flight = core.offsets_in_flight()
    busy = {key.group for key in in_flight}
    tombstones: list[Change] = []
    removed: dict[str, ClassicGroup] = {}
    for group in list(core.groups.values()):
        kept, expired = _sort_out(core, group, in_flight)
        tombstones += [(key, None) for key in expired]
        if kept == 0 and group.state is GroupState.EMPTY and group.group_id not in busy:
            # The tombstone of a group always follows the tombstones of its offsets.
            tombstones.append((GroupMetadataKey(group.group_id), None))
            removed[group.group_id] = core.groups.pop(group.group_id)
    core.write_parts(tombstones, undo=lambda part: restore(core, removed, part))


def partitions_deleted(core: ShardCore, partitions: Collection[TopicPartition]) -> None:
    """Remove the offsets that any group has committed for deleted partitions."""
    gone = frozenset(partitions)
    keys = {
        key: None
        for group_id in core.offsets.group_ids()
        for key, _ in core.offsets.of_group(group_id)
    }
    keys.update(core.offsets_in_flight())
    core.write_parts([(key, None) for key in keys if (key.topic, key.partition) in gone])


def _sort_out(
    core: ShardCore, group: ClassicGroup, in_flight: Collection[OffsetCommitKey]
) -> tuple[int, list[OffsetCommitKey]]:
    """The number of offsets that the group keeps, and the keys of its expired offsets."""
    expired = []
    kept = 0
    for key, value in core.offsets.of_group(group.group_id):
        if key not in in_flight and _is_expired(core, group, key, value):
            expired.append(key)
        else:
            kept += 1
    return kept, expired


def _is_expired(
    core: ShardCore, group: ClassicGroup, key: OffsetCommitKey, value: OffsetCommitValue
) -> bool:
    since = _unused_since(group, value)
    if since is None or group.is_subscribed_to(key.topic):
        return False
    if value.expire_timestamp != NO_TIMESTAMP:
        return core.settled_wall >= value.expire_timestamp
    return core.settled_wall - since >= core.settings.offsets_retention_ms


def _unused_since(group: ClassicGroup, value: OffsetCommitValue) -> Millis | None:
    """The time at which an offset's retention starts; None while the offset must not expire."""
    if group.protocol_type is None:
        return value.commit_timestamp
    if group.state is GroupState.EMPTY:
        empty_since = group.state_timestamp
        return value.commit_timestamp if empty_since is None else empty_since
    if group.state is GroupState.STABLE and group.subscribed_topics is not None:
        return value.commit_timestamp
    return None
