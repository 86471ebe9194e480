"""SyncGroup (key 14), versions 0-5, and Heartbeat (key 12), versions 0-4.

The leader's SyncGroup carries the assignment. The coordinator writes the assignment to its log
before any member receives it. A failover therefore never loses an assignment that a member uses.
"""

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.sync_group.v5.request import SyncGroupRequest

from tidelog.coordination.core import ShardCore, group_record
from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic import rebalancing
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.groups.classic.member import ClassicMember
from tidelog.coordination.timers import SyncTimeout
from tidelog.model.errors import ErrorCode

# -- SyncGroup -------------------------------------------------------------------------------------


def sync(core: ShardCore, request: SyncGroupRequest, ticket: int) -> None:
    group = core.groups.get(request.group_id)
    error = _check_sync(group, request)
    if error is not ErrorCode.none:
        core.answer(ticket, replies.not_synced(error))
        return
    assert group is not None
    member = group.members[request.member_id]
    _has_synced(core, group, member)
    if group.state is GroupState.STABLE:
        core.answer(ticket, replies.synced(group, member))
        return
    if member.sync is not None:
        # The member has repeated its request. Only its latest request stays parked.
        core.answer(member.sync, replies.not_synced(ErrorCode.rebalance_in_progress))
    member.sync = ticket
    # Only the leader's first assignment counts, so that a generation never has two assignments.
    if member.member_id == group.leader_id and group.assigned_generation < group.generation:
        group.assigned_generation = group.generation
        _store_assignment(core, group, request)


def _check_sync(group: ClassicGroup | None, request: SyncGroupRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.invalid_group_id
    if group is None:
        return ErrorCode.unknown_member_id
    error = group.validate_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.none:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.illegal_generation
    # Versions before 5 do not include the protocol, so these fields are None.
    if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (
        None,
        group.protocol_name,
    ):
        return ErrorCode.inconsistent_group_protocol
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.rebalance_in_progress
    return ErrorCode.none


def _has_synced(core: ShardCore, group: ClassicGroup, member: ClassicMember) -> None:
    group.pending_syncs.pop(member.member_id, None)
    if not group.pending_syncs:
        core.timers.cancel(SyncTimeout(group.group_id))


def _store_assignment(core: ShardCore, group: ClassicGroup, request: SyncGroupRequest) -> None:
    """Write the leader's assignment. A member that is not listed in it gets an empty assignment."""
    given = {item.member_id: item.assignment for item in request.assignments}
    assignment = {member_id: given.get(member_id, b"") for member_id in group.members}
    generation = group.generation

    def settled(error: ErrorCode) -> None:
        if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
            return  # another rebalance has begun and has already answered these members
        if error is not ErrorCode.none:
            _drop_assignment(core, group, error)
            return
        for member in group.members.values():
            member.assignment = assignment[member.member_id]
        rebalancing.answer_syncs(core, group, ErrorCode.none)
        group.transition_to(GroupState.STABLE, core.wall)

    core.write([group_record(group, assignment)], settled)


def _drop_assignment(core: ShardCore, group: ClassicGroup, error: ErrorCode) -> None:
    for member in group.members.values():
        member.assignment = b""
    rebalancing.answer_syncs(core, group, error)
    rebalancing.rebalance_or_complete_join(core, group)


# -- Heartbeat -------------------------------------------------------------------------------------


def heartbeat(core: ShardCore, request: HeartbeatRequest, ticket: int) -> None:
    group = core.groups.get(request.group_id)
    error = _check_heartbeat(group, request)
    if error is ErrorCode.none:
        assert group is not None
        rebalancing.renew_session(core, group, group.members[request.member_id])
        if group.state is GroupState.PREPARING_REBALANCE:
            error = ErrorCode.rebalance_in_progress
    core.answer(ticket, replies.heartbeat(error))


def _check_heartbeat(group: ClassicGroup | None, request: HeartbeatRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.invalid_group_id
    if group is None:
        return ErrorCode.unknown_member_id
    error = group.validate_member(request.member_id, request.group_instance_id)
    if error is ErrorCode.none and request.generation_id != group.generation:
        return ErrorCode.illegal_generation
    return error
