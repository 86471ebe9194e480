"""JoinGroup: which members may join, their ids, and the answer."""

from typing import Any

import pytest
from tests.unit.coordination.group_client import GROUP, SESSION_MS, CoordinatorUnderTest, member_id

from tidelog.config.group_settings import GroupSettings
from tidelog.model.errors import ErrorCode


def test_dynamic_member_is_given_an_id_first() -> None:
    coordinator = CoordinatorUnderTest()
    answer = coordinator.answers[coordinator.join()]
    assert answer.error_code is ErrorCode.member_id_required
    assert answer.member_id == member_id(1)
    assert coordinator.state() == "Empty"


def test_before_version_4_the_first_join_counts() -> None:
    coordinator = CoordinatorUnderTest()
    ticket = coordinator.join(version=3)
    coordinator.advance(3_000)
    answer = coordinator.answers[ticket]
    assert answer.error_code is ErrorCode.none
    assert answer.member_id == answer.leader == member_id(1)
    assert answer.generation_id == 1


def test_static_member_needs_no_second_round() -> None:
    coordinator = CoordinatorUnderTest()
    ticket = coordinator.join(instance="one")
    coordinator.advance(3_000)
    assert coordinator.answers[ticket].member_id == member_id(1, "one")
    assert coordinator.answers[ticket].error_code is ErrorCode.none


def test_leader_alone_learns_of_the_members() -> None:
    coordinator = CoordinatorUnderTest()
    first, first_join = coordinator.enter(protocols=[("range", b"1")])
    second, second_join = coordinator.enter(protocols=[("range", b"2")])
    coordinator.advance(6_000)
    leader, follower = coordinator.answers[first_join], coordinator.answers[second_join]
    assert leader.leader == follower.leader == first
    assert {(m.member_id, m.metadata) for m in leader.members} == {(first, b"1"), (second, b"2")}
    assert follower.members == ()
    assert leader.protocol_type == follower.protocol_type == "consumer"
    assert leader.protocol_name == follower.protocol_name == "range"
    assert not leader.skip_assignment


@pytest.mark.parametrize(
    ("about", "error"),
    [
        ({"group": ""}, ErrorCode.invalid_group_id),
        ({"session_ms": 5_999}, ErrorCode.invalid_session_timeout),
        ({"session_ms": 1_800_001}, ErrorCode.invalid_session_timeout),
        ({"member": "nobody"}, ErrorCode.unknown_member_id),
        ({"protocols": ()}, ErrorCode.inconsistent_group_protocol),
        ({"protocol_type": ""}, ErrorCode.inconsistent_group_protocol),
    ],
)
def test_refused_at_the_door(about: dict[str, Any], error: ErrorCode) -> None:
    coordinator = CoordinatorUnderTest()
    answer = coordinator.answers[coordinator.join(**about)]
    assert answer.error_code is error
    assert answer.member_id == about.get("member", "")
    assert answer.generation_id == -1


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_session_timeout_within_bounds(session_ms: int) -> None:
    coordinator = CoordinatorUnderTest()
    answer = coordinator.answers[coordinator.join(session_ms=session_ms)]
    assert answer.error_code is ErrorCode.member_id_required


def test_unknown_member_of_a_known_group() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.stable_group()
    answer = coordinator.answers[coordinator.join("nobody")]
    assert answer.error_code is ErrorCode.unknown_member_id


def test_protocols_must_overlap_and_types_agree() -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group(protocols=[("range", b""), ("sticky", b"")])
    inconsistent = ErrorCode.inconsistent_group_protocol
    assert (
        coordinator.answers[coordinator.join(protocols=[("other", b"")])].error_code is inconsistent
    )
    assert coordinator.answers[coordinator.join(protocol_type="connect")].error_code is inconsistent
    assert (
        coordinator.answers[coordinator.join(member, protocol_type="connect")].error_code
        is inconsistent
    )
    fitting = coordinator.answers[coordinator.join(protocols=[("other", b""), ("sticky", b"")])]
    assert fitting.error_code is ErrorCode.member_id_required


def test_protocol_with_most_votes_among_the_common_ones() -> None:
    coordinator = CoordinatorUnderTest()
    _, ticket = coordinator.enter(protocols=[("a", b""), ("b", b""), ("c", b"")])
    coordinator.enter(protocols=[("c", b""), ("b", b"")])
    coordinator.enter(protocols=[("b", b""), ("c", b""), ("a", b"")])
    coordinator.advance(9_000)
    # Not all members support protocol a. Of the other protocols, b has two votes and c one.
    assert coordinator.answers[ticket].protocol_name == "b"


def test_pending_member_that_does_not_come_is_forgotten() -> None:
    coordinator = CoordinatorUnderTest()
    required = coordinator.answers[coordinator.join()]
    coordinator.advance(SESSION_MS)
    answer = coordinator.answers[coordinator.join(required.member_id)]
    assert answer.error_code is ErrorCode.unknown_member_id


def test_follower_that_joins_a_stable_group_again_is_told_the_same() -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = coordinator.stable_group(2)
    answer = coordinator.answers[coordinator.join(follower)]
    assert (answer.generation_id, answer.leader, answer.members) == (1, leader, ())
    assert coordinator.state() == "Stable"


