"""The rebalance of a classic group: members rejoin, a leader is elected, a generation begins.

Empty or Stable -> PreparingRebalance (members join) -> CompletingRebalance (the leader assigns)
-> Stable; a group without members becomes Empty. A member belongs to a generation only if its
JoinGroup was parked when that generation began, or if it is static.
"""

from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic.draft import ClassicDraft
from tidelog.coordination.groups.classic.group import GroupState
from tidelog.coordination.groups.classic.member import ClassicMember
from tidelog.coordination.groups.classic.timeouts import JoinTimeout, SessionTimeout, SyncTimeout
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis

# -- Beginning the join phase ----------------------------------------------------------------------


def rebalance_or_complete_join(draft: ClassicDraft) -> None:
    """Begin a rebalance, or complete the current one if every member has joined."""
    if draft.group.can_rebalance:
        prepare_rebalance(draft)
    else:
        complete_join_if_all_joined(draft)


def prepare_rebalance(draft: ClassicDraft) -> None:
    """Require all members to rejoin. The first rebalance of an empty group waits for members."""
    group = draft.group
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member_id in group.members:
            group.change(member_id, assignment=b"")
        answer_syncs(draft, ErrorCode.rebalance_in_progress)
    group.pending_syncs.clear()
    draft.cancel(SyncTimeout(group.group_id))
    initial = group.state is GroupState.EMPTY
    group.transition_to(GroupState.PREPARING_REBALANCE, draft.at.wall)
    if initial:
        delay_ms = draft.settings.initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        draft.schedule(JoinTimeout(group.group_id), delay_ms)
    elif group.has_all_members_joined:
        complete_join(draft)
    else:
        draft.schedule(JoinTimeout(group.group_id), group.rebalance_timeout_ms)


# -- Ending the join phase -------------------------------------------------------------------------


def complete_join_if_all_joined(draft: ClassicDraft) -> None:
    """End the join phase if every member has joined.

    An initial rebalance always waits for its delay.
    """
    group = draft.group
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and not group.is_initial_rebalance
        and group.has_all_members_joined
    ):
        complete_join(draft)


def join_timed_out(draft: ClassicDraft) -> None:
    """End the join phase, or extend the initial delay if members are still joining."""
    group = draft.group
    delay_ms, remaining_ms = group.initial_delay_ms, group.initial_remaining_ms
    if delay_ms is None or not group.new_member_added or remaining_ms == 0:
        complete_join(draft)
        return
    # A member has joined during the delay, so extend the delay, within the rebalance timeout.
    group.new_member_added = False
    group.initial_delay_ms = min(draft.settings.initial_rebalance_delay_ms, remaining_ms)
    group.initial_remaining_ms = max(remaining_ms - delay_ms, 0)
    draft.schedule(JoinTimeout(group.group_id), group.initial_delay_ms)


def complete_join(draft: ClassicDraft) -> None:
    """Begin the next generation with the members that have joined and all static members."""
    group = draft.group
    draft.cancel(JoinTimeout(group.group_id))
    group.initial_delay_ms = None
    group.new_member_added = False
    for member in list(group.members.values()):
        if member.join is None and not member.is_static:
            remove_member(draft, member)
    if not group.elect_joined_leader() and group.members:
        # Only static members remain, and none has joined. Wait until they join or time out.
        draft.schedule(JoinTimeout(group.group_id), max(group.rebalance_timeout_ms, 1))
        return
    group.next_generation(draft.at.wall)
    if group.state is GroupState.EMPTY:
        draft.write()
    else:
        _answer_joins(draft)
        draft.schedule(SyncTimeout(group.group_id), group.rebalance_timeout_ms)


def _answer_joins(draft: ClassicDraft) -> None:
    group = draft.group
    for member in list(group.members.values()):
        if member.join is not None:
            leads = member.member_id == group.leader_id
            response = replies.joined(
                group, member.member_id, leader_id=group.leader_id, with_members=leads
            )
            draft.answer(member.join, response)
        group.change(member.member_id, join=None, is_new=False)
        group.pending_syncs[member.member_id] = None
        renew_session(draft, member)


# -- Answering parked requests ---------------------------------------------------------------------


def answer_syncs(draft: ClassicDraft, error: ErrorCode) -> None:
    """Send each member with a parked SyncGroup its assignment, or the error."""
    group = draft.group
    for member in list(group.members.values()):
        if member.sync is not None:
            good = error is ErrorCode.none
            response = replies.synced(group, member) if good else replies.not_synced(error)
            draft.answer(member.sync, response)
            group.change(member.member_id, sync=None)
            # Sessions do not expire while a request is parked, so start a full session now.
            renew_session(draft, member)


def refuse_parked(
    draft: ClassicDraft, member: ClassicMember, error: ErrorCode, member_id: str
) -> None:
    """Refuse the parked requests of a member."""
    if member.join is not None:
        draft.answer(member.join, replies.not_joined(error, member_id))
    if member.sync is not None:
        draft.answer(member.sync, replies.not_synced(error))
    draft.group.change(member.member_id, join=None, sync=None)


# -- Sessions and timeouts -------------------------------------------------------------------------


def renew_session(
    draft: ClassicDraft, member: ClassicMember, timeout_ms: Millis | None = None
) -> None:
    timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
    draft.schedule(SessionTimeout(draft.group.group_id, member.member_id), timeout_ms)


def remove_member(draft: ClassicDraft, member: ClassicMember) -> None:
    """Remove a member; if it is alive, it receives UNKNOWN_MEMBER_ID and rejoins."""
    draft.cancel(SessionTimeout(draft.group.group_id, member.member_id))
    refuse_parked(draft, member, ErrorCode.unknown_member_id, replies.UNKNOWN_MEMBER_ID)
    draft.group.remove(member.member_id)


def session_timed_out(draft: ClassicDraft, member_id: str) -> None:
    """Remove a member whose session has expired, unless a parked request proves it alive."""
    group = draft.group
    draft.cancel(SessionTimeout(group.group_id, member_id))
    member = group.members.get(member_id)
    if member_id in group.pending_joins:
        group.remove(member_id)
        _complete_if_last_missing(draft)
    elif member is not None and not member.heartbeat_satisfied:
        remove_member(draft, member)
        if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            rebalance_or_complete_join(draft)
        else:
            _complete_if_last_missing(draft)


def _complete_if_last_missing(draft: ClassicDraft) -> None:
    group = draft.group
    if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
        complete_join(draft)


def sync_timed_out(draft: ClassicDraft) -> None:
    """Remove members that did not send SyncGroup in time, and rebalance the others."""
    group = draft.group
    draft.cancel(SyncTimeout(group.group_id))
    if not group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return
    missing = [group.members[member_id] for member_id in group.pending_syncs]
    if not missing:
        return
    for member in missing:
        remove_member(draft, member)
    prepare_rebalance(draft)
