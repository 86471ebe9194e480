"""LeaveGroup."""

from tests.unit.coordination.group_client import CoordinatorUnderTest

from tidelog.model.errors import ErrorCode


def test_member_leaves_and_the_others_rebalance() -> None:
    coordinator = CoordinatorUnderTest()
    first, second = coordinator.stable_group(2)
    answer = coordinator.answers[coordinator.leave(second)]
    assert answer.error_code is ErrorCode.none
    assert [(m.member_id, m.error_code) for m in answer.members] == [(second, ErrorCode.none)]
    assert coordinator.heartbeat(first, 1) is ErrorCode.rebalance_in_progress
    assert coordinator.heartbeat(second, 1) is ErrorCode.unknown_member_id


def test_last_member_leaves_when_the_empty_group_is_written() -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group()
    coordinator.writes_succeed = False
    ticket = coordinator.leave(member)
    assert ticket not in coordinator.answers
    coordinator.commit_next()
    assert coordinator.answers[ticket].members[0].error_code is ErrorCode.none
    assert coordinator.state() == "Empty"
    assert coordinator.successor().state() == "Empty"


def test_last_leave_that_cannot_be_written() -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group()
    coordinator.refuse_writes(ErrorCode.not_leader_or_follower)
    ticket = coordinator.leave(member)
    assert coordinator.answers[ticket].error_code is ErrorCode.not_coordinator
    assert coordinator.heartbeat(member, 1) is ErrorCode.none, "nothing has happened"


def test_several_leave_at_once() -> None:
    coordinator = CoordinatorUnderTest()
    first, second, third = coordinator.stable_group(3)
    answer = coordinator.answers[coordinator.leave(first, "nobody", third)]
    assert [m.error_code for m in answer.members] == [
        ErrorCode.none,
        ErrorCode.unknown_member_id,
        ErrorCode.none,
    ]
    ticket = coordinator.join(second)
    assert coordinator.answers[ticket].leader == second


def test_leave_of_strangers_changes_nothing() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.stable_group()
    answer = coordinator.answers[coordinator.leave("nobody", "")]
    assert {m.error_code for m in answer.members} == {ErrorCode.unknown_member_id}
    assert coordinator.state() == "Stable"


def test_leave_of_an_unknown_group() -> None:
    coordinator = CoordinatorUnderTest()
    answer = coordinator.answers[coordinator.leave("a", ("b", "i"), group="unknown")]
    assert answer.error_code is ErrorCode.none
    assert [(m.group_instance_id, m.error_code) for m in answer.members] == [
        (None, ErrorCode.unknown_member_id),
        ("i", ErrorCode.unknown_member_id),
    ]


def test_leave_without_a_group() -> None:
    coordinator = CoordinatorUnderTest()
    assert (
        coordinator.answers[coordinator.leave("a", group="")].error_code
        is ErrorCode.invalid_group_id
    )


def test_pending_member_leaves() -> None:
    coordinator = CoordinatorUnderTest()
    (first,) = coordinator.stable_group()
    pending = coordinator.answers[coordinator.join()].member_id
    ticket = coordinator.join(first)
    assert ticket not in coordinator.answers
    assert coordinator.answers[coordinator.leave(pending)].members[0].error_code is ErrorCode.none
    assert len(coordinator.answers[ticket].members) == 1


def test_parked_requests_of_a_leaving_member_are_answered() -> None:
    coordinator = CoordinatorUnderTest()
    first, _ = coordinator.enter()
    second, joining = coordinator.enter()
    coordinator.advance(6_000)
    assert joining in coordinator.answers
    sync = coordinator.sync(second, 1)
    coordinator.leave(second)
    assert coordinator.answers[sync].error_code is ErrorCode.unknown_member_id
    rejoin = coordinator.join(first)
    assert coordinator.answers[rejoin].generation_id == 2
    third = coordinator.join(first, protocols=[("range", b"changed")])
    assert third in coordinator.answers


def test_last_missing_member_leaves_and_the_rebalance_ends() -> None:
    coordinator = CoordinatorUnderTest()
    first, second = coordinator.stable_group(2)
    ticket = coordinator.join(first)
    assert ticket not in coordinator.answers
    coordinator.leave(second)
    assert coordinator.answers[ticket].generation_id == 2
