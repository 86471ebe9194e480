"""SyncGroup and Heartbeat."""

from typing import Any

import pytest
from tests.unit.coordination.group_client import GROUP, CoordinatorUnderTest

from tidelog.model.errors import ErrorCode


def two_joined(coordinator: CoordinatorUnderTest) -> tuple[str, str]:
    """A leader and a follower of generation 1, before the assignment."""
    members = coordinator.enter()[0], coordinator.enter()[0]
    coordinator.advance(6_000)
    return members


def test_assignment_reaches_everyone_when_it_is_written() -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = two_joined(coordinator)
    coordinator.writes_succeed = False
    waiting = coordinator.sync(follower, 1)
    leading = coordinator.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert waiting not in coordinator.answers
    assert leading not in coordinator.answers
    coordinator.commit_next()
    assert coordinator.answers[leading].assignment == b"L"
    assert coordinator.answers[waiting].assignment == b"F"
    assert coordinator.answers[waiting].protocol_type == "consumer"
    assert coordinator.answers[waiting].protocol_name == "range"
    assert coordinator.state() == "Stable"


def test_written_group_has_members_and_assignment() -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = two_joined(coordinator)
    coordinator.sync(leader, 1, {leader: b"L", "stranger": b"S"})
    *_, value = coordinator.written_groups()
    assert value is not None
    assert (value.generation, value.leader, value.protocol) == (1, leader, "range")
    assert [(m.member_id, m.assignment) for m in value.members] == [(leader, b"L"), (follower, b"")]
    first = value.members[0]
    assert (first.session_timeout, first.rebalance_timeout) == (10_000, 60_000)
    assert (first.client_id, first.client_host) == ("client", "/127.0.0.1")
    assert first.subscription == b"meta"


def test_member_left_out_gets_nothing() -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = two_joined(coordinator)
    waiting = coordinator.sync(follower, 1)
    coordinator.sync(leader, 1, {leader: b"L"})
    assert coordinator.answers[waiting].error_code is ErrorCode.none
    assert coordinator.answers[waiting].assignment == b""


def test_late_sync_of_a_stable_group_is_answered_at_once() -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = two_joined(coordinator)
    coordinator.sync(leader, 1, {leader: b"L", follower: b"F"})
    assert coordinator.answers[coordinator.sync(follower, 1)].assignment == b"F"
    assert coordinator.answers[coordinator.sync(leader, 1)].assignment == b"L"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"group": ""}, ErrorCode.invalid_group_id),
        ({"group": "unknown"}, ErrorCode.unknown_member_id),
        ({"member": "nobody"}, ErrorCode.unknown_member_id),
        ({"generation": 0}, ErrorCode.illegal_generation),
        ({"generation": 2}, ErrorCode.illegal_generation),
        ({"protocol_type": "connect"}, ErrorCode.inconsistent_group_protocol),
        ({"protocol_name": "sticky"}, ErrorCode.inconsistent_group_protocol),
        ({"protocol_type": None, "protocol_name": None}, ErrorCode.none),
    ],
)
def test_sync_is_checked(change: dict[str, Any], error: ErrorCode) -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group()
    about: dict[str, Any] = {"member": member, "generation": 1, **change}
    answer = coordinator.answers[coordinator.sync(**about)]
    assert answer.error_code is error
    if error is not ErrorCode.none:
        assert (answer.protocol_type, answer.protocol_name) == (None, None)
        assert answer.assignment == b""


def test_sync_during_a_rebalance() -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = coordinator.stable_group(2)
    coordinator.join(leader)
    answer = coordinator.answers[coordinator.sync(follower, 1)]
    assert answer.error_code is ErrorCode.rebalance_in_progress


