"""JoinGroup (key 11), versions 0-9: a member joins or rejoins.

A dynamic member first receives a member id, and then joins with that id (KIP-394). A static member
replaces its previous incarnation (KIP-345). If the group is stable and the selected protocol does
not change, the replacement needs no rebalance.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse

from tidelog.config.group_settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic import rebalancing
from tidelog.coordination.groups.classic.draft import ClassicDraft
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.groups.classic.member import ClassicMember, Protocol
from tidelog.coordination.groups.classic.timeouts import SessionTimeout
from tidelog.coordination.groups.kind import GroupDecision
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.runtime.decision import CoordinatorRequest, Instant
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis
from tidelog.protocol.text import LONGEST_STRING, shortened

_MEMBER_ID_REQUIRED_SINCE = 4
_SKIP_ASSIGNMENT_SINCE = 9
_UNIQUE_LENGTH = 37
"""The length of a UUID and a dash."""
_MILLISECOND = timedelta(milliseconds=1)


class GroupCreated(NamedTuple):
    """The write of a new group's first record has succeeded or failed."""

    group_id: str


@dataclass(slots=True)
class _Joiner:
    """The fields of a JoinGroup request that the coordinator uses."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: Millis
    rebalance_timeout_ms: Millis
    protocol_type: str
    protocols: tuple[Protocol, ...]
    ticket: int
    version: int


def join(
    shard: GroupShardState, group: ClassicGroup | None, request: CoordinatorRequest, at: Instant
) -> GroupDecision:
    message: JoinGroupRequest = request.message
    joiner = _joiner(message, request)
    error = _check(shard.settings, message.group_id, joiner)
    if error is ErrorCode.none and not _can_be_written(shard.largest_batch(), group, joiner):
        error = ErrorCode.unknown_server_error
    if error is ErrorCode.none and group is None and joiner.member_id:
        error = ErrorCode.unknown_member_id
    if error is not ErrorCode.none:
        response = replies.not_joined(error, joiner.member_id)
        return GroupDecision(response=response, at_once=True)
    if group is None:
        draft = ClassicDraft(
            ClassicGroup(message.group_id, GroupState.EMPTY, at.wall), shard.settings, at
        )
        draft.write(GroupCreated(message.group_id))
    else:
        draft = ClassicDraft.of(group, shard.settings, at)
    if not _has_room(shard.settings, draft.group, joiner.member_id):
        draft.group.remove(joiner.member_id)
        full = ErrorCode.group_max_size_reached
        return draft.decision(replies.not_joined(full, replies.UNKNOWN_MEMBER_ID))
    if not joiner.member_id:
        return _join_as_new(draft, joiner, shard.dice.uuid())
    return _join_again(draft, joiner)


def group_created(draft: ClassicDraft, error: ErrorCode) -> None:
    """If the first record of a group was not committed in time, its members must join again."""
    if error is not ErrorCode.none and draft.group.generation == 0:
        for member in list(draft.group.members.values()):
            rebalancing.refuse_parked(draft, member, error, member.member_id)


def _joiner(message: JoinGroupRequest, request: CoordinatorRequest) -> _Joiner:
    return _Joiner(
        member_id=message.member_id,
        group_instance_id=message.group_instance_id,
        client_id=request.client.client_id or "",
        client_host=f"/{request.client.host}",  # as Java prints an address
        session_timeout_ms=message.session_timeout // _MILLISECOND,
        rebalance_timeout_ms=max(message.rebalance_timeout // _MILLISECOND, 0),
        protocol_type=message.protocol_type,
        protocols=tuple(Protocol(p.name, p.metadata) for p in message.protocols),
        ticket=request.ticket,
        version=request.version,
    )


def _check(settings: GroupSettings, group_id: str, joiner: _Joiner) -> ErrorCode:
    if not group_id:
        return ErrorCode.invalid_group_id
    low, high = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if not low <= joiner.session_timeout_ms <= high:
        return ErrorCode.invalid_session_timeout
    return ErrorCode.none


def _can_be_written(limit: int, group: ClassicGroup | None, joiner: _Joiner) -> bool:
    """Whether the record of a group with this member fits into a batch (F61).

    Kafka checks the size of the record only when it writes the assignment. If the record is too
    large, every member receives an error.
    """
    if sum(len(protocol.metadata) for protocol in joiner.protocols) > limit:
        return False
    others = () if group is None else group.members.values()
    least = _least_bytes(joiner.protocols)
    for member in others:
        if member.member_id != joiner.member_id:
            least += _least_bytes(member.protocols)
    return least <= limit


def _least_bytes(protocols: tuple[Protocol, ...]) -> int:
    """The minimum size that a member adds to the group's record, whichever protocol is selected."""
    return min((len(protocol.metadata) for protocol in protocols), default=0)