def test_follower_with_other_metadata_causes_a_rebalance() -> None:
    coordinator = CoordinatorUnderTest()
    _, follower = coordinator.stable_group(2)
    ticket = coordinator.join(follower, protocols=[("range", b"more topics")])
    assert ticket not in coordinator.answers
    assert coordinator.state() == "PreparingRebalance"


def test_leader_causes_a_rebalance_by_joining_again() -> None:
    coordinator = CoordinatorUnderTest()
    leader, _ = coordinator.stable_group(2)
    ticket = coordinator.join(leader)
    assert ticket not in coordinator.answers
    assert coordinator.state() == "PreparingRebalance"


def test_join_repeated_before_the_assignment_is_answered_again() -> None:
    coordinator = CoordinatorUnderTest()
    leader, _ = coordinator.enter()
    follower, _ = coordinator.enter()
    coordinator.advance(6_000)
    assert coordinator.state() == "CompletingRebalance"
    assert len(coordinator.answers[coordinator.join(leader)].members) == 2
    assert coordinator.answers[coordinator.join(follower)].members == ()
    assert coordinator.state() == "CompletingRebalance"


def test_join_with_other_metadata_before_the_assignment_rebalances() -> None:
    coordinator = CoordinatorUnderTest()
    leader, _ = coordinator.enter()
    follower, _ = coordinator.enter()
    coordinator.advance(6_000)
    sync = coordinator.sync(follower, 1)
    coordinator.join(leader, protocols=[("range", b"changed")])
    assert coordinator.answers[sync].error_code is ErrorCode.rebalance_in_progress
    assert coordinator.state() == "PreparingRebalance"


def test_only_the_latest_of_two_parked_joins_stays() -> None:
    coordinator = CoordinatorUnderTest()
    member, first = coordinator.enter()
    second = coordinator.join(member)
    assert coordinator.answers[first].error_code is ErrorCode.rebalance_in_progress
    coordinator.advance(3_000)
    assert coordinator.answers[second].error_code is ErrorCode.none


# -- group.max.size --------------------------------------------------------------------------------


def test_full_group_takes_no_new_member() -> None:
    coordinator = CoordinatorUnderTest(GroupSettings(max_size=2))
    members = coordinator.stable_group(2)
    answer = coordinator.answers[coordinator.join()]
    assert answer.error_code is ErrorCode.group_max_size_reached
    assert answer.member_id == ""
    assert coordinator.answers[coordinator.join(members[1])].error_code is ErrorCode.none


def test_full_join_phase_keeps_those_who_came_first() -> None:
    coordinator = CoordinatorUnderTest(GroupSettings(max_size=1))
    _, first = coordinator.enter()
    # This member got its id before the group was full, but joins too late.
    answer = coordinator.answers[coordinator.join()]
    assert answer.error_code is ErrorCode.group_max_size_reached
    coordinator.advance(3_000)
    assert coordinator.answers[first].error_code is ErrorCode.none


def test_group_over_a_lowered_limit_rebalances_when_loaded() -> None:
    coordinator = CoordinatorUnderTest()
    first, second = coordinator.stable_group(2)
    after = coordinator.successor(GroupSettings(max_size=1))
    assert after.state() == "PreparingRebalance"
    kept = after.join(first)
    refused = after.answers[after.join(second)]
    assert refused.error_code is ErrorCode.group_max_size_reached
    after.advance(60_000)
    assert after.answers[kept].error_code is ErrorCode.none


# -- The group's first record ----------------------------------------------------------------------


def test_new_group_is_written_empty() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.join()
    (value,) = coordinator.written_groups()
    assert value is not None
    assert (value.generation, value.protocol_type, value.members) == (0, "", ())
    assert coordinator.successor().state() == "Empty"


def test_group_that_cannot_be_written_does_not_exist() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.refuse_writes(ErrorCode.not_enough_replicas)
    ticket = coordinator.join(instance="one")
    assert coordinator.answers[ticket].error_code is ErrorCode.coordinator_not_available
    assert coordinator.describe().error_code is ErrorCode.group_id_not_found
    # No state is left, so a new group of the same name is independent of the old one.
    coordinator.refuse_writes(ErrorCode.none)
    coordinator.commit({("t", 0): 1})
    coordinator.advance(60_000)
    assert coordinator.state() == "Empty"


def test_members_join_again_if_their_new_group_is_not_committed_in_time() -> None:
    slow = GroupSettings(initial_rebalance_delay_ms=10_000)
    coordinator = CoordinatorUnderTest(slow, writes_succeed=False)
    first = coordinator.join(instance="one")
    coordinator.advance(5_000)
    assert coordinator.answers[first].error_code is ErrorCode.coordinator_not_available
    coordinator.write_all()
    coordinator.writes_succeed = True
    again = coordinator.join(instance="one")
    coordinator.advance(60_000)
    assert coordinator.answers[again].generation_id == 1


def test_member_id_is_given_out_when_the_group_is_written() -> None:
    coordinator = CoordinatorUnderTest(writes_succeed=False)
    ticket = coordinator.join()
    assert ticket not in coordinator.answers
    coordinator.commit_next()
    assert coordinator.answers[ticket].error_code is ErrorCode.member_id_required


def test_host_and_client_are_told_as_kafka_tells_them() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.stable_group()
    (member,) = coordinator.describe(GROUP).members
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
