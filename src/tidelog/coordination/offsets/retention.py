"""Offsets do not stay for ever: not of groups that are gone, nor of topics that are.

A group's offsets expire `offsets.retention.minutes` after its last member left. While members are
there, or for a simple group, an offset expires that long after its commit, unless its topic is
subscribed to. A group without offsets and members is removed.
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
    """Remove what has expired, and look again later."""
    schedule_check(core)
    in_flight = core.offsets_in_flight()
    busy = {key.group for key in in_flight}
    tombstones: list[Change] = []
    removed: dict[str, ClassicGroup] = {}
    for group in list(core.groups.values()):
        kept, expired = _sort_out(core, group, in_flight)
        tombstones += [(key, None) for key in expired]
        if kept == 0 and group.state is GroupState.EMPTY and group.group_id not in busy:
            # A group goes after the last of its offsets, never before them.
            tombstones.append((GroupMetadataKey(group.group_id), None))
            removed[group.group_id] = core.groups.pop(group.group_id)
    core.write_parts(tombstones, undo=lambda part: restore(core, removed, part))


def partitions_deleted(core: ShardCore, partitions: Collection[TopicPartition]) -> None:
    """Partitions are gone, and with them what any group has committed for them."""
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
    """How many offsets of the group stay, and which do not."""
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
    """From when on the retention of an offset counts; None while it must not expire."""
    if group.protocol_type is None:
        return value.commit_timestamp
    if group.state is GroupState.EMPTY:
        empty_since = group.state_timestamp
        return value.commit_timestamp if empty_since is None else empty_since
    if group.state is GroupState.STABLE and group.subscribed_topics is not None:
        return value.commit_timestamp
    return None
