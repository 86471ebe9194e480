"""The join phase: how long it lasts, who is in the next generation, and who leads it."""

import pytest
from tests.unit.coordination.group_client import SESSION_MS, Desk

from tidelog.config.group_settings import GroupSettings
from tidelog.model.errors import ErrorCode

# -- The initial rebalance delay -------------------------------------------------------------------


def test_first_rebalance_waits_for_the_delay() -> None:
    desk = Desk()
    _, ticket = desk.enter()
    desk.advance(2_999)
    assert ticket not in desk.answers
    desk.advance(1)
    assert desk.answers[ticket].generation_id == 1


def test_delay_is_extended_while_members_come() -> None:
    desk = Desk()
    _, first = desk.enter()
    desk.advance(2_999)
    _, second = desk.enter()
    desk.advance(3_000)
    assert first not in desk.answers
    desk.advance(1)
    assert first in desk.answers
    assert second in desk.answers


def test_delay_is_never_extended_beyond_the_rebalance_timeout() -> None:
    desk = Desk()
    _, first = desk.enter(rebalance_ms=7_000)
    for _ in range(6):
        desk.advance(999)
        desk.enter(rebalance_ms=7_000)
    desk.advance(7_000 - 6 * 999 - 1)
    assert first not in desk.answers
    desk.advance(1)
    assert len(desk.answers[first].members) == 7


def test_no_delay_no_wait() -> None:
    desk = Desk(GroupSettings(initial_rebalance_delay_ms=0))
    _, ticket = desk.enter()
    desk.advance(0)
    assert desk.answers[ticket].generation_id == 1


def test_everyone_leaves_during_the_delay() -> None:
    desk = Desk()
    member, ticket = desk.enter()
    desk.leave(member)
    assert desk.answers[ticket].error_code is ErrorCode.unknown_member_id
    assert desk.state() == "PreparingRebalance"
    desk.advance(3_000)
    assert desk.state() == "Empty"


# -- Later rebalances ------------------------------------------------------------------------------


def test_rebalance_ends_as_soon_as_all_have_joined() -> None:
    desk = Desk()
    first, second = desk.stable_group(2)
    third, third_join = desk.enter()
    assert desk.heartbeat(first, 1) is ErrorCode.rebalance_in_progress
    first_join = desk.join(first)
    assert first_join not in desk.answers
    second_join = desk.join(second)
    answers = [desk.answers[ticket] for ticket in (first_join, second_join, third_join)]
    assert [answer.generation_id for answer in answers] == [2, 2, 2]
    assert {answer.leader for answer in answers} == {first}
    assert {member.member_id for member in answers[0].members} == {first, second, third}


def test_pending_member_holds_the_rebalance_up() -> None:
    desk = Desk()
    (first,) = desk.stable_group()
    required = desk.answers[desk.join()]
    ticket = desk.join(first)
    assert ticket not in desk.answers
    desk.join(required.member_id)
    assert len(desk.answers[ticket].members) == 2


def test_pending_member_that_stays_away_holds_it_up_for_its_session() -> None:
    desk = Desk()
    (first,) = desk.stable_group()
    desk.join()
    ticket = desk.join(first)
    desk.advance(SESSION_MS - 1)
    assert ticket not in desk.answers
    desk.advance(1)
    assert len(desk.answers[ticket].members) == 1


def test_member_that_does_not_rejoin_in_time_is_out() -> None:
    desk = Desk()
    first, second = desk.stable_group(2, rebalance_ms=30_000)
    ticket = desk.join(first, rebalance_ms=30_000)
    for _ in range(5):
        desk.advance(5_000)
        assert desk.heartbeat(second, 1) is ErrorCode.rebalance_in_progress
    desk.advance(5_000)
    assert [member.member_id for member in desk.answers[ticket].members] == [first]
    assert desk.heartbeat(second, 1) is ErrorCode.unknown_member_id


def test_longest_rebalance_timeout_counts() -> None:
    desk = Desk()
    first, second = desk.enter(rebalance_ms=10_000)[0], desk.enter(rebalance_ms=40_000)[0]
    desk.advance(6_000)
    desk.sync(first, 1)
    desk.sync(second, 1)
    ticket = desk.join(first, rebalance_ms=10_000)
    for _ in range(7):
        desk.advance(5_000)
        desk.heartbeat(second, 1)
    assert ticket not in desk.answers
    desk.advance(5_000)
    assert ticket in desk.answers


