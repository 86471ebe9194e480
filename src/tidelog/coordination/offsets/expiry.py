"""Expiry of committed offsets, for groups without members and for deleted topics.

After the last member of a group has left, the group's offsets expire when
`offsets.retention.minutes` have passed. In a group with members or in a simple group, the retention
time of an offset starts at its commit. An offset stays while a member subscribes to its topic. A
group without offsets and members is removed.
"""

from collections.abc import Iterator

from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.groups.kind import CoordinatedGroup, GroupRecord
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.records import OffsetCommitKey, OffsetCommitValue
from tidelog.coordination.runtime.decision import Instant
from tidelog.model.ids import NO_TIMESTAMP


def expired_records(shard: GroupShardState, at: Instant) -> Iterator[GroupRecord]:
    """Tombstones for expired offsets and for groups that are no longer used."""
    for group in list(shard.groups.values()):
        kept, expired = _sort_out(shard, group, at)
        yield from ((key, None) for key in expired)
        if not kept and group.is_removable:
            # The tombstone of a group always follows the tombstones of its offsets.
            yield from group.tombstones()


def records_of_deleted_topics(
    shard: GroupShardState, old: ClusterImage, new: ClusterImage
) -> Iterator[GroupRecord]:
    """Tombstones for the offsets that any group has committed for deleted topics."""
    if old.topic_names is new.topic_names:
        return
    deleted = sorted({name for id_, name in old.topic_names.items() if id_ not in new.topic_names})
    if not deleted:
        return
    for group_id in shard.groups:
        keys = dict.fromkeys(shard.offsets.of_topics(group_id, deleted))
        keys.update(
            (key, None) for key in shard.offsets.pending.of_group(group_id) if key.topic in deleted
        )
        yield from ((key, None) for key in keys)


def _sort_out(
    shard: GroupShardState, group: CoordinatedGroup, at: Instant
) -> tuple[bool, list[OffsetCommitKey]]:
    """Whether the group keeps an offset, and the keys of its expired offsets."""
    pending = shard.offsets.pending.of_group(group.group_id)
    expired = []
    kept = bool(pending)
    for key, value in shard.offsets.of_group(group.group_id):
        if key not in pending and _is_expired(shard, group, key, value, at):
            expired.append(key)
        else:
            kept = True
    return kept, expired


def _is_expired(
    shard: GroupShardState,
    group: CoordinatedGroup,
    key: OffsetCommitKey,
    value: OffsetCommitValue,
    at: Instant,
) -> bool:
    since = group.unused_since(value.commit_timestamp)
    if since is None or group.is_subscribed_to(key.topic):
        return False
    if value.expire_timestamp != NO_TIMESTAMP:
        return at.settled_wall >= value.expire_timestamp
    return at.settled_wall - since >= shard.settings.offsets_retention_ms
