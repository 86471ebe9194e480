"""JoinGroup: who may enter, under which id, and what it is told."""

from typing import Any

import pytest
from tests.unit.coordination.group_client import GROUP, SESSION_MS, Desk, member_id

from tidelog.config.group_settings import GroupSettings
from tidelog.model.errors import ErrorCode


def test_dynamic_member_is_given_an_id_first() -> None:
    desk = Desk()
    answer = desk.answers[desk.join()]
    assert answer.error_code is ErrorCode.member_id_required
    assert answer.member_id == member_id(1)
    assert desk.state() == "Empty"


def test_before_version_4_the_first_join_counts() -> None:
    desk = Desk()
    ticket = desk.join(version=3)
    desk.advance(3_000)
    answer = desk.answers[ticket]
    assert answer.error_code is ErrorCode.none
    assert answer.member_id == answer.leader == member_id(1)
    assert answer.generation_id == 1


def test_static_member_needs_no_second_round() -> None:
    desk = Desk()
    ticket = desk.join(instance="one")
    desk.advance(3_000)
    assert desk.answers[ticket].member_id == member_id(1, "one")
    assert desk.answers[ticket].error_code is ErrorCode.none


def test_leader_alone_learns_of_the_members() -> None:
    desk = Desk()
    first, first_join = desk.enter(protocols=[("range", b"1")])
    second, second_join = desk.enter(protocols=[("range", b"2")])
    desk.advance(6_000)
    leader, follower = desk.answers[first_join], desk.answers[second_join]
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
    desk = Desk()
    answer = desk.answers[desk.join(**about)]
    assert answer.error_code is error
    assert answer.member_id == about.get("member", "")
    assert answer.generation_id == -1


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_session_timeout_within_bounds(session_ms: int) -> None:
    desk = Desk()
    answer = desk.answers[desk.join(session_ms=session_ms)]
    assert answer.error_code is ErrorCode.member_id_required


def test_unknown_member_of_a_known_group() -> None:
    desk = Desk()
    desk.stable_group()
    answer = desk.answers[desk.join("nobody")]
    assert answer.error_code is ErrorCode.unknown_member_id


def test_protocols_must_overlap_and_types_agree() -> None:
    desk = Desk()
    (member,) = desk.stable_group(protocols=[("range", b""), ("sticky", b"")])
    inconsistent = ErrorCode.inconsistent_group_protocol
    assert desk.answers[desk.join(protocols=[("other", b"")])].error_code is inconsistent
    assert desk.answers[desk.join(protocol_type="connect")].error_code is inconsistent
    assert desk.answers[desk.join(member, protocol_type="connect")].error_code is inconsistent
    fitting = desk.answers[desk.join(protocols=[("other", b""), ("sticky", b"")])]
    assert fitting.error_code is ErrorCode.member_id_required


def test_protocol_with_most_votes_among_the_common_ones() -> None:
    desk = Desk()
    _, ticket = desk.enter(protocols=[("a", b""), ("b", b""), ("c", b"")])
    desk.enter(protocols=[("c", b""), ("b", b"")])
    desk.enter(protocols=[("b", b""), ("c", b""), ("a", b"")])
    desk.advance(9_000)
    # a is the favourite of one, but the second does not know it: b has two votes, c has one.
    assert desk.answers[ticket].protocol_name == "b"


def test_pending_member_that_does_not_come_is_forgotten() -> None:
    desk = Desk()
    required = desk.answers[desk.join()]
    desk.advance(SESSION_MS)
    answer = desk.answers[desk.join(required.member_id)]
    assert answer.error_code is ErrorCode.unknown_member_id


def test_follower_that_joins_a_stable_group_again_is_told_the_same() -> None:
    desk = Desk()
    leader, follower = desk.stable_group(2)
    answer = desk.answers[desk.join(follower)]
    assert (answer.generation_id, answer.leader, answer.members) == (1, leader, ())
    assert desk.state() == "Stable"


def test_follower_with_other_metadata_causes_a_rebalance() -> None:
    desk = Desk()
    _, follower = desk.stable_group(2)
    ticket = desk.join(follower, protocols=[("range", b"more topics")])
    assert ticket not in desk.answers
    assert desk.state() == "PreparingRebalance"


def test_leader_causes_a_rebalance_by_joining_again() -> None:
    desk = Desk()
    leader, _ = desk.stable_group(2)
    ticket = desk.join(leader)
    assert ticket not in desk.answers
    assert desk.state() == "PreparingRebalance"


