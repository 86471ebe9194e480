"""The tombstones that remove members and whole consumer groups."""

from collections.abc import Iterable, Sequence

from tidelog.coordination.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
)


def member_tombstones(group_id: str, member_id: str) -> list[ConsumerGroupRecord]:
    return [
        (ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None),
        (ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None),
        (ConsumerGroupMemberMetadataKey(group_id, member_id), None),
    ]


def group_tombstones(
    group_id: str, member_ids: Sequence[str], regexes: Iterable[str]
) -> list[ConsumerGroupRecord]:
    """Tombstones of all records of a group, members first, as Kafka's `replay` requires."""
    return [
        *((ConsumerGroupCurrentMemberAssignmentKey(group_id, one), None) for one in member_ids),
        *((ConsumerGroupTargetAssignmentMemberKey(group_id, one), None) for one in member_ids),
        (ConsumerGroupTargetAssignmentMetadataKey(group_id), None),
        *((ConsumerGroupMemberMetadataKey(group_id, one), None) for one in member_ids),
        *((ConsumerGroupRegularExpressionKey(group_id, regex), None) for regex in regexes),
        (ConsumerGroupPartitionMetadataKey(group_id), None),
        (ConsumerGroupMetadataKey(group_id), None),
    ]
