"""LeaveGroup (key 13), versions 0-5: members leave, or an administrator removes static members.

If the last member leaves, the request is answered once the record of the empty group is written.
Any other request is answered at once.
"""

from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity

from tidelog.coordination.core import ShardCore
from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic import rebalancing
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.timers import SessionTimeout
from tidelog.model.errors import ErrorCode


def leave(core: ShardCore, request: LeaveGroupRequest, ticket: int) -> None:
    if not request.group_id:
        core.answer(ticket, replies.not_left(ErrorCode.invalid_group_id))
        return
    group = core.groups.get(request.group_id)
    errors = [_leave_one(core, group, identity) for identity in request.members]
    results = tuple(map(replies.leave_result, request.members, errors))
    before = core.last_write
    if group is not None and group.state is not GroupState.EMPTY and ErrorCode.none in errors:
        rebalancing.rebalance_or_complete_join(core, group)

    def settled(error: ErrorCode) -> None:
        good = error is ErrorCode.none
        core.answer(ticket, replies.left(results) if good else replies.not_left(error))

    if core.last_write > before:
        core.when_settled(core.last_write, settled)
    else:
        settled(ErrorCode.none)


def _leave_one(core: ShardCore, group: ClassicGroup | None, identity: MemberIdentity) -> ErrorCode:
    if group is None:
        return ErrorCode.unknown_member_id
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id in group.pending_joins:
        group.remove(member_id)
        core.timers.cancel(SessionTimeout(group.group_id, member_id))
        return ErrorCode.none
    if not member_id and instance_id is not None:
        # An administrator sends only the group instance id.
        member_id = group.static_members.get(instance_id, member_id)
    error = group.validate_member(member_id, instance_id)
    if error is ErrorCode.none:
        rebalancing.remove_member(core, group, group.members[member_id])
    return error
