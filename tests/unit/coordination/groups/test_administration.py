"""ListGroups, DescribeGroups and DeleteGroups."""

import pytest
from tests.unit.coordination.group_client import GROUP, CoordinatorUnderTest

from tidelog.model.errors import ErrorCode


def test_groups_are_listed_by_state_and_type() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.stable_group(group="stable")
    coordinator.commit({("t", 0): 1}, group="simple")
    assert coordinator.list_groups() == ["stable", "simple"]
    assert coordinator.list_groups(states=["Stable"]) == ["stable"]
    assert coordinator.list_groups(states=["eMPTY", "nonsense"]) == ["simple"]
    assert coordinator.list_groups(states=["nonsense"]) == []
    assert coordinator.list_groups(types=["Classic"]) == ["stable", "simple"]
    assert coordinator.list_groups(types=["consumer"]) == []


def test_states_have_kafkas_names() -> None:
    coordinator = CoordinatorUnderTest()
    assert coordinator.state() == "Dead"
    required = coordinator.answers[coordinator.join()]
    assert coordinator.state() == "Empty"
    coordinator.join(required.member_id)
    assert coordinator.state() == "PreparingRebalance"
    coordinator.advance(3_000)
    assert coordinator.state() == "CompletingRebalance"
    coordinator.sync(required.member_id, 1)
    assert coordinator.state() == "Stable"


def test_stable_group_is_described_in_full() -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group()
    group = coordinator.describe()
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (described,) = group.members
    assert described.member_id == member
    assert described.member_metadata == b"meta"
    assert described.member_assignment == f"to {member}".encode()


def test_group_in_rebalance_is_described_without_metadata() -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group()
    coordinator.join()
    coordinator.join(member)
    group = coordinator.describe()
    assert (group.protocol_type, group.protocol_data) == ("consumer", "")
    assert group.members[0].member_metadata == b""


@pytest.mark.parametrize(
    ("version", "error", "message"),
    [
        (6, ErrorCode.group_id_not_found, "Group group not found."),
        (5, ErrorCode.none, None),
    ],
)
def test_unknown_group_is_dead(version: int, error: ErrorCode, message: str | None) -> None:
    group = CoordinatorUnderTest().describe(GROUP, version)
    assert (group.group_state, group.error_code, group.error_message) == ("Dead", error, message)


# -- DeleteGroups ----------------------------------------------------------------------------------


def deletion(coordinator: CoordinatorUnderTest, ticket: int) -> dict[str, ErrorCode]:
    return {result.group_id: result.error_code for result in coordinator.answers[ticket].results}


def test_empty_groups_are_deleted_with_their_offsets() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 1, ("t", 1): 2}, group="simple")
    (member,) = coordinator.stable_group(group="left")
    coordinator.leave(member, group="left")
    coordinator.stable_group(group="used")
    ticket = coordinator.delete_groups("simple", "left", "used", "unknown")
    assert deletion(coordinator, ticket) == {
        "simple": ErrorCode.none,
        "left": ErrorCode.none,
        "used": ErrorCode.non_empty_group,
        "unknown": ErrorCode.group_id_not_found,
    }
    assert coordinator.list_groups() == ["used"]
    assert coordinator.committed("simple") == {}
    after = coordinator.successor()
    assert after.list_groups() == ["used"]
    assert after.committed("simple") == {}


def test_deletion_that_cannot_be_written_does_not_happen() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 1})
    coordinator.refuse_writes(ErrorCode.not_enough_replicas)
    ticket = coordinator.delete_groups(GROUP)
    assert deletion(coordinator, ticket) == {GROUP: ErrorCode.coordinator_not_available}
    assert coordinator.list_groups() == [GROUP]
    assert coordinator.committed() == {("t", 0): 1}


def test_group_made_anew_while_it_is_deleted_stays() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 1})
    coordinator.writes_succeed = False
    coordinator.delete_groups(GROUP)
    coordinator.join(instance="one")
    coordinator.write_all()
    assert coordinator.state() == "PreparingRebalance"
    assert coordinator.committed() == {}


def test_deletion_reaches_commits_in_flight() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 1})
    coordinator.writes_succeed = False
    coordinator.commit({("t", 1): 2})
    coordinator.delete_groups(GROUP)
    coordinator.write_all()
    # The commit was written first, and then deleted with its group.
    for current in (coordinator, coordinator.successor()):
        assert current.committed() == {}
        assert current.list_groups() == []


def test_deletion_that_outlasts_the_commit_timeout_still_happens() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 1})
    coordinator.writes_succeed = False
    ticket = coordinator.delete_groups(GROUP)
    coordinator.advance(5_000)
    assert deletion(coordinator, ticket) == {GROUP: ErrorCode.coordinator_not_available}
    coordinator.commit_next()
    assert coordinator.list_groups() == []
    assert coordinator.committed() == {}