def test_leader_that_does_not_rejoin_is_replaced() -> None:
    desk = Desk()
    leader, follower = desk.stable_group(2)
    _, ticket = desk.enter()
    rejoined = desk.join(follower)
    desk.leave(leader)
    assert desk.answers[rejoined].leader == follower
    assert len(desk.answers[rejoined].members) == 2
    assert desk.answers[ticket].leader == follower


# -- Sessions --------------------------------------------------------------------------------------


def test_silent_member_is_removed_after_its_session() -> None:
    desk = Desk()
    first, second = desk.stable_group(2)
    desk.advance(SESSION_MS - 1)
    assert desk.heartbeat(first, 1) is ErrorCode.none
    desk.advance(1)
    assert desk.state() == "PreparingRebalance"
    assert desk.heartbeat(first, 1) is ErrorCode.rebalance_in_progress
    assert desk.heartbeat(second, 1) is ErrorCode.unknown_member_id


def test_group_whose_members_all_fall_silent_is_empty() -> None:
    desk = Desk()
    desk.stable_group(2)
    desk.advance(SESSION_MS)
    assert desk.state() == "Empty"
    *_, last = desk.written_groups()
    assert last is not None
    assert (last.generation, last.members, last.leader, last.protocol) == (2, (), None, None)
    assert last.protocol_type == "consumer"


def test_parked_join_is_a_sign_of_life() -> None:
    desk = Desk()
    first, second = desk.stable_group(2)
    ticket = desk.join(first)
    for _ in range(5):
        desk.advance(SESSION_MS - 1)
        desk.heartbeat(second, 1)
    assert ticket not in desk.answers
    assert len(desk.describe().members) == 2


def test_parked_first_join_is_bounded() -> None:
    desk = Desk()
    _, second = desk.stable_group(2, rebalance_ms=600_000)
    _, ticket = desk.enter()
    for _ in range(60):
        desk.advance(5_000)
        desk.heartbeat(second, 1)
    assert desk.answers[ticket].error_code is ErrorCode.unknown_member_id
    assert desk.answers[ticket].member_id == ""


def test_commit_is_a_sign_of_life() -> None:
    desk = Desk()
    (member,) = desk.stable_group()
    for offset in range(5):
        desk.advance(SESSION_MS - 1)
        desk.commit({("t", 0): offset}, member=member, generation=1)
    assert desk.state() == "Stable"


# -- The sync phase --------------------------------------------------------------------------------


def test_member_that_never_syncs_is_removed() -> None:
    desk = Desk()
    leader, _ = desk.enter()
    follower, _ = desk.enter()
    desk.advance(6_000)
    desk.sync(leader, 1)
    assert desk.state() == "Stable"
    for _ in range(11):
        desk.advance(5_000)
        assert desk.heartbeat(leader, 1) is ErrorCode.none
        assert desk.heartbeat(follower, 1) is ErrorCode.none
    desk.advance(5_000)
    assert desk.heartbeat(follower, 1) is ErrorCode.unknown_member_id
    assert desk.heartbeat(leader, 1) is ErrorCode.rebalance_in_progress


def test_leader_that_never_assigns_is_removed_and_the_others_are_called() -> None:
    desk = Desk()
    leader, _ = desk.enter()
    follower, _ = desk.enter()
    desk.advance(6_000)
    sync = desk.sync(follower, 1)
    for _ in range(12):
        desk.advance(5_000)
        desk.heartbeat(leader, 1)
    assert desk.answers[sync].error_code is ErrorCode.rebalance_in_progress
    assert desk.heartbeat(leader, 1) is ErrorCode.unknown_member_id
    ticket = desk.join(follower)
    assert desk.answers[ticket].leader == follower


@pytest.mark.parametrize("joins", [1, 2, 5])
def test_generations_count_up(joins: int) -> None:
    desk = Desk()
    (member,) = desk.stable_group()
    for generation in range(1, 1 + joins):
        desk.sync(member, generation)
        ticket = desk.join(member)
    assert desk.answers[ticket].generation_id == 1 + joins
