"""The rebalance of a classic group: members rejoin, a leader is elected, a generation begins.

Empty or Stable -> PreparingRebalance (members join) -> CompletingRebalance (the leader assigns)
-> Stable; a group without members becomes Empty. A member belongs to a generation only if its
JoinGroup was parked when that generation began, or if it is static.
"""

from tidelog.coordination.core import ShardCore, group_record
from tidelog.coordination.groups import replies
from tidelog.coordination.groups.classic.group import ClassicGroup, GroupState
from tidelog.coordination.groups.classic.member import ClassicMember
from tidelog.coordination.timers import JoinTimeout, SessionTimeout, SyncTimeout
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis

# -- Beginning the join phase ----------------------------------------------------------------------


def rebalance_or_complete_join(core: ShardCore, group: ClassicGroup) -> None:
    """Begin a rebalance, or complete the current one if every member has joined."""
    if group.can_rebalance:
        prepare_rebalance(core, group)
    else:
        complete_join_if_all_joined(core, group)


def prepare_rebalance(core: ShardCore, group: ClassicGroup) -> None:
    """Require all members to rejoin. The first rebalance of an empty group waits for members."""
    if group.state is GroupState.COMPLETING_REBALANCE:
        for member in group.members.values():
            member.assignment = b""
        answer_syncs(core, group, ErrorCode.rebalance_in_progress)
    group.pending_syncs.clear()
    core.timers.cancel(SyncTimeout(group.group_id))
    initial = group.state is GroupState.EMPTY
    group.transition_to(GroupState.PREPARING_REBALANCE, core.wall)
    if initial:
        delay_ms = core.settings.initial_rebalance_delay_ms
        group.initial_delay_ms = delay_ms
        group.initial_remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        core.schedule(JoinTimeout(group.group_id), delay_ms)
    elif group.has_all_members_joined:
        complete_join(core, group)
    else:
        core.schedule(JoinTimeout(group.group_id), group.rebalance_timeout_ms)


# -- Ending the join phase -------------------------------------------------------------------------


def complete_join_if_all_joined(core: ShardCore, group: ClassicGroup) -> None:
    """End the join phase if every member has joined.

    An initial rebalance always waits for its delay.
    """
    if (
        group.state is GroupState.PREPARING_REBALANCE
        and not group.is_initial_rebalance
        and group.has_all_members_joined
    ):
        complete_join(core, group)


def join_timed_out(core: ShardCore, group: ClassicGroup) -> None:
    """End the join phase, or extend the initial delay if members are still joining."""
    delay_ms, remaining_ms = group.initial_delay_ms, group.initial_remaining_ms
    if delay_ms is None or not group.new_member_added or remaining_ms == 0:
        complete_join(core, group)
        return
    # A member has joined during the delay, so extend the delay, within the rebalance timeout.
    group.new_member_added = False
    group.initial_delay_ms = min(core.settings.initial_rebalance_delay_ms, remaining_ms)
    group.initial_remaining_ms = max(remaining_ms - delay_ms, 0)
    core.schedule(JoinTimeout(group.group_id), group.initial_delay_ms)


def complete_join(core: ShardCore, group: ClassicGroup) -> None:
    """Begin the next generation with the members that have joined and all static members."""
    core.timers.cancel(JoinTimeout(group.group_id))
    group.initial_delay_ms = None
    group.new_member_added = False
    for member in list(group.members.values()):
        if member.join is None and not member.is_static:
            remove_member(core, group, member)
    if not group.elect_joined_leader() and group.members:
        # Only static members remain, and none has joined. Wait until they join or time out.
        core.schedule(JoinTimeout(group.group_id), max(group.rebalance_timeout_ms, 1))
        return
    group.next_generation(core.wall)
    if group.state is GroupState.EMPTY:
        # A failed write is harmless. After a failover, the new coordinator loads the members from
        # the previous record, and their sessions expire.
        core.write([group_record(group, {})])
    else:
        _answer_joins(core, group)
        core.schedule(SyncTimeout(group.group_id), group.rebalance_timeout_ms)


def _answer_joins(core: ShardCore, group: ClassicGroup) -> None:
    for member in group.members.values():
        if member.join is not None:
            leads = member.member_id == group.leader_id
            response = replies.joined(
                group, member.member_id, leader_id=group.leader_id, with_members=leads
            )
            core.answer(member.join, response)
            member.join = None
        member.is_new = False
        group.pending_syncs[member.member_id] = None
        renew_session(core, group, member)


# -- Answering parked requests ---------------------------------------------------------------------


def answer_syncs(core: ShardCore, group: ClassicGroup, error: ErrorCode) -> None:
    """Send each member with a parked SyncGroup its assignment, or the error."""
    for member in group.members.values():
        if member.sync is not None:
            good = error is ErrorCode.none
            response = replies.synced(group, member) if good else replies.not_synced(error)
            core.answer(member.sync, response)
            member.sync = None
            # Sessions do not expire while a request is parked, so start a full session now.
            renew_session(core, group, member)


def refuse_parked(core: ShardCore, member: ClassicMember, error: ErrorCode, member_id: str) -> None:
    """Refuse the parked requests of a member that is removed or replaced."""
    if member.join is not None:
        core.answer(member.join, replies.not_joined(error, member_id))
        member.join = None
    if member.sync is not None:
        core.answer(member.sync, replies.not_synced(error))
        member.sync = None


# -- Sessions and timeouts -------------------------------------------------------------------------


def renew_session(
    core: ShardCore, group: ClassicGroup, member: ClassicMember, timeout_ms: Millis | None = None
) -> None:
    timeout_ms = member.session_timeout_ms if timeout_ms is None else timeout_ms
    core.schedule(SessionTimeout(group.group_id, member.member_id), timeout_ms)


def remove_member(core: ShardCore, group: ClassicGroup, member: ClassicMember) -> None:
    """Remove a member; if it is alive, it receives UNKNOWN_MEMBER_ID and rejoins."""
    core.timers.cancel(SessionTimeout(group.group_id, member.member_id))
    refuse_parked(core, member, ErrorCode.unknown_member_id, replies.UNKNOWN_MEMBER_ID)
    group.remove(member.member_id)


def session_timed_out(core: ShardCore, group: ClassicGroup, member_id: str) -> None:
    """Remove a member whose session has expired, unless a parked request proves it alive."""
    member = group.members.get(member_id)
    if member_id in group.pending_joins:
        group.remove(member_id)
        _complete_if_last_missing(core, group)
    elif member is not None and not member.heartbeat_satisfied:
        remove_member(core, group, member)
        if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            rebalance_or_complete_join(core, group)
        else:
            _complete_if_last_missing(core, group)


def _complete_if_last_missing(core: ShardCore, group: ClassicGroup) -> None:
    if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
        complete_join(core, group)


def sync_timed_out(core: ShardCore, group: ClassicGroup) -> None:
    """Remove members that did not send SyncGroup in time, and rebalance the others."""
    if not group.is_in(GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
        return
    missing = [group.members[member_id] for member_id in group.pending_syncs]
    if not missing:
        return
    for member in missing:
        remove_member(core, group, member)
    prepare_rebalance(core, group)
