"""LeaveGroup (key 13), versions 0-5: members leave, or an administrator removes static members.

If the last member leaves, the request is answered once the record of the empty group is written.
Any other request is answered at once.
"""

from kio.schema.leave_group.v5.request import LeaveGroupRequest, MemberIdentity

from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic import rebalancing
from tidelog.coordination.groups.classic.draft import ClassicDraft
from tidelog.coordination.groups.classic.group import GroupState
from tidelog.coordination.groups.classic.timeouts import SessionTimeout
from tidelog.coordination.groups.kind import GroupDecision
from tidelog.model.errors import ErrorCode


def leave(draft: ClassicDraft | None, request: LeaveGroupRequest) -> GroupDecision:
    if not request.group_id:
        response = replies.not_left(ErrorCode.invalid_group_id)
        return GroupDecision(response=response, at_once=True)
    errors = [_leave_one(draft, identity) for identity in request.members]
    response = replies.left(tuple(map(replies.leave_result, request.members, errors)))
    if draft is None:
        return GroupDecision(response=response, at_once=True)
    if draft.group.state is not GroupState.EMPTY and ErrorCode.none in errors:
        rebalancing.rebalance_or_complete_join(draft)
    return draft.decision(response)


def _leave_one(draft: ClassicDraft | None, identity: MemberIdentity) -> ErrorCode:
    if draft is None:
        return ErrorCode.unknown_member_id
    group = draft.group
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if member_id in group.pending_joins:
        group.remove(member_id)
        draft.cancel(SessionTimeout(group.group_id, member_id))
        return ErrorCode.none
    if not member_id and instance_id is not None:
        # An administrator sends only the group instance id.
        member_id = group.static_members.get(instance_id, member_id)
    error = group.validate_member(member_id, instance_id)
    if error is ErrorCode.none:
        rebalancing.remove_member(draft, group.members[member_id])
    return error
