"""Converts groups between the classic and the consumer protocol while members stay (KIP-848).

A classic group becomes a consumer group when the first member joins with the consumer protocol. Its
members keep their assignments, and their generation is the first group epoch. The group becomes
classic again when its last member with the consumer protocol leaves. Both are one batch of records,
so a new coordinator sees the group before or after the conversion.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from tidelog.config.group_settings import GroupSettings
from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic import rebalancing
from tidelog.coordination.groups.classic.draft import ClassicDraft
from tidelog.coordination.groups.classic.group import (
    CLASSIC,
    ClassicGroup,
    GroupState,
    group_record,
)
from tidelog.coordination.groups.classic.member import ClassicMember, Protocol
from tidelog.coordination.groups.consumer.assignors.subscriptions import Assignment
from tidelog.coordination.groups.consumer.embedded_protocol import (
    EmbeddedProtocolError,
    read_assignment,
    read_subscription,
    write_assignment,
)
from tidelog.coordination.groups.consumer.group import ConsumerGroup
from tidelog.coordination.groups.consumer.member import (
    ConsumerMember,
    target_record,
    with_epoch,
)
from tidelog.coordination.groups.consumer.outcome import (
    SESSION,
    GroupView,
    MemberTimer,
    Refused,
    StartTimer,
    drop_timers,
)
from tidelog.coordination.groups.consumer.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRecord,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from tidelog.coordination.groups.consumer.replaying import replay
from tidelog.coordination.groups.consumer.tombstones import group_tombstones
from tidelog.coordination.groups.consumer.topics import ClusterTopics
from tidelog.coordination.groups.kind import GroupDecision, GroupRecord, OfKind
from tidelog.coordination.records import GroupMetadataValue
from tidelog.coordination.runtime.decision import Instant, TicketAnswer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicId

PROTOCOL_TYPE = "consumer"


class Upgrade(NamedTuple):
    """A classic group as a consumer group, before anything of it is written."""

    group: ConsumerGroup
    records: tuple[GroupRecord, ...] = ()
    answers: tuple[TicketAnswer, ...] = ()
    """Members that wait in a rebalance must join again."""
    changes: tuple[StartTimer, ...] = ()


def upgrade(classic: ClassicGroup, view: GroupView) -> Upgrade:
    """Convert a classic group; raises Refused if it cannot be converted."""
    if classic.state is GroupState.EMPTY:
        return Upgrade(ConsumerGroup(classic.group_id), tuple(classic.tombstones()))
    problem = _problem_with_upgrade(classic, view)
    if problem is not None:
        raise _not_upgraded(classic, problem)
    try:
        members = [(_consumer_member(classic, m, view.topics)) for m in classic.members.values()]
    except EmbeddedProtocolError as error:
        raise _not_upgraded(classic, "the embedded consumer protocol is malformed") from error
    records = _conversion_records(classic, members, view)
    group: ConsumerGroup | None = None
    for key, value in records:
        group = replay(group, key, value)
    assert group is not None
    return Upgrade(
        group,
        (*classic.tombstones(), *records),
        _parked_answers(classic),
        tuple(_session(classic, member, view) for member in classic.members.values()),
    )


def _not_upgraded(classic: ClassicGroup, problem: str) -> Refused:
    text = f"Cannot upgrade classic group {classic.group_id} to consumer group because {problem}."
    return Refused(ErrorCode.group_id_not_found, text)


def _problem_with_upgrade(classic: ClassicGroup, view: GroupView) -> str | None:
    if not view.settings.migration.allows_upgrade:
        return "online upgrade is disabled"
    if not classic.uses_consumer_protocol or classic.protocol_name is None:
        return "the group does not use the consumer embedded protocol"
    if len(classic.members) > view.settings.max_size:
        return "the group size exceeds the consumer group maximum size"
    return None


def _consumer_member(
    classic: ClassicGroup, member: ClassicMember, topics: ClusterTopics
) -> tuple[ConsumerMember, Assignment]:
    subscription = read_subscription(member.metadata_for(classic.protocol_name))
    assigned: dict[TopicId, tuple[int, ...]] = {}
    if member.assignment:
        assignment = read_assignment(member.assignment)
        if assignment.user_data:
            raise _not_upgraded(
                classic,
                "an unsupported custom assignor is in use. Please refer to the documentation or "
                "switch to a default assignor before re-attempting the upgrade",
            )
        for name, partitions in assignment.partitions:
            facts = topics.named(name)
            if facts is not None:
                assigned[facts.topic_id] = tuple(sorted(partitions))
    protocols = tuple(ClassicProtocol(one.name, one.metadata) for one in member.protocols)
    converted = ConsumerMember(
        member_id=member.member_id,
        epoch=classic.generation,
        previous_epoch=classic.generation,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id or None,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=frozenset(subscription.topics),
        assigned=with_epoch(assigned, classic.generation),
        classic=ClassicMemberMetadata(member.session_timeout_ms, protocols),
    )
    return converted, assigned


def _conversion_records(
    classic: ClassicGroup, members: list[tuple[ConsumerMember, Assignment]], view: GroupView
) -> list[ConsumerGroupRecord]:
    group_id, epoch = classic.group_id, classic.generation
    names = frozenset(name for member, _ in members for name in member.topic_names)
    metadata_hash = view.hashes.of_group(names, view.topics)
    records: list[ConsumerGroupRecord] = [
        (ConsumerGroupMemberMetadataKey(group_id, m.member_id), m.subscription_record())
        for m, _ in members
    ]
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    records.append((ConsumerGroupMetadataKey(group_id), value))
    records += [
        (ConsumerGroupTargetAssignmentMemberKey(group_id, m.member_id), target_record(target))
        for m, target in members
    ]
    target_value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch)
    records.append((ConsumerGroupTargetAssignmentMetadataKey(group_id), target_value))
    records += [
        (ConsumerGroupCurrentMemberAssignmentKey(group_id, m.member_id), m.assignment_record())
        for m, _ in members
    ]
    return records


def _parked_answers(classic: ClassicGroup) -> tuple[TicketAnswer, ...]:
    again = ErrorCode.rebalance_in_progress
    answers = []
    for member in classic.members.values():
        if member.join is not None:
            answers.append(TicketAnswer(member.join, replies.not_joined(again, member.member_id)))
        if member.sync is not None:
            answers.append(TicketAnswer(member.sync, replies.not_synced(again)))
    return tuple(answers)


def _session(classic: ClassicGroup, member: ClassicMember, view: GroupView) -> StartTimer:
    timer = MemberTimer(SESSION, classic.group_id, member.member_id)
    return StartTimer(timer, view.now + member.session_timeout_ms)


# -- From the consumer to the classic protocol -----------------------------------------------------


def must_downgrade(
    group: ConsumerGroup,
    leaving: Collection[ConsumerMember],
    view: GroupView,
    joining: ConsumerMember | None = None,
) -> bool:
    """Whether only members with the classic protocol stay, and the group may become classic.

    `joining` replaces the static member that leaves.
    """
    classic = group.classic_members - sum(m.uses_classic_protocol for m in leaving)
    staying = len(group.members) - len(leaving)
    if classic != staying or (staying == 0 and joining is None):
        return False
    size = staying + (0 if joining is None else 1)
    return view.settings.migration.allows_downgrade and size <= view.settings.classic_max_size


def downgrade(
    group: ConsumerGroup,
    leaving: Collection[ConsumerMember],
    settings: GroupSettings,
    view: GroupView,
    at: Instant,
    joining: ConsumerMember | None = None,
    *,
    must_rebalance: bool = True,
) -> GroupDecision:
    """Convert a group whose remaining members all use the classic protocol."""
    gone = {member.member_id for member in leaving}
    staying = [member for member in group.members.values() if member.member_id not in gone]
    members = [(member, group.target(member.member_id)) for member in staying]
    if joining is not None:
        members.append((joining, group.target_of(joining)))
    classic = _classic_group(group, members, view.topics, at)
    # A member that replaces a static member has written its first records under its own id.
    written = [*group.members] if joining is None else [*(m.member_id for m, _ in members)]
    tombstones = group_tombstones(group.group_id, written, tuple(group.resolved))
    draft = ClassicDraft(classic, settings, at)
    for member in classic.members.values():
        rebalancing.renew_session(draft, member)
    key, value = group_record(classic)
    assert isinstance(value, GroupMetadataValue)
    if must_rebalance:
        # Without a leader in the record, a new coordinator begins the rebalance again (F69).
        value = replace(value, leader=None)
        rebalancing.prepare_rebalance(draft)
    decision = draft.decision()
    timers = tuple(stop for one in group.members for stop in drop_timers(group.group_id, one))
    return decision._replace(
        records=(*tombstones, (key, value), *decision.records),
        changes=(*timers, *(OfKind(CLASSIC, change) for change in decision.changes)),
        at_once=False,
    )


def _classic_group(
    group: ConsumerGroup,
    members: list[tuple[ConsumerMember, Assignment]],
    topics: ClusterTopics,
    at: Instant,
) -> ClassicGroup:
    classic = ClassicGroup(group.group_id, GroupState.STABLE, at.wall, generation=group.epoch)
    for member, _ in members:
        classic.add(_classic_member(member))
    classic.protocol_name = classic.select_protocol()
    classic.subscribed_topics = classic.find_subscribed_topics()
    for member, target in members:
        metadata = classic.members[member.member_id].metadata_for(classic.protocol_name)
        named = ((topics.name_of(topic_id), ids) for topic_id, ids in target.items())
        classic.change(
            member.member_id,
            assignment=write_assignment(
                ((name, ids) for name, ids in named if name is not None),
                read_subscription(metadata).version,
            ),
        )
    return classic


def _classic_member(member: ConsumerMember) -> ClassicMember:
    assert member.classic is not None
    return ClassicMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        session_timeout_ms=member.classic.session_timeout_ms,
        protocol_type=PROTOCOL_TYPE,
        protocols=tuple(
            Protocol(one.name, one.metadata) for one in member.classic.supported_protocols
        ),
    )