def _has_room(settings: GroupSettings, group: ClassicGroup, member_id: str) -> bool:
    """Whether `group.max.size` admits this member."""
    member = group.members.get(member_id)
    match group.state:
        case GroupState.PREPARING_REBALANCE:
            # Only members that have rejoined count. If the limit was lowered, the last members to
            # rejoin are refused.
            already_in = member is not None and member.join is not None
            return already_in or group.awaiting_join < settings.max_size
        case GroupState.COMPLETING_REBALANCE | GroupState.STABLE:
            return member is not None or len(group.members) < settings.max_size
        case _:
            return True


# -- New members -----------------------------------------------------------------------------------


def _join_as_new(draft: ClassicDraft, joiner: _Joiner, unique: UUID) -> GroupDecision:
    group = draft.group
    if not group.supports(joiner.protocol_type, joiner.protocols):
        error = ErrorCode.inconsistent_group_protocol
        return draft.decision(replies.not_joined(error, replies.UNKNOWN_MEMBER_ID))
    instance_id = joiner.group_instance_id
    name = joiner.client_id if instance_id is None else instance_id
    joiner = replace(joiner, member_id=_member_id(name, unique))
    if instance_id is not None and instance_id in group.static_members:
        return _replace_static_member(draft, joiner, group.static_members[instance_id])
    if instance_id is None and joiner.version >= _MEMBER_ID_REQUIRED_SINCE:
        group.pending_joins[joiner.member_id] = None
        timeout = SessionTimeout(group.group_id, joiner.member_id)
        draft.schedule(timeout, joiner.session_timeout_ms)
        required = ErrorCode.member_id_required
        return draft.decision(replies.not_joined(required, joiner.member_id))
    return _add_member(draft, joiner)


def _member_id(name: str, unique: UUID) -> str:
    """A unique member id, at most as long as the longest string that clients can read."""
    return f"{shortened(name, LONGEST_STRING - _UNIQUE_LENGTH)}-{unique}"


