"""Loads a coordinator shard from the records of its log."""

from tidelog.coordination.core import ShardCore
from tidelog.coordination.groups.classic import rebalancing
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.groups.classic.member import ClassicMember
from tidelog.coordination.offsets import expiry
from tidelog.coordination.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from tidelog.model.ids import NO_TIMESTAMP


class Loader:
    """Applies the records of the log in order.

    A key occurs many times in a log that is not compacted, so the loader decodes each key only
    once.
    """

    def __init__(self, core: ShardCore) -> None:
        self._core = core
        self._keys: dict[bytes, Key | None] = {}

    def replay(self, key_bytes: bytes, value_bytes: bytes | None) -> None:
        """Apply one record; records of other group types are skipped, as in Kafka."""
        try:
            key = self._keys[key_bytes]
        except KeyError:
            key = self._keys[key_bytes] = decode_key(key_bytes)
        if key is None:
            return
        core = self._core
        match key, None if value_bytes is None else decode_value(key, value_bytes):
            case OffsetCommitKey(), OffsetCommitValue() | None as offset:
                core.apply_offset(key, offset)
            case GroupMetadataKey(), GroupMetadataValue() as value:
                core.groups[key.group] = _group(key.group, value)
            case GroupMetadataKey(), None:
                core.groups.pop(key.group, None)


def start(core: ShardCore) -> None:
    """Start a full session for each member, because no heartbeats arrived during loading."""
    expiry.schedule_check(core)
    for group in list(core.groups.values()):
        for member in group.members.values():
            rebalancing.renew_session(core, group, member)
        if len(group.members) > core.settings.max_size:
            # `group.max.size` was lowered. Members commit and rejoin, and the last members to
            # rejoin are refused.
            rebalancing.prepare_rebalance(core, group)


def _group(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    timestamp = value.current_state_timestamp
    members = {member.member_id for member in value.members}
    group = ClassicGroup(
        group_id=group_id,
        state=GroupState.STABLE if value.members else GroupState.EMPTY,
        state_timestamp=None if timestamp == NO_TIMESTAMP else timestamp,
        generation=value.generation,
        protocol_type=value.protocol_type or None,
        protocol_name=value.protocol,
        leader_id=value.leader if value.leader in members else None,
    )
    for record in value.members:
        group.add(ClassicMember.from_record(record, value.protocol_type, value.protocol or ""))
    group.subscribed_topics = group.find_subscribed_topics()
    return group
