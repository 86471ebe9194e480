"""Static members (KIP-345, KIP-814): the same instance comes back and takes its place."""

import pytest
from tests.unit.coordination.group_client import SESSION_MS, Desk, member_id

from tidelog.model.errors import ErrorCode

TWO = [("range", b"meta"), ("sticky", b"meta")]


def static_group(desk: Desk, *instances: str) -> list[str]:
    """A stable group of static members; the first leads."""
    tickets = [desk.join(instance=instance, protocols=TWO) for instance in instances]
    desk.advance(6_000)
    members = [desk.answers[ticket].member_id for ticket in tickets]
    desk.sync(members[0], 1, {m: f"to {m}".encode() for m in members})
    for member in members[1:]:
        desk.sync(member, 1)
    assert desk.state() == "Stable"
    return members


def test_restart_without_rebalance() -> None:
    desk = Desk()
    _, old = static_group(desk, "a", "b")
    answer = desk.answers[desk.join(instance="b", protocols=TWO)]
    assert answer.error_code is ErrorCode.none
    assert answer.member_id != old
    assert answer.generation_id == 1
    assert desk.state() == "Stable"
    # It gets what it had: the assignment belongs to the instance.
    synced = desk.answers[desk.sync(answer.member_id, 1, instance="b")]
    assert synced.assignment == f"to {old}".encode()


def test_old_id_of_a_restarted_member_is_fenced() -> None:
    desk = Desk()
    _, old = static_group(desk, "a", "b")
    desk.join(instance="b", protocols=TWO)
    assert desk.heartbeat(old, 1, instance="b") is ErrorCode.fenced_instance_id
    assert desk.heartbeat(old, 1) is ErrorCode.unknown_member_id
    fenced = ErrorCode.fenced_instance_id
    assert desk.answers[desk.sync(old, 1, instance="b")].error_code is fenced
    assert desk.answers[desk.join(old, instance="b", protocols=TWO)].error_code is fenced
    commit = desk.commit({("t", 0): 1}, member=old, generation=1, instance="b")
    assert desk.commit_error(commit) is fenced
    leave = desk.answers[desk.leave((old, "b"))]
    assert leave.members[0].error_code is fenced


def test_unknown_instance_is_an_unknown_member() -> None:
    desk = Desk()
    (member,) = static_group(desk, "a")
    assert desk.heartbeat(member, 1, instance="z") is ErrorCode.unknown_member_id


def test_restarted_leader_skips_the_assignment() -> None:
    desk = Desk()
    static_group(desk, "a", "b")
    answer = desk.answers[desk.join(instance="a", protocols=TWO)]
    assert answer.leader == answer.member_id
    assert answer.skip_assignment
    assert len(answer.members) == 2


def test_restarted_leader_before_version_9_is_told_of_its_old_self() -> None:
    desk = Desk()
    old, _ = static_group(desk, "a", "b")
    answer = desk.answers[desk.join(instance="a", protocols=TWO, version=8)]
    assert answer.leader == old
    assert not answer.skip_assignment
    assert answer.members == ()


def test_replacement_is_answered_when_it_is_written() -> None:
    desk = Desk()
    static_group(desk, "a", "b")
    desk.writes_succeed = False
    ticket = desk.join(instance="b", protocols=TWO)
    assert ticket not in desk.answers
    desk.settle(ErrorCode.none)
    new = desk.answers[ticket].member_id
    after = desk.successor()
    assert after.heartbeat(new, 1, instance="b") is ErrorCode.none


def test_replacement_that_cannot_be_written_is_undone() -> None:
    desk = Desk()
    _, old = static_group(desk, "a", "b")
    desk.writes_succeed = False
    ticket = desk.join(instance="b", protocols=TWO)
    desk.settle(ErrorCode.not_enough_replicas)
    assert desk.answers[ticket].error_code is ErrorCode.coordinator_not_available
    assert desk.answers[ticket].member_id == ""
    assert desk.heartbeat(old, 1, instance="b") is ErrorCode.none


