"""Members leave a consumer group: on request, by a timeout, or for a while as static members."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from kio.schema.consumer_group_heartbeat.v1.request import ConsumerGroupHeartbeatRequest

from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.consumer.heartbeats import heartbeat_response
from tidelog.coordination.groups.consumer.member import (
    LEAVING_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from tidelog.coordination.groups.consumer.membership import (
    known_member,
    known_static_member,
)
from tidelog.coordination.groups.consumer.outcome import (
    REBALANCE,
    GroupOutcome,
    GroupView,
    MemberTimer,
    drop_timers,
)
from tidelog.coordination.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRecord,
    ConsumerGroupRegularExpressionKey,
)
from tidelog.coordination.groups.consumer.subscribing import subscription_after
from tidelog.coordination.groups.consumer.tombstones import member_tombstones


def leaving_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """The member that asks to leave."""
    if request.instance_id is None:
        return known_member(group, request.member_id)
    return known_static_member(group, request.member_id, request.instance_id)


def leave_for_a_while(group: ConsumerGroup, member: ConsumerMember) -> GroupOutcome:
    """Keep a static member and its partitions until it comes back or its session ends."""
    away = replace(
        member,
        epoch=LEAVING_STATIC_EPOCH,
        revoking={},
        assigned={
            topic_id: dict.fromkeys(epochs, 0) for topic_id, epochs in member.assigned.items()
        },
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group.group_id, member.member_id)
    response = heartbeat_response(member_id=member.member_id, epoch=LEAVING_STATIC_EPOCH)
    return GroupOutcome(((key, away.assignment_record()),), response)


def remove_members(
    group: ConsumerGroup, members: Sequence[ConsumerMember], view: GroupView
) -> GroupOutcome:
    """Remove members and bump the group epoch, so that others get their partitions."""
    if not members:
        return GroupOutcome()
    group_id = group.group_id
    records: list[ConsumerGroupRecord] = []
    for member in members:
        records += member_tombstones(group_id, member.member_id)
    leaving = Counter(member.regex for member in members if member.regex is not None)
    for regex, count in leaving.items():
        if group.regexes[regex] == count:
            records.append((ConsumerGroupRegularExpressionKey(group_id, regex), None))
    after = subscription_after(group, members)
    value = ConsumerGroupMetadataValue(
        epoch=group.epoch + 1, metadata_hash=view.hashes.of_group(after.topics(), view.topics)
    )
    records.append((ConsumerGroupMetadataKey(group_id), value))
    timers = [timer for member in members for timer in drop_timers(group_id, member.member_id)]
    return GroupOutcome(tuple(records), None, tuple(timers))


def timed_out_member(group: ConsumerGroup, timer: MemberTimer) -> ConsumerMember | None:
    """The member whose deadline has passed; None if the deadline no longer matters."""
    member = group.members.get(timer.member_id)
    if member is None:
        return None
    is_done = timer.kind == REBALANCE and member.state is not MemberState.UNREVOKED_PARTITIONS
    return None if is_done else member
