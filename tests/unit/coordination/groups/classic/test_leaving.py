"""LeaveGroup."""

from tests.unit.coordination.group_client import Desk

from tidelog.model.errors import ErrorCode


def test_member_leaves_and_the_others_rebalance() -> None:
    desk = Desk()
    first, second = desk.stable_group(2)
    answer = desk.answers[desk.leave(second)]
    assert answer.error_code is ErrorCode.none
    assert [(m.member_id, m.error_code) for m in answer.members] == [(second, ErrorCode.none)]
    assert desk.heartbeat(first, 1) is ErrorCode.rebalance_in_progress
    assert desk.heartbeat(second, 1) is ErrorCode.unknown_member_id


def test_last_member_leaves_when_the_empty_group_is_written() -> None:
    desk = Desk()
    (member,) = desk.stable_group()
    desk.writes_succeed = False
    ticket = desk.leave(member)
    assert ticket not in desk.answers
    desk.settle(ErrorCode.none)
    assert desk.answers[ticket].members[0].error_code is ErrorCode.none
    assert desk.state() == "Empty"
    assert desk.successor().state() == "Empty"


def test_last_leave_that_cannot_be_written() -> None:
    desk = Desk()
    (member,) = desk.stable_group()
    desk.writes_succeed = False
    ticket = desk.leave(member)
    desk.settle(ErrorCode.not_leader_or_follower)
    assert desk.answers[ticket].error_code is ErrorCode.not_coordinator
    assert desk.state() == "Empty"


def test_several_leave_at_once() -> None:
    desk = Desk()
    first, second, third = desk.stable_group(3)
    answer = desk.answers[desk.leave(first, "nobody", third)]
    assert [m.error_code for m in answer.members] == [
        ErrorCode.none,
        ErrorCode.unknown_member_id,
        ErrorCode.none,
    ]
    ticket = desk.join(second)
    assert desk.answers[ticket].leader == second


def test_leave_of_strangers_changes_nothing() -> None:
    desk = Desk()
    desk.stable_group()
    answer = desk.answers[desk.leave("nobody", "")]
    assert {m.error_code for m in answer.members} == {ErrorCode.unknown_member_id}
    assert desk.state() == "Stable"


def test_leave_of_an_unknown_group() -> None:
    desk = Desk()
    answer = desk.answers[desk.leave("a", ("b", "i"), group="unknown")]
    assert answer.error_code is ErrorCode.none
    assert [(m.group_instance_id, m.error_code) for m in answer.members] == [
        (None, ErrorCode.unknown_member_id),
        ("i", ErrorCode.unknown_member_id),
    ]


def test_leave_without_a_group() -> None:
    desk = Desk()
    assert desk.answers[desk.leave("a", group="")].error_code is ErrorCode.invalid_group_id


def test_pending_member_leaves() -> None:
    desk = Desk()
    (first,) = desk.stable_group()
    pending = desk.answers[desk.join()].member_id
    ticket = desk.join(first)
    assert ticket not in desk.answers
    assert desk.answers[desk.leave(pending)].members[0].error_code is ErrorCode.none
    assert len(desk.answers[ticket].members) == 1


def test_parked_requests_of_a_leaving_member_are_answered() -> None:
    desk = Desk()
    first, _ = desk.enter()
    second, joining = desk.enter()
    desk.advance(6_000)
    assert joining in desk.answers
    sync = desk.sync(second, 1)
    desk.leave(second)
    assert desk.answers[sync].error_code is ErrorCode.unknown_member_id
    rejoin = desk.join(first)
    assert desk.answers[rejoin].generation_id == 2
    third = desk.join(first, protocols=[("range", b"changed")])
    assert third in desk.answers


def test_last_missing_member_leaves_and_the_rebalance_ends() -> None:
    desk = Desk()
    first, second = desk.stable_group(2)
    ticket = desk.join(first)
    assert ticket not in desk.answers
    desk.leave(second)
    assert desk.answers[ticket].generation_id == 2
