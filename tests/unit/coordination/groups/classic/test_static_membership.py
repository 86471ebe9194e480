"""Static members (KIP-345, KIP-814): an instance that returns gets its assignment back."""

import pytest
from tests.unit.coordination.group_client import SESSION_MS, CoordinatorUnderTest, member_id

from tidelog.model.errors import ErrorCode

TWO = [("range", b"meta"), ("sticky", b"meta")]


def static_group(coordinator: CoordinatorUnderTest, *instances: str) -> list[str]:
    """A stable group of static members; the first leads."""
    tickets = [coordinator.join(instance=instance, protocols=TWO) for instance in instances]
    coordinator.advance(6_000)
    members = [coordinator.answers[ticket].member_id for ticket in tickets]
    coordinator.sync(members[0], 1, {m: f"to {m}".encode() for m in members})
    for member in members[1:]:
        coordinator.sync(member, 1)
    assert coordinator.state() == "Stable"
    return members


def test_restart_without_rebalance() -> None:
    coordinator = CoordinatorUnderTest()
    _, old = static_group(coordinator, "a", "b")
    answer = coordinator.answers[coordinator.join(instance="b", protocols=TWO)]
    assert answer.error_code is ErrorCode.none
    assert answer.member_id != old
    assert answer.generation_id == 1
    assert coordinator.state() == "Stable"
    # The assignment belongs to the instance, so the new member gets it.
    synced = coordinator.answers[coordinator.sync(answer.member_id, 1, instance="b")]
    assert synced.assignment == f"to {old}".encode()


def test_old_id_of_a_restarted_member_is_fenced() -> None:
    coordinator = CoordinatorUnderTest()
    _, old = static_group(coordinator, "a", "b")
    coordinator.join(instance="b", protocols=TWO)
    assert coordinator.heartbeat(old, 1, instance="b") is ErrorCode.fenced_instance_id
    assert coordinator.heartbeat(old, 1) is ErrorCode.unknown_member_id
    fenced = ErrorCode.fenced_instance_id
    assert coordinator.answers[coordinator.sync(old, 1, instance="b")].error_code is fenced
    assert (
        coordinator.answers[coordinator.join(old, instance="b", protocols=TWO)].error_code is fenced
    )
    commit = coordinator.commit({("t", 0): 1}, member=old, generation=1, instance="b")
    assert coordinator.commit_error(commit) is fenced
    leave = coordinator.answers[coordinator.leave((old, "b"))]
    assert leave.members[0].error_code is fenced


def test_unknown_instance_is_an_unknown_member() -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = static_group(coordinator, "a")
    assert coordinator.heartbeat(member, 1, instance="z") is ErrorCode.unknown_member_id


def test_restarted_leader_skips_the_assignment() -> None:
    coordinator = CoordinatorUnderTest()
    static_group(coordinator, "a", "b")
    answer = coordinator.answers[coordinator.join(instance="a", protocols=TWO)]
    assert answer.leader == answer.member_id
    assert answer.skip_assignment
    assert len(answer.members) == 2


def test_restarted_leader_before_version_9_is_told_of_its_old_self() -> None:
    coordinator = CoordinatorUnderTest()
    old, _ = static_group(coordinator, "a", "b")
    answer = coordinator.answers[coordinator.join(instance="a", protocols=TWO, version=8)]
    assert answer.leader == old
    assert not answer.skip_assignment
    assert answer.members == ()


def test_replacement_is_answered_when_it_is_written() -> None:
    coordinator = CoordinatorUnderTest()
    static_group(coordinator, "a", "b")
    coordinator.writes_succeed = False
    ticket = coordinator.join(instance="b", protocols=TWO)
    assert ticket not in coordinator.answers
    coordinator.commit_next()
    new = coordinator.answers[ticket].member_id
    after = coordinator.successor()
    assert after.heartbeat(new, 1, instance="b") is ErrorCode.none


def test_replacement_that_cannot_be_written_does_not_happen() -> None:
    coordinator = CoordinatorUnderTest()
    _, old = static_group(coordinator, "a", "b")
    coordinator.refuse_writes(ErrorCode.not_enough_replicas)
    ticket = coordinator.join(instance="b", protocols=TWO)
    assert coordinator.answers[ticket].error_code is ErrorCode.coordinator_not_available
    assert coordinator.answers[ticket].member_id == ""
    assert coordinator.heartbeat(old, 1, instance="b") is ErrorCode.none


