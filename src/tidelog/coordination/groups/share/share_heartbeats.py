"""The heartbeat of a member of a share group: join, stay, leave.

A member gets its whole target assignment at once, because several members may have one partition.
Only partitions whose state the share coordinator has initialised are assigned.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from kio.schema.share_group_heartbeat.v1.request import ShareGroupHeartbeatRequest

from tidelog.config.group_settings import ShareGroupSettings
from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.groups.share import share_group_records as records
from tidelog.coordination.groups.share.share_group import (
    NOTHING,
    ShareAssignment,
    ShareGroup,
    ShareMember,
    by_topic,
    member_tombstones,
)
from tidelog.coordination.groups.share.share_group_records import ShareGroupRecord
from tidelog.coordination.groups.share.simple_assignor import assign
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis

JOINING_EPOCH = 0
LEAVING_EPOCH = -1


class ShareGroupRefused(Exception):
    """The request is refused with this error; nothing is written."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


@dataclass(frozen=True, slots=True)
class ShareGroupView:
    """What a decision reads besides the group."""

    wall: Millis
    image: ClusterImage
    settings: ShareGroupSettings
    hash_of: Callable[[Iterable[str], ClusterImage], int]
    """Kafka's hash of the topics with these names."""


class HeartbeatOutcome(NamedTuple):
    records: tuple[ShareGroupRecord, ...]
    group_epoch: int
    member: ShareMember
    assignment: ShareAssignment | None
    """The assignment for the response; None if it has not changed."""


def check_form(message: ShareGroupHeartbeatRequest) -> None:
    """Raise ShareGroupRefused if the request is invalid whatever the group is."""
    _require(bool(message.member_id.strip()), "MemberId can't be empty.")
    _require(bool(message.group_id.strip()), "GroupId can't be empty.")
    _require(message.rack_id is None or bool(message.rack_id.strip()), "RackId can't be empty.")
    _require(message.member_epoch >= LEAVING_EPOCH, "MemberEpoch is invalid.")
    if message.member_epoch == JOINING_EPOCH:
        _require(
            bool(message.subscribed_topic_names),
            "SubscribedTopicNames must be set in first request.",
        )


def _require(is_met: bool, message: str) -> None:
    if not is_met:
        raise ShareGroupRefused(ErrorCode.invalid_request, message)


def heartbeat(
    group: ShareGroup,
    message: ShareGroupHeartbeatRequest,
    client_id: str,
    client_host: str,
    view: ShareGroupView,
) -> HeartbeatOutcome:
    known = _known_member(group, message, view.settings)
    member = replace(
        known or ShareMember(member_id=message.member_id),
        client_id=client_id,
        client_host=client_host,
    )
    if message.rack_id is not None:
        member = replace(member, rack_id=message.rack_id)
    if message.subscribed_topic_names is not None:
        member = replace(member, topics=tuple(sorted(set(message.subscribed_topic_names))))
    written: list[ShareGroupRecord] = []
    if member != known:
        written.append(member.metadata_record(group.group_id))
    members = {**group.members, member.member_id: member}
    epoch = _group_epoch(group, members, known, member, view, written)
    target_epoch, target = group.target_epoch, group.targets.get(member.member_id, NOTHING)
    if epoch > group.target_epoch and _may_assign(group, view):
        target = _assign(group, members, epoch, view, written)[member.member_id]
        target_epoch = epoch
    if (member.epoch, member.assigned) != (target_epoch, target):
        member = replace(member, epoch=target_epoch, previous_epoch=member.epoch, assigned=target)
        written.append(member.assignment_record(group.group_id))
    is_full = message.subscribed_topic_names is not None
    is_changed = known is None or known.assigned != member.assigned
    shown = member.assigned if is_full or is_changed else None
    return HeartbeatOutcome(tuple(written), epoch, member, shown)


def leave(group: ShareGroup, member_ids: Iterable[str]) -> tuple[ShareGroupRecord, ...]:
    """Remove members, which raises the epoch of the group."""
    removed = [one for member in member_ids for one in member_tombstones(group.group_id, member)]
    return (*removed, _group_record(group.group_id, group.epoch + 1, group.metadata_hash))


