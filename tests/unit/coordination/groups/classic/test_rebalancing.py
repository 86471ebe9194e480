"""The join phase: its duration, the members of the next generation, and their leader."""

import pytest
from tests.unit.coordination.group_client import SESSION_MS, CoordinatorUnderTest

from tidelog.config.group_settings import GroupSettings
from tidelog.model.errors import ErrorCode

# -- The initial rebalance delay -------------------------------------------------------------------


def test_first_rebalance_waits_for_the_delay() -> None:
    coordinator = CoordinatorUnderTest()
    _, ticket = coordinator.enter()
    coordinator.advance(2_999)
    assert ticket not in coordinator.answers
    coordinator.advance(1)
    assert coordinator.answers[ticket].generation_id == 1


def test_delay_is_extended_while_members_come() -> None:
    coordinator = CoordinatorUnderTest()
    _, first = coordinator.enter()
    coordinator.advance(2_999)
    _, second = coordinator.enter()
    coordinator.advance(3_000)
    assert first not in coordinator.answers
    coordinator.advance(1)
    assert first in coordinator.answers
    assert second in coordinator.answers


def test_delay_is_never_extended_beyond_the_rebalance_timeout() -> None:
    coordinator = CoordinatorUnderTest()
    _, first = coordinator.enter(rebalance_ms=7_000)
    for _ in range(6):
        coordinator.advance(999)
        coordinator.enter(rebalance_ms=7_000)
    coordinator.advance(7_000 - 6 * 999 - 1)
    assert first not in coordinator.answers
    coordinator.advance(1)
    assert len(coordinator.answers[first].members) == 7


def test_no_delay_no_wait() -> None:
    coordinator = CoordinatorUnderTest(GroupSettings(initial_rebalance_delay_ms=0))
    _, ticket = coordinator.enter()
    coordinator.advance(0)
    assert coordinator.answers[ticket].generation_id == 1


def test_everyone_leaves_during_the_delay() -> None:
    coordinator = CoordinatorUnderTest()
    member, ticket = coordinator.enter()
    coordinator.leave(member)
    assert coordinator.answers[ticket].error_code is ErrorCode.unknown_member_id
    assert coordinator.state() == "PreparingRebalance"
    coordinator.advance(3_000)
    assert coordinator.state() == "Empty"


# -- Later rebalances ------------------------------------------------------------------------------


def test_rebalance_ends_as_soon_as_all_have_joined() -> None:
    coordinator = CoordinatorUnderTest()
    first, second = coordinator.stable_group(2)
    third, third_join = coordinator.enter()
    assert coordinator.heartbeat(first, 1) is ErrorCode.rebalance_in_progress
    first_join = coordinator.join(first)
    assert first_join not in coordinator.answers
    second_join = coordinator.join(second)
    answers = [coordinator.answers[ticket] for ticket in (first_join, second_join, third_join)]
    assert [answer.generation_id for answer in answers] == [2, 2, 2]
    assert {answer.leader for answer in answers} == {first}
    assert {member.member_id for member in answers[0].members} == {first, second, third}


def test_pending_member_holds_the_rebalance_up() -> None:
    coordinator = CoordinatorUnderTest()
    (first,) = coordinator.stable_group()
    required = coordinator.answers[coordinator.join()]
    ticket = coordinator.join(first)
    assert ticket not in coordinator.answers
    coordinator.join(required.member_id)
    assert len(coordinator.answers[ticket].members) == 2


def test_pending_member_that_stays_away_holds_it_up_for_its_session() -> None:
    coordinator = CoordinatorUnderTest()
    (first,) = coordinator.stable_group()
    coordinator.join()
    ticket = coordinator.join(first)
    coordinator.advance(SESSION_MS - 1)
    assert ticket not in coordinator.answers
    coordinator.advance(1)
    assert len(coordinator.answers[ticket].members) == 1


def test_member_that_does_not_rejoin_in_time_is_out() -> None:
    coordinator = CoordinatorUnderTest()
    first, second = coordinator.stable_group(2, rebalance_ms=30_000)
    ticket = coordinator.join(first, rebalance_ms=30_000)
    for _ in range(5):
        coordinator.advance(5_000)
        assert coordinator.heartbeat(second, 1) is ErrorCode.rebalance_in_progress
    coordinator.advance(5_000)
    assert [member.member_id for member in coordinator.answers[ticket].members] == [first]
    assert coordinator.heartbeat(second, 1) is ErrorCode.unknown_member_id