def test_join_repeated_before_the_assignment_is_answered_again() -> None:
    desk = Desk()
    leader, _ = desk.enter()
    follower, _ = desk.enter()
    desk.advance(6_000)
    assert desk.state() == "CompletingRebalance"
    assert len(desk.answers[desk.join(leader)].members) == 2
    assert desk.answers[desk.join(follower)].members == ()
    assert desk.state() == "CompletingRebalance"


def test_join_with_other_metadata_before_the_assignment_rebalances() -> None:
    desk = Desk()
    leader, _ = desk.enter()
    follower, _ = desk.enter()
    desk.advance(6_000)
    sync = desk.sync(follower, 1)
    desk.join(leader, protocols=[("range", b"changed")])
    assert desk.answers[sync].error_code is ErrorCode.rebalance_in_progress
    assert desk.state() == "PreparingRebalance"


def test_only_the_latest_of_two_parked_joins_stays() -> None:
    desk = Desk()
    member, first = desk.enter()
    second = desk.join(member)
    assert desk.answers[first].error_code is ErrorCode.rebalance_in_progress
    desk.advance(3_000)
    assert desk.answers[second].error_code is ErrorCode.none


# -- group.max.size --------------------------------------------------------------------------------


def test_full_group_takes_no_new_member() -> None:
    desk = Desk(GroupSettings(max_size=2))
    members = desk.stable_group(2)
    answer = desk.answers[desk.join()]
    assert answer.error_code is ErrorCode.group_max_size_reached
    assert answer.member_id == ""
    assert desk.answers[desk.join(members[1])].error_code is ErrorCode.none


def test_full_join_phase_keeps_those_who_came_first() -> None:
    desk = Desk(GroupSettings(max_size=1))
    _, first = desk.enter()
    # An id was given out before the group was full; its owner comes too late.
    answer = desk.answers[desk.join()]
    assert answer.error_code is ErrorCode.group_max_size_reached
    desk.advance(3_000)
    assert desk.answers[first].error_code is ErrorCode.none


def test_group_over_a_lowered_limit_rebalances_when_loaded() -> None:
    desk = Desk()
    first, second = desk.stable_group(2)
    after = desk.successor(GroupSettings(max_size=1))
    assert after.state() == "PreparingRebalance"
    kept = after.join(first)
    refused = after.answers[after.join(second)]
    assert refused.error_code is ErrorCode.group_max_size_reached
    after.advance(60_000)
    assert after.answers[kept].error_code is ErrorCode.none


# -- The group's first record ----------------------------------------------------------------------


def test_new_group_is_written_empty() -> None:
    desk = Desk()
    desk.join()
    (value,) = desk.written_groups()
    assert value is not None
    assert (value.generation, value.protocol_type, value.members) == (0, "", ())
    assert desk.successor().state() == "Empty"


def test_group_that_cannot_be_written_does_not_exist() -> None:
    desk = Desk(writes_succeed=False)
    ticket = desk.join(instance="one")
    assert desk.state() == "PreparingRebalance"
    desk.settle(ErrorCode.not_enough_replicas)
    assert desk.answers[ticket].error_code is ErrorCode.coordinator_not_available
    assert desk.describe().error_code is ErrorCode.group_id_not_found
    # Nothing of it is left: a group that is made under its name lives its own life.
    desk.writes_succeed = True
    desk.commit({("t", 0): 1})
    desk.advance(60_000)
    assert desk.state() == "Empty"


def test_group_that_fails_after_a_timeout_answers_who_joined_since() -> None:
    desk = Desk(writes_succeed=False)
    desk.join()
    desk.advance(5_000)
    late = desk.join(instance="one")
    desk.settle(ErrorCode.not_leader_or_follower)
    assert desk.answers[late].error_code is ErrorCode.not_coordinator


def test_member_id_is_given_out_before_the_group_is_written() -> None:
    desk = Desk(writes_succeed=False)
    required = desk.answers[desk.join()]
    desk.settle(ErrorCode.not_leader_or_follower)
    answer = desk.answers[desk.join(required.member_id)]
    assert answer.error_code is ErrorCode.unknown_member_id


def test_host_and_client_are_told_as_kafka_tells_them() -> None:
    desk = Desk()
    desk.stable_group()
    (member,) = desk.describe(GROUP).members
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
