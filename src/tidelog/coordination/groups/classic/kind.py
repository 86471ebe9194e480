"""The classic groups of a shard: passes requests, timers and outcomes to the rules.

A group that was loaded is Stable if it has members, and Empty otherwise. A rebalance that was under
way is not stored, so its members get an error and rejoin.
"""

from collections.abc import Hashable, Iterator
from typing import Any

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.leave_group.v5.request import LeaveGroupRequest
from kio.schema.sync_group.v5.request import SyncGroupRequest

from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic import joining, leaving, rebalancing, syncing
from tidelog.coordination.groups.classic.draft import ClassicDraft, GroupChanged
from tidelog.coordination.groups.classic.group import CLASSIC, ClassicGroup, GroupState
from tidelog.coordination.groups.classic.joining import GroupCreated
from tidelog.coordination.groups.classic.member import ClassicMember
from tidelog.coordination.groups.classic.syncing import AssignmentWritten
from tidelog.coordination.groups.classic.timeouts import (
    ClassicTimeout,
    JoinTimeout,
    SessionTimeout,
    SyncTimeout,
)
from tidelog.coordination.groups.kind import GroupDecision, GroupKind
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.records import GroupMetadataKey, GroupMetadataValue
from tidelog.coordination.runtime.decision import CoordinatorRequest, Instant, RecordOrigin
from tidelog.coordination.timers import KeyedTimers, SetTimer
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_TIMESTAMP, Millis


class ClassicGroups(GroupKind):
    type_name = CLASSIC
    messages = frozenset({HeartbeatRequest, JoinGroupRequest, LeaveGroupRequest, SyncGroupRequest})
    keys = (GroupMetadataKey,)

    def __init__(self, shard: GroupShardState) -> None:
        self._shard = shard
        self._timers: KeyedTimers[ClassicTimeout] = KeyedTimers()

    # -- Changes of state --------------------------------------------------------------------------

    def replay(self, key: Any, value: Any | None, origin: RecordOrigin) -> None:
        groups = self._shard.groups
        if value is None:
            group = groups.get(key.group)
            if isinstance(group, ClassicGroup):
                self._forget_timers(group)
                del groups[key.group]
        else:
            groups[key.group] = restored(key.group, value)

    def apply(self, change: Any) -> None:
        match change:
            case GroupChanged(group):
                self._shard.groups[group.group_id] = group
            case SetTimer(key, deadline):
                self._timers.set(key, deadline)
            case _:
                raise AssertionError(change)

    def _forget_timers(self, group: ClassicGroup) -> None:
        self._timers.cancel(JoinTimeout(group.group_id))
        self._timers.cancel(SyncTimeout(group.group_id))
        for member_id in (*group.members, *group.pending_joins):
            self._timers.cancel(SessionTimeout(group.group_id, member_id))

    # -- Inputs ------------------------------------------------------------------------------------

    def decide(self, request: CoordinatorRequest, at: Instant) -> GroupDecision:
        message = request.message
        group = self._shard.groups.get(message.group_id)
        if group is not None and not isinstance(group, ClassicGroup):
            return _of_another_kind(message)
        if isinstance(message, HeartbeatRequest):
            return syncing.heartbeat(group, message, at)
        if isinstance(message, JoinGroupRequest):
            return joining.join(self._shard, group, request, at)
        draft = None if group is None else ClassicDraft.of(group, self._shard.settings, at)
        if isinstance(message, SyncGroupRequest):
            return syncing.sync(draft, message, request.ticket)
        assert isinstance(message, LeaveGroupRequest)
        return leaving.leave(draft, message)

    def loaded(self, at: Instant) -> Iterator[GroupDecision]:
        """Start a full session for each member, because no heartbeats arrived during loading."""
        for group in list(self._shard.groups.values()):
            if isinstance(group, ClassicGroup) and group.members:
                draft = ClassicDraft.of(group, self._shard.settings, at)
                for member in group.members.values():
                    rebalancing.renew_session(draft, member)
                if group.needs_rebalance:
                    rebalancing.prepare_rebalance(draft)
                elif len(group.members) > self._shard.settings.max_size:
                    # `group.max.size` was lowered. Members commit and rejoin, and the last members
                    # to rejoin are refused.
                    rebalancing.prepare_rebalance(draft)
                yield draft.decision()

    def settled(self, then: Hashable, error: ErrorCode, at: Instant) -> Iterator[GroupDecision]:
        assert isinstance(then, GroupCreated | AssignmentWritten)
        group = self._shard.groups.get(then.group_id)
        if not isinstance(group, ClassicGroup):
            return
        error = replies.write_error(error)
        draft = ClassicDraft.of(group, self._shard.settings, at)
        if isinstance(then, GroupCreated):
            joining.group_created(draft, error)
        elif group.state is GroupState.COMPLETING_REBALANCE and group.generation == then.generation:
            syncing.assignment_written(draft, error)
        else:
            return  # another rebalance has begun and has already answered these members
        yield draft.decision()

    def tick(self, at: Instant) -> Iterator[GroupDecision]:
        for key in self._timers.due(at.now):
            if self._timers.is_due(key, at.now):
                yield self._timed_out(key, at)

    def _timed_out(self, key: ClassicTimeout, at: Instant) -> GroupDecision:
        group = self._shard.groups.get(key.group_id)
        if not isinstance(group, ClassicGroup):
            return GroupDecision(changes=(SetTimer(key, None),))
        draft = ClassicDraft.of(group, self._shard.settings, at)
        match key:
            case SessionTimeout():
                rebalancing.session_timed_out(draft, key.member_id)
            case JoinTimeout():
                rebalancing.join_timed_out(draft)
            case SyncTimeout():
                rebalancing.sync_timed_out(draft)
        return draft.decision()

    def next_deadline(self) -> Millis | None:
        return self._timers.next_deadline()


def _of_another_kind(message: Any) -> GroupDecision:
    """Kafka treats a member of a group of another kind as unknown, and lets no member join it."""
    if isinstance(message, JoinGroupRequest):
        response: Any = replies.not_joined(
            ErrorCode.inconsistent_group_protocol, replies.UNKNOWN_MEMBER_ID
        )
    else:
        response = replies.refusal(message, ErrorCode.unknown_member_id, 0)
    return GroupDecision(response=response)


def restored(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """The group that a record describes."""
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
        needs_rebalance=bool(value.members) and value.leader is None,
    )
    for record in value.members:
        group.add(ClassicMember.from_record(record, value.protocol_type, value.protocol or ""))
    group.subscribed_topics = group.find_subscribed_topics()
    return group
