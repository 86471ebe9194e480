"""SyncGroup (key 14), versions 0-5, and Heartbeat (key 12), versions 0-4.

The leader's SyncGroup carries the assignment. No member receives the assignment before it is
committed. A failover therefore never loses an assignment that a member uses.
"""

from typing import NamedTuple

from kio.schema.heartbeat.v4.request import HeartbeatRequest
from kio.schema.sync_group.v5.request import SyncGroupRequest

from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic import rebalancing
from tidelog.coordination.groups.classic.draft import ClassicDraft
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.groups.classic.timeouts import SessionTimeout, SyncTimeout
from tidelog.coordination.groups.kind import GroupDecision
from tidelog.coordination.runtime.decision import Instant, Ticket
from tidelog.coordination.timers import SetTimer
from tidelog.model.errors import ErrorCode


class AssignmentWritten(NamedTuple):
    """The write of the leader's assignment for a generation has succeeded or failed."""

    group_id: str
    generation: int


# -- SyncGroup -------------------------------------------------------------------------------------


def sync(draft: ClassicDraft | None, request: SyncGroupRequest, ticket: Ticket) -> GroupDecision:
    error = _check_sync(None if draft is None else draft.group, request)
    if error is not ErrorCode.none:
        return GroupDecision(response=replies.not_synced(error), at_once=True)
    assert draft is not None
    group = draft.group
    member = group.members[request.member_id]
    _has_synced(draft, member.member_id)
    if group.state is GroupState.STABLE:
        # After a failover, the assignment may be in the log but not committed yet.
        return draft.decision(replies.synced(group, member), at_once=False)
    if member.sync is not None:
        # The member has repeated its request. Only its latest request stays parked.
        draft.answer(member.sync, replies.not_synced(ErrorCode.rebalance_in_progress))
    group.change(member.member_id, sync=ticket)
    # Only the leader's first assignment counts, so that a generation never has two assignments.
    if member.member_id == group.leader_id and group.assigned_generation < group.generation:
        _write_assignment(draft, request)
    return draft.decision()


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


def _has_synced(draft: ClassicDraft, member_id: str) -> None:
    group = draft.group
    group.pending_syncs.pop(member_id, None)
    if not group.pending_syncs:
        draft.cancel(SyncTimeout(group.group_id))


def _write_assignment(draft: ClassicDraft, request: SyncGroupRequest) -> None:
    """Write the leader's assignment. A member that is not listed in it gets an empty assignment."""
    group = draft.group
    given = {item.member_id: item.assignment for item in request.assignments}
    group.assigned_generation = group.generation
    for member_id in group.members:
        group.change(member_id, assignment=given.get(member_id, b""))
    draft.write(AssignmentWritten(group.group_id, group.generation))


def assignment_written(draft: ClassicDraft, error: ErrorCode) -> None:
    """Send the members their assignments, or make them rejoin if the write has failed."""
    group = draft.group
    if error is ErrorCode.none:
        rebalancing.answer_syncs(draft, ErrorCode.none)
        group.transition_to(GroupState.STABLE, draft.at.wall)
        return
    for member_id in group.members:
        group.change(member_id, assignment=b"")
    rebalancing.answer_syncs(draft, error)
    rebalancing.rebalance_or_complete_join(draft)


# -- Heartbeat -------------------------------------------------------------------------------------


def heartbeat(group: ClassicGroup | None, request: HeartbeatRequest, at: Instant) -> GroupDecision:
    error = _check_heartbeat(group, request)
    changes: tuple[SetTimer, ...] = ()
    if error is ErrorCode.none:
        assert group is not None
        deadline = at.now + group.members[request.member_id].session_timeout_ms
        changes = (SetTimer(SessionTimeout(request.group_id, request.member_id), deadline),)
        if group.state is GroupState.PREPARING_REBALANCE:
            error = ErrorCode.rebalance_in_progress
    return GroupDecision(response=replies.heartbeat(error), changes=changes, at_once=True)


def _check_heartbeat(group: ClassicGroup | None, request: HeartbeatRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.invalid_group_id
    if group is None:
        return ErrorCode.unknown_member_id
    error = group.validate_member(request.member_id, request.group_instance_id)
    if error is ErrorCode.none and request.generation_id != group.generation:
        return ErrorCode.illegal_generation
    return error
