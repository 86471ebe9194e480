"""Applies records to consumer groups; the only way in which a group changes, also while loading.

Compaction may remove a record and keep its tombstone, so a tombstone of something unknown has no
effect.
"""

from tidelog.coordination.groups.consumer.group import (
    NO_TARGET_EPOCH,
    ConsumerGroup,
    ResolvedRegex,
)
from tidelog.coordination.groups.consumer.member import ConsumerMember, target_of
from tidelog.coordination.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerGroupValue,
)


def replay(
    group: ConsumerGroup | None, key: ConsumerGroupKey, value: ConsumerGroupValue | None
) -> ConsumerGroup | None:
    """Apply a record to the group of its key; returns the group, or None if it is gone."""
    if value is None:
        return None if group is None else _erase(group, key)
    if group is None:
        group = ConsumerGroup(key.group)
    _write(group, key, value)
    return group


def _write(group: ConsumerGroup, key: ConsumerGroupKey, value: ConsumerGroupValue) -> None:
    match key, value:
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        case ConsumerGroupPartitionMetadataKey(), ConsumerGroupPartitionMetadataValue():
            group.has_partition_metadata = True
        case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
            group.put_member(_member(group, key.member_id).with_subscription(value))
        case (
            ConsumerGroupTargetAssignmentMetadataKey(),
            ConsumerGroupTargetAssignmentMetadataValue(),
        ):
            group.target_epoch = value.assignment_epoch
            group.target_timestamp = value.assignment_timestamp
        case (
            ConsumerGroupTargetAssignmentMemberKey(),
            ConsumerGroupTargetAssignmentMemberValue(),
        ):
            group.targets[key.member_id] = target_of(value)
        case (
            ConsumerGroupCurrentMemberAssignmentKey(),
            ConsumerGroupCurrentMemberAssignmentValue(),
        ):
            group.put_member(_member(group, key.member_id).with_assignment(value))
        case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue():
            group.resolved[key.regular_expression] = ResolvedRegex(
                frozenset(value.topics), value.version, value.timestamp
            )
        case _:
            raise AssertionError(f"{type(value).__name__} under {type(key).__name__}")


def _erase(group: ConsumerGroup, key: ConsumerGroupKey) -> ConsumerGroup | None:
    match key:
        case ConsumerGroupMetadataKey():
            return None
        case ConsumerGroupPartitionMetadataKey():
            group.has_partition_metadata = False
        case ConsumerGroupMemberMetadataKey():
            group.remove_member(key.member_id)
        case ConsumerGroupTargetAssignmentMetadataKey():
            group.target_epoch, group.target_timestamp = NO_TARGET_EPOCH, 0
        case ConsumerGroupTargetAssignmentMemberKey():
            group.targets.pop(key.member_id, None)
        case ConsumerGroupCurrentMemberAssignmentKey():
            if key.member_id in group.members:
                group.put_member(group.members[key.member_id].without_assignment())
        case ConsumerGroupRegularExpressionKey():
            group.resolved.pop(key.regular_expression, None)
    return group


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or ConsumerMember(member_id=member_id)
