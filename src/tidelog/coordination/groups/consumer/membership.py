"""Finds the member that sends a request, and fences members with a wrong epoch or instance id.

A member with an old epoch has missed an assignment, and one with a newer epoch knows an assignment
that this coordinator does not. Both must abandon their partitions and join again. The exception is
a member whose last response was lost: it may repeat its previous epoch.
"""

from dataclasses import replace

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest

from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.consumer.member import (
    JOINING_EPOCH,
    LEAVING_STATIC_EPOCH,
    ConsumerMember,
    PartitionEpochs,
    target_record,
)
from tidelog.coordination.groups.consumer.outcome import GroupView, Refused
from tidelog.coordination.groups.consumer.reconciling import Owned
from tidelog.coordination.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupRecord,
    ConsumerGroupTargetAssignmentMemberKey,
)
from tidelog.coordination.groups.consumer.tombstones import member_tombstones
from tidelog.model.errors import ErrorCode


def find_member(
    group: ConsumerGroup,
    request: ConsumerGroupHeartbeatRequest,
    member_id: str,
    owned: Owned,
    view: GroupView,
) -> tuple[list[ConsumerGroupRecord], ConsumerMember]:
    """The member of a heartbeat, and the records that let it replace a former static member."""
    check_size(group, member_id, view.settings.max_size)
    joins = request.member_epoch == JOINING_EPOCH
    if request.instance_id is not None:
        if joins:
            return join_static(group, member_id, request.instance_id, classic=False)
        member = known_static_member(group, member_id, request.instance_id)
    elif joins:
        return [], group.members.get(member_id) or ConsumerMember(member_id=member_id)
    else:
        member = known_member(group, member_id)
    check_epoch(member, request.member_epoch, owned)
    return [], member


def check_size(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    if len(group.members) >= max_size and member_id not in group.members:
        raise Refused(
            ErrorCode.group_max_size_reached,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )


def known_member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    member = group.members.get(member_id)
    if member is None:
        raise Refused(
            ErrorCode.unknown_member_id,
            f"Member {member_id} is not a member of group {group.group_id}.",
        )
    return member


def known_static_member(group: ConsumerGroup, member_id: str, instance_id: str) -> ConsumerMember:
    """The static member with this instance id, which must be the member itself."""
    member = group.static_member(instance_id)
    if member is None:
        raise Refused(ErrorCode.unknown_member_id, f"Instance id {instance_id} is unknown.")
    check_instance(member, member_id, instance_id)
    return member


def check_instance(member: ConsumerMember, member_id: str, instance_id: str) -> None:
    if member.member_id != member_id:
        raise Refused(
            ErrorCode.fenced_instance_id,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )


def check_epoch(member: ConsumerMember, epoch: int, owned: Owned) -> None:
    """Fence a member whose epoch is neither the current nor a lost previous one."""
    if epoch == JOINING_EPOCH or epoch == member.epoch:
        return
    was_lost = epoch == member.previous_epoch and _contains(member.assigned, owned)
    if epoch < member.epoch and was_lost:
        return
    order = "greater" if epoch > member.epoch else "smaller"
    raise Refused(
        ErrorCode.fenced_member_epoch,
        f"The consumer group member has a {order} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )


def _contains(assigned: PartitionEpochs, owned: Owned) -> bool:
    return owned is not None and all(
        topic_id in assigned and partition in assigned[topic_id]
        for topic_id, partitions in owned.items()
        for partition in (*partitions,)
    )


def join_static(
    group: ConsumerGroup, member_id: str, instance_id: str, *, classic: bool
) -> tuple[list[ConsumerGroupRecord], ConsumerMember]:
    """Let a static member join; it takes over the partitions of the one that it replaces."""
    former = group.static_member(instance_id)
    if former is None:
        return [], group.members.get(member_id) or ConsumerMember(member_id=member_id)
    is_held = not classic and not former.uses_classic_protocol
    if is_held and former.epoch != LEAVING_STATIC_EPOCH:
        raise Refused(
            ErrorCode.unreleased_instance_id,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {former.member_id} member.",
        )
    member = replace(former, member_id=member_id, epoch=JOINING_EPOCH, previous_epoch=JOINING_EPOCH)
    return _replacement_records(group, former, member), member


def _replacement_records(
    group: ConsumerGroup, former: ConsumerMember, member: ConsumerMember
) -> list[ConsumerGroupRecord]:
    group_id, new_id = group.group_id, member.member_id
    return [
        *member_tombstones(group_id, former.member_id),
        (ConsumerGroupMemberMetadataKey(group_id, new_id), member.subscription_record()),
        (
            ConsumerGroupTargetAssignmentMemberKey(group_id, new_id),
            target_record(group.target(former.member_id)),
        ),
        (ConsumerGroupCurrentMemberAssignmentKey(group_id, new_id), member.assignment_record()),
    ]