def test_only_the_latest_of_two_parked_syncs_stays() -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = two_joined(coordinator)
    first = coordinator.sync(follower, 1)
    second = coordinator.sync(follower, 1)
    assert coordinator.answers[first].error_code is ErrorCode.rebalance_in_progress
    coordinator.sync(leader, 1, {follower: b"F"})
    assert coordinator.answers[second].assignment == b"F"


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ErrorCode.not_enough_replicas, ErrorCode.coordinator_not_available),
        (ErrorCode.unknown_topic_or_partition, ErrorCode.coordinator_not_available),
        (ErrorCode.request_timed_out, ErrorCode.coordinator_not_available),
        (ErrorCode.not_leader_or_follower, ErrorCode.not_coordinator),
        (ErrorCode.kafka_storage_error, ErrorCode.not_coordinator),
        (ErrorCode.message_too_large, ErrorCode.unknown_server_error),
        (ErrorCode.record_list_too_large, ErrorCode.unknown_server_error),
        (ErrorCode.invalid_fetch_size, ErrorCode.unknown_server_error),
        (ErrorCode.corrupt_message, ErrorCode.corrupt_message),
    ],
)
def test_assignment_that_cannot_be_written(failure: ErrorCode, error: ErrorCode) -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = two_joined(coordinator)
    coordinator.writes_succeed = False
    waiting = coordinator.sync(follower, 1)
    coordinator.refuse_writes(failure)
    leading = coordinator.sync(leader, 1, {leader: b"L", follower: b"F"})
    for ticket in (waiting, leading):
        assert coordinator.answers[ticket].error_code is error
        assert coordinator.answers[ticket].assignment == b""
    assert coordinator.state() == "PreparingRebalance"


@pytest.mark.parametrize("outcome", [ErrorCode.none, ErrorCode.not_enough_replicas_after_append])
def test_rebalance_overtakes_the_write_of_an_assignment(outcome: ErrorCode) -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = two_joined(coordinator)
    coordinator.writes_succeed = False
    leading = coordinator.sync(leader, 1, {leader: b"L", follower: b"F"})
    coordinator.join(follower, protocols=[("range", b"changed")])
    assert coordinator.answers[leading].error_code is ErrorCode.rebalance_in_progress
    if outcome is not ErrorCode.none:
        coordinator.fail_to_commit(outcome)
    coordinator.write_all()
    assert coordinator.state() == "PreparingRebalance"
    assert all(member.member_assignment == b"" for member in coordinator.describe().members)


def test_of_two_assignments_for_one_generation_the_first_counts() -> None:
    coordinator = CoordinatorUnderTest()
    leader, _ = two_joined(coordinator)
    coordinator.writes_succeed = False
    first = coordinator.sync(leader, 1, {leader: b"1"})
    second = coordinator.sync(leader, 1, {leader: b"2"})
    assert coordinator.answers[first].error_code is ErrorCode.rebalance_in_progress
    assert len(coordinator.unwritten) == 1
    coordinator.write_all()
    assert coordinator.answers[second].assignment == b"1"
    assert coordinator.state() == "Stable"


# -- Heartbeat -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("group", "member", "generation", "error"),
    [
        (GROUP, None, 1, ErrorCode.none),
        ("", None, 1, ErrorCode.invalid_group_id),
        ("unknown", None, 1, ErrorCode.unknown_member_id),
        (GROUP, "nobody", 1, ErrorCode.unknown_member_id),
        (GROUP, None, 0, ErrorCode.illegal_generation),
        (GROUP, None, 2, ErrorCode.illegal_generation),
    ],
)
def test_heartbeat_is_checked(
    group: str, member: str | None, generation: int, error: ErrorCode
) -> None:
    coordinator = CoordinatorUnderTest()
    (known,) = coordinator.stable_group()
    assert coordinator.heartbeat(member or known, generation, group=group) is error


def test_heartbeat_before_the_assignment_is_fine() -> None:
    coordinator = CoordinatorUnderTest()
    leader, _ = two_joined(coordinator)
    assert coordinator.heartbeat(leader, 1) is ErrorCode.none