def test_a_replacement_learns_of_a_rebalance_that_begins_while_it_is_written() -> None:
    coordinator = CoordinatorUnderTest()
    a, _ = static_group(coordinator, "a", "b")
    coordinator.writes_succeed = False
    replacing = coordinator.join(instance="b", protocols=TWO)
    leading = coordinator.join(a, instance="a", protocols=TWO)
    assert leading not in coordinator.answers
    coordinator.write_all()
    new = coordinator.answers[replacing].member_id
    assert coordinator.heartbeat(new, 1, instance="b") is ErrorCode.rebalance_in_progress
    again = coordinator.join(new, instance="b", protocols=TWO)
    for ticket in (leading, again):
        assert coordinator.answers[ticket].generation_id == 2


def test_change_of_the_selected_protocol_rebalances() -> None:
    coordinator = CoordinatorUnderTest()
    static_group(coordinator, "a", "b")
    ticket = coordinator.join(instance="b", protocols=[("sticky", b"meta")])
    assert ticket not in coordinator.answers
    assert coordinator.state() == "PreparingRebalance"


def test_restart_before_the_assignment_rebalances() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.join(instance="a")
    second = coordinator.join(instance="b")
    coordinator.advance(6_000)
    sync = coordinator.sync(coordinator.answers[second].member_id, 1, instance="b")
    ticket = coordinator.join(instance="a")
    assert coordinator.answers[sync].error_code is ErrorCode.rebalance_in_progress
    assert ticket not in coordinator.answers
    assert coordinator.state() == "PreparingRebalance"


def test_second_instance_of_the_same_name_fences_the_parked_first() -> None:
    coordinator = CoordinatorUnderTest()
    first = coordinator.join(instance="a")
    second = coordinator.join(instance="a")
    assert coordinator.answers[first].error_code is ErrorCode.fenced_instance_id
    assert coordinator.answers[first].member_id == member_id(1, "a")
    coordinator.advance(6_000)
    assert coordinator.answers[second].error_code is ErrorCode.none


def test_second_instance_fences_a_parked_sync() -> None:
    coordinator = CoordinatorUnderTest()
    leader = coordinator.join(instance="a")
    other = coordinator.join(instance="b")
    coordinator.advance(6_000)
    sync = coordinator.sync(coordinator.answers[other].member_id, 1, instance="b")
    coordinator.join(instance="b")
    assert coordinator.answers[sync].error_code is ErrorCode.fenced_instance_id
    assert leader in coordinator.answers


def test_static_member_stays_through_a_rebalance_that_it_misses() -> None:
    coordinator = CoordinatorUnderTest()
    a, b = static_group(coordinator, "a", "b")
    ticket = coordinator.join(a, instance="a", protocols=TWO)
    for _ in range(12):
        coordinator.advance(5_000)
        coordinator.heartbeat(b, 1, instance="b")
    answer = coordinator.answers[ticket]
    assert answer.generation_id == 2
    assert {member.group_instance_id for member in answer.members} == {"a", "b"}


def test_nobody_rejoins_but_static_members_are_left() -> None:
    """The rebalance is delayed until the sessions of the silent members expire."""
    coordinator = CoordinatorUnderTest()
    static_group(coordinator, "a", "b")
    _, ticket = coordinator.enter(protocols=TWO, session_ms=SESSION_MS)
    coordinator.leave(member_id(3))
    assert coordinator.answers[ticket].error_code is ErrorCode.unknown_member_id
    coordinator.advance(SESSION_MS)
    assert coordinator.state() == "Empty"


@pytest.mark.parametrize("by_name", [True, False])
def test_static_member_is_removed_by_name_or_id(by_name: bool) -> None:
    coordinator = CoordinatorUnderTest()
    _, b = static_group(coordinator, "a", "b")
    answer = coordinator.answers[coordinator.leave(("" if by_name else b, "b"))]
    assert answer.members[0].error_code is ErrorCode.none
    assert coordinator.state() == "PreparingRebalance"
    assert coordinator.heartbeat(b, 1, instance="b") is ErrorCode.unknown_member_id


def test_removal_by_an_unknown_name() -> None:
    coordinator = CoordinatorUnderTest()
    static_group(coordinator, "a")
    (member,) = coordinator.answers[coordinator.leave(("", "z"))].members
    assert (member.error_code, member.group_instance_id) == (ErrorCode.unknown_member_id, "z")
    assert coordinator.state() == "Stable"


def test_static_members_survive_a_failover() -> None:
    coordinator = CoordinatorUnderTest()
    _, old = static_group(coordinator, "a", "b")
    after = coordinator.successor()
    answer = after.answers[after.join(instance="b", protocols=[("range", b"meta")])]
    assert answer.error_code is ErrorCode.none
    assert answer.generation_id == 1
    assert after.heartbeat(old, 1, instance="b") is ErrorCode.fenced_instance_id
