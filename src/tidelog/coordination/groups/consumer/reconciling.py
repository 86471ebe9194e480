"""Moves one member towards the target assignment, one safe step per heartbeat (KIP-848).

A member first gives up what the target does not contain, and keeps its epoch until it reports that
it has. Only then it gets the epoch of the target, and those new partitions that no other member
owns. It gets the others when their owners have given them up. So no partition has two owners.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from tidelog.coordination.groups.consumer.assignors.subscriptions import Assignment
from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.consumer.member import (
    ConsumerMember,
    MemberState,
    PartitionEpochs,
)
from tidelog.coordination.groups.consumer.outcome import Refused
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicId

Owned: TypeAlias = Mapping[TopicId, Collection[int]] | None
"""The partitions that a member reports to own; None if it does not report them."""

_UNKNOWN_STATE = (
    "The consumer group member is in a unknown state. "
    "The member must abandon all its partitions and rejoin."
)


class TargetState(NamedTuple):
    epoch: int
    assignment: Assignment
    """The target of the member that is reconciled."""


def reconcile(
    group: ConsumerGroup,
    member: ConsumerMember,
    target: TargetState,
    subscribed: Collection[TopicId],
    *,
    owned: Owned,
    subscription_changed: bool,
) -> ConsumerMember:
    """The member after the next step; the same value if there is nothing to do."""
    match member.state:
        case MemberState.STABLE:
            if member.epoch != target.epoch:
                return _next_step(group, member, target, subscribed, owned)
            if subscription_changed:
                return _drop_unsubscribed(member, subscribed, owned)
            return member
        case MemberState.UNREVOKED_PARTITIONS:
            if not _still_owns(owned, member.revoking):
                return _next_step(group, member, target, subscribed, owned)
            if subscription_changed:
                return _drop_unsubscribed(member, subscribed, owned)
            return member
        case MemberState.UNRELEASED_PARTITIONS:
            return _next_step(group, member, target, subscribed, owned)
        case MemberState.UNKNOWN:
            if owned is None or owned:
                raise Refused(ErrorCode.fenced_member_epoch, _UNKNOWN_STATE)
            return _next_step(group, member, target, subscribed, owned)


def _still_owns(owned: Owned, revoking: PartitionEpochs) -> bool:
    """Whether the member may still own one of these partitions; true if it does not report."""
    return owned is None or any(
        partition in revoking.get(topic_id, {})
        for topic_id, partitions in owned.items()
        for partition in partitions
    )


def _next_step(
    group: ConsumerGroup,
    member: ConsumerMember,
    target: TargetState,
    subscribed: Collection[TopicId],
    owned: Owned,
) -> ConsumerMember:
    plan = _plan(group, member, target, subscribed)
    if plan.revoked and _still_owns(owned, plan.revoked):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=plan.kept,
            revoking=plan.revoked,
        )
    assigned = {topic_id: dict(epochs) for topic_id, epochs in plan.kept.items()}
    for topic_id, partition in plan.free:
        assigned.setdefault(topic_id, {})[partition] = target.epoch
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if plan.must_wait else MemberState.STABLE,
        epoch=target.epoch,
        previous_epoch=member.epoch,
        assigned=assigned,
        revoking={},
    )


class _Plan(NamedTuple):
    kept: PartitionEpochs
    revoked: PartitionEpochs
    free: list[tuple[TopicId, int]]
    """New partitions that have no owner."""
    must_wait: bool
    """Whether other members own some of the new partitions."""


def _plan(
    group: ConsumerGroup,
    member: ConsumerMember,
    target: TargetState,
    subscribed: Collection[TopicId],
) -> _Plan:
    kept: dict[TopicId, dict[int, int]] = {}
    revoked: dict[TopicId, dict[int, int]] = {}
    free: list[tuple[TopicId, int]] = []
    must_wait = False
    for topic_id in dict.fromkeys((*target.assignment, *member.assigned)):
        wanted = frozenset(target.assignment.get(topic_id, ()) if topic_id in subscribed else ())
        current = member.assigned.get(topic_id, {})
        for partition, epoch in current.items():
            side = kept if partition in wanted else revoked
            side.setdefault(topic_id, {})[partition] = epoch
        for partition in sorted(wanted.difference(current)):
            if is_released(group, member, topic_id, partition):
                free.append((topic_id, partition))
            else:
                must_wait = True
    return _Plan(kept, revoked, free, must_wait)


def is_released(
    group: ConsumerGroup, member: ConsumerMember, topic_id: TopicId, partition: int
) -> bool:
    """Whether the partition may be given to the member: no other member owns it."""
    own = partition in member.revoking.get(topic_id, {})
    return own or group.owner(topic_id, partition) is None


def _drop_unsubscribed(
    member: ConsumerMember, subscribed: Collection[TopicId], owned: Owned
) -> ConsumerMember:
    """Revoke the partitions of topics that the member no longer subscribes to."""
    dropped = {
        topic_id: epochs
        for topic_id, epochs in member.assigned.items()
        if topic_id not in subscribed
    }
    if not dropped:
        return member
    kept = {
        topic_id: epochs for topic_id, epochs in member.assigned.items() if topic_id in subscribed
    }
    revoking = {topic_id: dict(epochs) for topic_id, epochs in member.revoking.items()}
    for topic_id, epochs in dropped.items():
        revoking.setdefault(topic_id, {}).update(epochs)
    if _still_owns(owned, revoking):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking=revoking,
        )
    return replace(member, previous_epoch=member.epoch, assigned=kept)
