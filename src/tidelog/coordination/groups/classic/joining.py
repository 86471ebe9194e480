"""JoinGroup (key 11), versions 0-9: a member joins or rejoins.

A dynamic member first receives a member id, and then joins with that id (KIP-394). A static member
replaces its previous incarnation (KIP-345). If the group is stable and the selected protocol does
not change, the replacement needs no rebalance.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from kio.schema.join_group.v9.request import JoinGroupRequest
from kio.schema.join_group.v9.response import JoinGroupResponse

from tidelog.config.group_settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from tidelog.coordination.core import ShardCore, group_record
from tidelog.coordination.effects import ClientInfo
from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic import rebalancing
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.groups.classic.member import ClassicMember, Protocol
from tidelog.coordination.timers import JoinTimeout, SessionTimeout
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis
from tidelog.protocol.text import LONGEST_STRING, shortened

_MEMBER_ID_REQUIRED_SINCE = 4
_SKIP_ASSIGNMENT_SINCE = 9
_UNIQUE_LENGTH = 37
"""The length of a UUID and a dash."""
_MILLISECOND = timedelta(milliseconds=1)


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
    core: ShardCore, request: JoinGroupRequest, client: ClientInfo, version: int, ticket: int
) -> None:
    joiner = _joiner(request, client, version, ticket)
    error = _check(core.settings, request.group_id, joiner)
    group = core.groups.get(request.group_id)
    if error is ErrorCode.none and not _can_be_written(core, group, joiner):
        error = ErrorCode.unknown_server_error
    if error is ErrorCode.none and group is None and joiner.member_id:
        error = ErrorCode.unknown_member_id
    if error is not ErrorCode.none:
        _refuse(core, joiner, error, joiner.member_id)
        return
    if group is None:
        group = _create_group(core, request.group_id)
    if not _has_room(core.settings, group, joiner.member_id):
        group.remove(joiner.member_id)
        _refuse(core, joiner, ErrorCode.group_max_size_reached, replies.UNKNOWN_MEMBER_ID)
    elif not joiner.member_id:
        _join_as_new(core, group, joiner)
    else:
        _join_again(core, group, joiner)


def _joiner(request: JoinGroupRequest, client: ClientInfo, version: int, ticket: int) -> _Joiner:
    return _Joiner(
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        client_id=client.client_id or "",
        client_host=f"/{client.host}",  # as Java prints an address
        session_timeout_ms=request.session_timeout // _MILLISECOND,
        rebalance_timeout_ms=max(request.rebalance_timeout // _MILLISECOND, 0),
        protocol_type=request.protocol_type,
        protocols=tuple(Protocol(p.name, p.metadata) for p in request.protocols),
        ticket=ticket,
        version=version,
    )


def _check(settings: GroupSettings, group_id: str, joiner: _Joiner) -> ErrorCode:
    if not group_id:
        return ErrorCode.invalid_group_id
    low, high = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if not low <= joiner.session_timeout_ms <= high:
        return ErrorCode.invalid_session_timeout
    return ErrorCode.none


def _can_be_written(core: ShardCore, group: ClassicGroup | None, joiner: _Joiner) -> bool:
    """Whether the record of a group with this member fits into a batch (F61).

    Kafka checks the size of the record only when it writes the assignment. If the record is too
    large, every member receives an error.
    """
    limit = core.largest_batch()
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


def _create_group(core: ShardCore, group_id: str) -> ClassicGroup:
    """Create a group and write its first record; if the write fails, its members are refused."""
    group = ClassicGroup(group_id, GroupState.EMPTY, core.wall)

    def settled(error: ErrorCode) -> None:
        if error is not ErrorCode.none and group.generation == 0:
            for member in group.members.values():
                rebalancing.refuse_parked(core, member, error, member.member_id)

    def undo(error: ErrorCode) -> None:
        settled(error)
        if group.generation == 0 and core.groups.get(group_id) is group:
            core.timers.cancel(JoinTimeout(group_id))
            del core.groups[group_id]

    core.write([group_record(group, {})], settled, undo=undo)
    core.groups[group_id] = group
    return group


def _refuse(core: ShardCore, joiner: _Joiner, error: ErrorCode, member_id: str) -> None:
    core.answer(joiner.ticket, replies.not_joined(error, member_id))


# -- New members -----------------------------------------------------------------------------------


def _join_as_new(core: ShardCore, group: ClassicGroup, joiner: _Joiner) -> None:
    if not group.supports(joiner.protocol_type, joiner.protocols):
        _refuse(core, joiner, ErrorCode.inconsistent_group_protocol, replies.UNKNOWN_MEMBER_ID)
        return
    instance_id = joiner.group_instance_id
    name = joiner.client_id if instance_id is None else instance_id
    joiner = replace(joiner, member_id=_member_id(name, core.dice.uuid()))
    if instance_id is not None and instance_id in group.static_members:
        _replace_static_member(core, group, joiner, group.static_members[instance_id])
    elif instance_id is None and joiner.version >= _MEMBER_ID_REQUIRED_SINCE:
        group.pending_joins[joiner.member_id] = None
        timeout = SessionTimeout(group.group_id, joiner.member_id)
        core.schedule(timeout, joiner.session_timeout_ms)
        _refuse(core, joiner, ErrorCode.member_id_required, joiner.member_id)
    else:
        _add_member(core, group, joiner)


def _member_id(name: str, unique: UUID) -> str:
    """A unique member id, at most as long as the longest string that clients can read."""
    return f"{shortened(name, LONGEST_STRING - _UNIQUE_LENGTH)}-{unique}"


def _add_member(core: ShardCore, group: ClassicGroup, joiner: _Joiner) -> None:
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
    if group.is_initial_rebalance:
        group.new_member_added = True
    group.add(member)
    # The member cannot send heartbeats yet and may come back with another id, so limit its session.
    rebalancing.renew_session(core, group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
    rebalancing.rebalance_or_complete_join(core, group)


# -- Known members ---------------------------------------------------------------------------------


def _join_again(core: ShardCore, group: ClassicGroup, joiner: _Joiner) -> None:
    if not group.supports(joiner.protocol_type, joiner.protocols):
        _refuse(core, joiner, ErrorCode.inconsistent_group_protocol, joiner.member_id)
        return
    if joiner.member_id in group.pending_joins and joiner.group_instance_id is None:
        _add_member(core, group, joiner)
        return
    error = group.validate_member(joiner.member_id, joiner.group_instance_id)
    if error is not ErrorCode.none:
        _refuse(core, joiner, error, joiner.member_id)
        return
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
        core.answer(joiner.ticket, response)
        return
    _park_join(core, member, joiner)
    rebalancing.rebalance_or_complete_join(core, group)


def _park_join(core: ShardCore, member: ClassicMember, joiner: _Joiner) -> None:
    """Update the member from its request; only its latest JoinGroup stays parked."""
    if member.join is not None:
        error = ErrorCode.rebalance_in_progress
        core.answer(member.join, replies.not_joined(error, member.member_id))
    member.protocols = joiner.protocols
    member.rebalance_timeout_ms = joiner.rebalance_timeout_ms
    member.session_timeout_ms = joiner.session_timeout_ms
    member.join = joiner.ticket


# -- Static members --------------------------------------------------------------------------------


def _replace_static_member(
    core: ShardCore, group: ClassicGroup, joiner: _Joiner, old_id: str
) -> None:
    """Give the static member a new member id, and fence the client that uses the old id."""
    old = group.members[old_id]
    old_leader_id = group.leader_id
    rebalancing.refuse_parked(core, old, ErrorCode.fenced_instance_id, old_id)
    core.timers.cancel(SessionTimeout(group.group_id, old_id))
    member = group.replace_static(old_id, joiner.member_id)
    rebalancing.renew_session(core, group, member)
    _park_join(core, member, joiner)
    match group.state:
        case GroupState.STABLE if group.protocol_name == group.select_protocol():
            _persist_replacement(core, group, old, member, joiner, old_leader_id)
        case GroupState.STABLE:
            rebalancing.rebalance_or_complete_join(core, group)
        case GroupState.COMPLETING_REBALANCE:
            # The leader may already be assigning partitions to the old id, so all members must
            # rejoin.
            rebalancing.prepare_rebalance(core, group)
        case _:
            rebalancing.complete_join_if_all_joined(core, group)


def _persist_replacement(
    core: ShardCore,
    group: ClassicGroup,
    old: ClassicMember,
    new: ClassicMember,
    joiner: _Joiner,
    old_leader_id: str | None,
) -> None:
    def settled(error: ErrorCode) -> None:
        if new.join != joiner.ticket or group.state is not GroupState.STABLE:
            return  # a rebalance has begun; it will answer this request
        new.join = None
        if error is ErrorCode.none:
            response = _replaced(group, new, joiner.version, old_leader_id)
            core.answer(joiner.ticket, response)
            return
        core.timers.cancel(SessionTimeout(group.group_id, new.member_id))
        group.swap_static(new, old)
        rebalancing.renew_session(core, group, old)
        _refuse(core, joiner, error, replies.UNKNOWN_MEMBER_ID)

    assignment = {member.member_id: member.assignment for member in group.members.values()}
    core.write([group_record(group, assignment)], settled)


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