def test_longest_rebalance_timeout_counts() -> None:
    coordinator = CoordinatorUnderTest()
    first, second = (
        coordinator.enter(rebalance_ms=10_000)[0],
        coordinator.enter(rebalance_ms=40_000)[0],
    )
    coordinator.advance(6_000)
    coordinator.sync(first, 1)
    coordinator.sync(second, 1)
    ticket = coordinator.join(first, rebalance_ms=10_000)
    for _ in range(7):
        coordinator.advance(5_000)
        coordinator.heartbeat(second, 1)
    assert ticket not in coordinator.answers
    coordinator.advance(5_000)
    assert ticket in coordinator.answers


def test_leader_that_does_not_rejoin_is_replaced() -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = coordinator.stable_group(2)
    _, ticket = coordinator.enter()
    rejoined = coordinator.join(follower)
    coordinator.leave(leader)
    assert coordinator.answers[rejoined].leader == follower
    assert len(coordinator.answers[rejoined].members) == 2
    assert coordinator.answers[ticket].leader == follower


# -- Session timeouts ------------------------------------------------------------------------------


def test_silent_member_is_removed_after_its_session() -> None:
    coordinator = CoordinatorUnderTest()
    first, second = coordinator.stable_group(2)
    coordinator.advance(SESSION_MS - 1)
    assert coordinator.heartbeat(first, 1) is ErrorCode.none
    coordinator.advance(1)
    assert coordinator.state() == "PreparingRebalance"
    assert coordinator.heartbeat(first, 1) is ErrorCode.rebalance_in_progress
    assert coordinator.heartbeat(second, 1) is ErrorCode.unknown_member_id


def test_group_whose_members_all_fall_silent_is_empty() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.stable_group(2)
    coordinator.advance(SESSION_MS)
    assert coordinator.state() == "Empty"
    *_, last = coordinator.written_groups()
    assert last is not None
    assert (last.generation, last.members, last.leader, last.protocol) == (2, (), None, None)
    assert last.protocol_type == "consumer"


def test_parked_join_is_a_sign_of_life() -> None:
    coordinator = CoordinatorUnderTest()
    first, second = coordinator.stable_group(2)
    ticket = coordinator.join(first)
    for _ in range(5):
        coordinator.advance(SESSION_MS - 1)
        coordinator.heartbeat(second, 1)
    assert ticket not in coordinator.answers
    assert len(coordinator.describe().members) == 2


def test_parked_first_join_is_bounded() -> None:
    coordinator = CoordinatorUnderTest()
    _, second = coordinator.stable_group(2, rebalance_ms=600_000)
    _, ticket = coordinator.enter()
    for _ in range(60):
        coordinator.advance(5_000)
        coordinator.heartbeat(second, 1)
    assert coordinator.answers[ticket].error_code is ErrorCode.unknown_member_id
    assert coordinator.answers[ticket].member_id == ""


def test_commit_is_a_sign_of_life() -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group()
    for offset in range(5):
        coordinator.advance(SESSION_MS - 1)
        coordinator.commit({("t", 0): offset}, member=member, generation=1)
    assert coordinator.state() == "Stable"


# -- The sync phase --------------------------------------------------------------------------------


def test_member_that_never_syncs_is_removed() -> None:
    coordinator = CoordinatorUnderTest()
    leader, _ = coordinator.enter()
    follower, _ = coordinator.enter()
    coordinator.advance(6_000)
    coordinator.sync(leader, 1)
    assert coordinator.state() == "Stable"
    for _ in range(11):
        coordinator.advance(5_000)
        assert coordinator.heartbeat(leader, 1) is ErrorCode.none
        assert coordinator.heartbeat(follower, 1) is ErrorCode.none
    coordinator.advance(5_000)
    assert coordinator.heartbeat(follower, 1) is ErrorCode.unknown_member_id
    assert coordinator.heartbeat(leader, 1) is ErrorCode.rebalance_in_progress


def test_leader_that_never_assigns_is_removed_and_the_others_are_called() -> None:
    coordinator = CoordinatorUnderTest()
    leader, _ = coordinator.enter()
    follower, _ = coordinator.enter()
    coordinator.advance(6_000)
    sync = coordinator.sync(follower, 1)
    for _ in range(12):
        coordinator.advance(5_000)
        coordinator.heartbeat(leader, 1)
    assert coordinator.answers[sync].error_code is ErrorCode.rebalance_in_progress
    assert coordinator.heartbeat(leader, 1) is ErrorCode.unknown_member_id
    ticket = coordinator.join(follower)
    assert coordinator.answers[ticket].leader == follower


@pytest.mark.parametrize("joins", [1, 2, 5])
def test_generations_count_up(joins: int) -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group()
    for generation in range(1, 1 + joins):
        coordinator.sync(member, generation)
        ticket = coordinator.join(member)
    assert coordinator.answers[ticket].generation_id == 1 + joins