def leaving_member(group: ShareGroup, member_id: str) -> ShareMember:
    member = group.members.get(member_id)
    if member is None:
        raise ShareGroupRefused(ErrorCode.unknown_member_id, _not_a_member(group, member_id))
    return member


def share_partitions(names: Iterable[str], image: ClusterImage) -> ShareAssignment:
    """All partitions of the topics with these names."""
    found = (image.topics.get(name) for name in names)
    return frozenset(
        (topic.topic_id, index)
        for topic in found
        if topic is not None
        for index in topic.partitions
    )


def _known_member(
    group: ShareGroup, message: ShareGroupHeartbeatRequest, settings: ShareGroupSettings
) -> ShareMember | None:
    known = group.members.get(message.member_id)
    if message.member_epoch == JOINING_EPOCH:
        if known is None and len(group.members) >= settings.max_size:
            reason = (
                f"The share group has reached its maximum capacity of {settings.max_size} members."
            )
            raise ShareGroupRefused(ErrorCode.group_max_size_reached, reason)
        return known
    if known is None:
        raise ShareGroupRefused(
            ErrorCode.unknown_member_id, _not_a_member(group, message.member_id)
        )
    if message.member_epoch > known.epoch:
        raise ShareGroupRefused(
            ErrorCode.fenced_member_epoch,
            f"The share group member has a greater member epoch ({message.member_epoch}) than the "
            f"one known by the group coordinator ({known.epoch}). "
            "The member must abandon all its partitions and rejoin.",
        )
    # A member whose last response was lost comes with its previous epoch.
    if message.member_epoch < known.epoch and message.member_epoch != known.previous_epoch:
        raise ShareGroupRefused(
            ErrorCode.fenced_member_epoch,
            f"The share group member has a smaller member epoch ({message.member_epoch}) than the "
            f"one known by the group coordinator ({known.epoch}). "
            "The member must abandon all its partitions and rejoin.",
        )
    return known


def _not_a_member(group: ShareGroup, member_id: str) -> str:
    return f"Member {member_id} is not a member of group {group.group_id}."


def _group_epoch(
    group: ShareGroup,
    members: Mapping[str, ShareMember],
    known: ShareMember | None,
    member: ShareMember,
    view: ShareGroupView,
    written: list[ShareGroupRecord],
) -> int:
    """The epoch of the group; it rises if the assignment must be computed again."""
    names = _names(members)
    metadata_hash = view.hash_of(names, view.image)
    is_new = known is None or known.topics != member.topics
    assignable = share_partitions(names, view.image) & group.shares.initialized
    assigned = frozenset().union(*group.targets.values())
    if not is_new and metadata_hash == group.metadata_hash and assignable <= assigned:
        return group.epoch
    written.append(_group_record(group.group_id, group.epoch + 1, metadata_hash))
    return group.epoch + 1


def _may_assign(group: ShareGroup, view: ShareGroupView) -> bool:
    """Whether enough time has passed since the last assignment of a group in motion."""
    due = group.target_timestamp + view.settings.assignment_interval_ms
    return not group.targets or view.wall >= due or view.wall < group.target_timestamp


def _assign(
    group: ShareGroup,
    members: Mapping[str, ShareMember],
    epoch: int,
    view: ShareGroupView,
    written: list[ShareGroupRecord],
) -> dict[str, ShareAssignment]:
    initialized = group.shares.initialized
    targets = assign(
        {
            name: share_partitions(member.topics, view.image) & initialized
            for name, member in members.items()
        },
        group.targets,
    )
    for name, target in targets.items():
        if group.targets.get(name) != target:
            key = records.ShareGroupTargetAssignmentMemberKey(group.group_id, name)
            value = records.ShareGroupTargetAssignmentMemberValue(by_topic(target))
            written.append((key, value))
    metadata = records.ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=view.wall
    )
    written.append((records.ShareGroupTargetAssignmentMetadataKey(group.group_id), metadata))
    return targets


def _names(members: Mapping[str, ShareMember]) -> list[str]:
    return sorted({topic for member in members.values() for topic in member.topics})


def _group_record(group_id: str, epoch: int, metadata_hash: int) -> ShareGroupRecord:
    value = records.ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return records.ShareGroupMetadataKey(group_id), value
