"""Computes the target assignment of a group for its newest epoch.

Kafka limits how often this happens (`group.consumer.assignment.interval.ms`), so that many members
that join together cause one assignment and not one each.
"""

from collections.abc import Iterator

from tidelog.coordination.groups.consumer.assignors import range as range_assignor
from tidelog.coordination.groups.consumer.assignors import uniform
from tidelog.coordination.groups.consumer.assignors.subscriptions import (
    Assignment,
    AssignorError,
    GroupSubscription,
    MemberSubscription,
)
from tidelog.coordination.groups.consumer.group import (
    EMPTY_ASSIGNMENT,
    ConsumerGroup,
    add,
    most_common,
)
from tidelog.coordination.groups.consumer.member import ConsumerMember, target_record
from tidelog.coordination.groups.consumer.outcome import GroupView, Refused
from tidelog.coordination.groups.consumer.reconciling import TargetState
from tidelog.coordination.groups.consumer.records import (
    ConsumerGroupRecord,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from tidelog.coordination.groups.consumer.subscribing import topic_ids
from tidelog.coordination.groups.consumer.topics import ClusterTopics
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis, TopicId

ASSIGNORS = {uniform.NAME: uniform.assign, range_assignor.NAME: range_assignor.assign}


def update_target(
    group: ConsumerGroup,
    epoch: int,
    old: ConsumerMember,
    new: ConsumerMember,
    view: GroupView,
    *,
    is_homogeneous: bool,
) -> tuple[list[ConsumerGroupRecord], TargetState]:
    """The records of a new target assignment, if one is due, and the target of the new member."""
    if group.target_epoch >= epoch or not _is_due(group, view):
        return [], TargetState(group.target_epoch, group.target_of(new))
    assignor = _preferred_assignor(group, old, new, view)
    members = list(_members(group, new, view.topics))
    counts = _partition_counts(members, view.topics)
    try:
        assigned = ASSIGNORS[assignor](GroupSubscription(members, is_homogeneous, counts))
    except AssignorError as error:
        text = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise Refused(ErrorCode.unknown_server_error, text) from error
    records = _records(group, epoch, [member.member_id for member in members], assigned, view.wall)
    return records, TargetState(epoch, assigned.get(new.member_id, EMPTY_ASSIGNMENT))


def _is_due(group: ConsumerGroup, view: GroupView) -> bool:
    """Whether the interval since the last assignment is over, or the clock has stepped back."""
    elapsed = view.wall - group.target_timestamp
    return not 0 <= elapsed < view.settings.assignment_interval_ms


def _preferred_assignor(
    group: ConsumerGroup, old: ConsumerMember, new: ConsumerMember, view: GroupView
) -> str:
    counts = group.server_assignors.copy()
    for member, by in ((old, -1), (new, 1)):
        if member.server_assignor is not None:
            add(counts, (member.server_assignor,), by)
    return most_common(counts) or view.settings.assignors[0]


def _members(
    group: ConsumerGroup, new: ConsumerMember, topics: ClusterTopics
) -> Iterator[MemberSubscription]:
    """The members of the group; the new one takes the place of its former self."""
    replaced = {new.member_id}
    if new.instance_id is not None and new.instance_id in group.static_members:
        replaced.add(group.static_members[new.instance_id])
    kept = (member for member in group.members.values() if member.member_id not in replaced)
    ids: dict[frozenset[str], tuple[TopicId, ...]] = {}
    for member in (*kept, new):
        names = group.topics_of(member)
        if names not in ids:
            ids[names] = topic_ids(names, topics)
        target = group.target(member.member_id)
        if member is new and len(replaced) > 1:
            target = group.target_of(new)
        yield MemberSubscription(member.member_id, member.instance_id, ids[names], target)


def _partition_counts(
    members: list[MemberSubscription], topics: ClusterTopics
) -> dict[TopicId, int]:
    counts: dict[TopicId, int] = {}
    for topic_id in dict.fromkeys(topic for member in members for topic in member.topics):
        name = topics.name_of(topic_id)
        facts = None if name is None else topics.named(name)
        assert facts is not None
        counts[topic_id] = facts.partition_count
    return counts


def _records(
    group: ConsumerGroup,
    epoch: int,
    member_ids: list[str],
    assigned: dict[str, Assignment],
    wall: Millis,
) -> list[ConsumerGroupRecord]:
    records: list[ConsumerGroupRecord] = []
    for member_id in member_ids:
        target = assigned.get(member_id, EMPTY_ASSIGNMENT)
        if group.targets.get(member_id) != target:
            key = ConsumerGroupTargetAssignmentMemberKey(group.group_id, member_id)
            records.append((key, target_record(target)))
    records.append(
        (
            ConsumerGroupTargetAssignmentMetadataKey(group.group_id),
            ConsumerGroupTargetAssignmentMetadataValue(
                assignment_epoch=epoch, assignment_timestamp=wall
            ),
        )
    )
    return records