def test_rebalance_while_the_replacement_is_written_answers_it() -> None:
    desk = Desk()
    a, _ = static_group(desk, "a", "b")
    desk.writes_succeed = False
    replacing = desk.join(instance="b", protocols=TWO)
    leading = desk.join(a, instance="a", protocols=TWO)
    assert desk.answers[replacing].generation_id == desk.answers[leading].generation_id == 2
    desk.settle(ErrorCode.none)
    assert desk.state() == "CompletingRebalance"


def test_change_of_the_selected_protocol_rebalances() -> None:
    desk = Desk()
    static_group(desk, "a", "b")
    ticket = desk.join(instance="b", protocols=[("sticky", b"meta")])
    assert ticket not in desk.answers
    assert desk.state() == "PreparingRebalance"


def test_restart_before_the_assignment_rebalances() -> None:
    desk = Desk()
    desk.join(instance="a")
    second = desk.join(instance="b")
    desk.advance(6_000)
    sync = desk.sync(desk.answers[second].member_id, 1, instance="b")
    ticket = desk.join(instance="a")
    assert desk.answers[sync].error_code is ErrorCode.rebalance_in_progress
    assert ticket not in desk.answers
    assert desk.state() == "PreparingRebalance"


def test_second_instance_of_the_same_name_fences_the_parked_first() -> None:
    desk = Desk()
    first = desk.join(instance="a")
    second = desk.join(instance="a")
    assert desk.answers[first].error_code is ErrorCode.fenced_instance_id
    assert desk.answers[first].member_id == member_id(1, "a")
    desk.advance(6_000)
    assert desk.answers[second].error_code is ErrorCode.none


def test_second_instance_fences_a_parked_sync() -> None:
    desk = Desk()
    leader = desk.join(instance="a")
    other = desk.join(instance="b")
    desk.advance(6_000)
    sync = desk.sync(desk.answers[other].member_id, 1, instance="b")
    desk.join(instance="b")
    assert desk.answers[sync].error_code is ErrorCode.fenced_instance_id
    assert leader in desk.answers


def test_static_member_stays_through_a_rebalance_that_it_misses() -> None:
    desk = Desk()
    a, b = static_group(desk, "a", "b")
    ticket = desk.join(a, instance="a", protocols=TWO)
    for _ in range(12):
        desk.advance(5_000)
        desk.heartbeat(b, 1, instance="b")
    answer = desk.answers[ticket]
    assert answer.generation_id == 2
    assert {member.group_instance_id for member in answer.members} == {"a", "b"}


def test_nobody_rejoins_but_static_members_are_left() -> None:
    """The rebalance is put off until the sessions of the silent members end it."""
    desk = Desk()
    static_group(desk, "a", "b")
    _, ticket = desk.enter(protocols=TWO, session_ms=SESSION_MS)
    desk.leave(member_id(3))
    assert desk.answers[ticket].error_code is ErrorCode.unknown_member_id
    desk.advance(SESSION_MS)
    assert desk.state() == "Empty"


@pytest.mark.parametrize("by_name", [True, False])
def test_static_member_is_removed_by_name_or_id(by_name: bool) -> None:
    desk = Desk()
    _, b = static_group(desk, "a", "b")
    answer = desk.answers[desk.leave(("" if by_name else b, "b"))]
    assert answer.members[0].error_code is ErrorCode.none
    assert desk.state() == "PreparingRebalance"
    assert desk.heartbeat(b, 1, instance="b") is ErrorCode.unknown_member_id


def test_removal_by_an_unknown_name() -> None:
    desk = Desk()
    static_group(desk, "a")
    (member,) = desk.answers[desk.leave(("", "z"))].members
    assert (member.error_code, member.group_instance_id) == (ErrorCode.unknown_member_id, "z")
    assert desk.state() == "Stable"


def test_static_members_survive_a_failover() -> None:
    desk = Desk()
    _, old = static_group(desk, "a", "b")
    after = desk.successor()
    answer = after.answers[after.join(instance="b", protocols=[("range", b"meta")])]
    assert answer.error_code is ErrorCode.none
    assert answer.generation_id == 1
    assert after.heartbeat(old, 1, instance="b") is ErrorCode.fenced_instance_id