def _add_member(draft: ClassicDraft, joiner: _Joiner) -> GroupDecision:
    member = ClassicMember(
        member_id=joiner.member_id,
        group_instance_id=joiner.group_instance_id,
        client_id=joiner.client_id,
        client_host=joiner.client_host,
        rebalance_timeout_ms=joiner.rebalance_timeout_ms,
        session_timeout_ms=joiner.session_timeout_ms,
        protocol_type=joiner.protocol_type,
        protocols=joiner.protocols,
        is_new=True,
        join=joiner.ticket,
    )
    if draft.group.is_initial_rebalance:
        draft.group.new_member_added = True
    draft.group.add(member)
    # The member cannot send heartbeats yet and may come back with another id, so limit its session.
    rebalancing.renew_session(draft, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalancing.rebalance_or_complete_join(draft)
    return draft.decision()


# -- Known members ---------------------------------------------------------------------------------


def _join_again(draft: ClassicDraft, joiner: _Joiner) -> GroupDecision:
    group = draft.group
    if not group.supports(joiner.protocol_type, joiner.protocols):
        error = ErrorCode.inconsistent_group_protocol
        return draft.decision(replies.not_joined(error, joiner.member_id))
    if joiner.member_id in group.pending_joins and joiner.group_instance_id is None:
        return _add_member(draft, joiner)
    error = group.validate_member(joiner.member_id, joiner.group_instance_id)
    if error is not ErrorCode.none:
        return draft.decision(replies.not_joined(error, joiner.member_id))
    member = group.members[joiner.member_id]
    leads = member.member_id == group.leader_id
    unchanged = member.protocols == joiner.protocols
    # A leader may rejoin a stable group to trigger a new assignment.
    current = group.state is GroupState.COMPLETING_REBALANCE or (
        group.state is GroupState.STABLE and not leads
    )
    if unchanged and current:
        # The member may have missed the response to its JoinGroup, so send the response again.
        with_members = leads and group.state is GroupState.COMPLETING_REBALANCE
        response = replies.joined(
            group, member.member_id, leader_id=group.leader_id, with_members=with_members
        )
        return draft.decision(response, at_once=group.state is not GroupState.STABLE)
    _park_join(draft, member, joiner)
    rebalancing.rebalance_or_complete_join(draft)
    return draft.decision()


def _park_join(draft: ClassicDraft, member: ClassicMember, joiner: _Joiner) -> None:
    """Update the member from its request; only its latest JoinGroup stays parked."""
    if member.join is not None:
        error = ErrorCode.rebalance_in_progress
        draft.answer(member.join, replies.not_joined(error, member.member_id))
    _update(draft, member, joiner, joiner.ticket)


def _update(
    draft: ClassicDraft, member: ClassicMember, joiner: _Joiner, join: int | None
) -> ClassicMember:
    return draft.group.change(
        member.member_id,
        protocols=joiner.protocols,
        rebalance_timeout_ms=joiner.rebalance_timeout_ms,
        session_timeout_ms=joiner.session_timeout_ms,
        join=join,
    )


# -- Static members --------------------------------------------------------------------------------


def _replace_static_member(draft: ClassicDraft, joiner: _Joiner, old_id: str) -> GroupDecision:
    """Give the static member a new member id, and fence the client that uses the old id."""
    group = draft.group
    old_leader_id = group.leader_id
    rebalancing.refuse_parked(draft, group.members[old_id], ErrorCode.fenced_instance_id, old_id)
    draft.cancel(SessionTimeout(group.group_id, old_id))
    member = _update(draft, group.replace_static(old_id, joiner.member_id), joiner, None)
    rebalancing.renew_session(draft, member)
    if group.state is GroupState.STABLE and group.protocol_name == group.select_protocol():
        draft.write()
        return draft.decision(_replaced(group, member, joiner.version, old_leader_id))
    group.change(member.member_id, join=joiner.ticket)
    match group.state:
        case GroupState.STABLE:
            rebalancing.rebalance_or_complete_join(draft)
        case GroupState.COMPLETING_REBALANCE:
            # The leader may already be assigning partitions to the old id, so all members must
            # rejoin.
            rebalancing.prepare_rebalance(draft)
        case _:
            rebalancing.complete_join_if_all_joined(draft)
    return draft.decision()


def _replaced(
    group: ClassicGroup, member: ClassicMember, version: int, old_leader_id: str | None
) -> JoinGroupResponse:
    """The response to a returning static member. The member must not send a new assignment."""
    if version < _SKIP_ASSIGNMENT_SINCE:
        # The response names the old leader, so that the member does not act as leader.
        return replies.joined(group, member.member_id, leader_id=old_leader_id)
    leads = member.member_id == group.leader_id
    return replies.joined(
        group,
        member.member_id,
        leader_id=group.leader_id,
        with_members=leads,
        skip_assignment=leads,
    )
