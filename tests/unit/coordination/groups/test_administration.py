"""ListGroups, DescribeGroups and DeleteGroups."""

import pytest
from tests.unit.coordination.group_client import GROUP, Desk

from tidelog.model.errors import ErrorCode


def test_groups_are_listed_by_state_and_type() -> None:
    desk = Desk()
    desk.stable_group(group="stable")
    desk.commit({("t", 0): 1}, group="simple")
    assert desk.list_groups() == ["stable", "simple"]
    assert desk.list_groups(states=["Stable"]) == ["stable"]
    assert desk.list_groups(states=["eMPTY", "nonsense"]) == ["simple"]
    assert desk.list_groups(states=["nonsense"]) == []
    assert desk.list_groups(types=["Classic"]) == ["stable", "simple"]
    assert desk.list_groups(types=["consumer"]) == []


def test_states_have_kafkas_names() -> None:
    desk = Desk()
    assert desk.state() == "Dead"
    required = desk.answers[desk.join()]
    assert desk.state() == "Empty"
    desk.join(required.member_id)
    assert desk.state() == "PreparingRebalance"
    desk.advance(3_000)
    assert desk.state() == "CompletingRebalance"
    desk.sync(required.member_id, 1)
    assert desk.state() == "Stable"


def test_stable_group_is_described_in_full() -> None:
    desk = Desk()
    (member,) = desk.stable_group()
    group = desk.describe()
    assert (group.protocol_type, group.protocol_data) == ("consumer", "range")
    (described,) = group.members
    assert described.member_id == member
    assert described.member_metadata == b"meta"
    assert described.member_assignment == f"to {member}".encode()


def test_group_in_rebalance_is_described_without_metadata() -> None:
    desk = Desk()
    (member,) = desk.stable_group()
    desk.join()
    desk.join(member)
    group = desk.describe()
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
    group = Desk().describe(GROUP, version)
    assert (group.group_state, group.error_code, group.error_message) == ("Dead", error, message)


# -- DeleteGroups ----------------------------------------------------------------------------------


def deletion(desk: Desk, ticket: int) -> dict[str, ErrorCode]:
    return {result.group_id: result.error_code for result in desk.answers[ticket].results}


def test_empty_groups_are_deleted_with_their_offsets() -> None:
    desk = Desk()
    desk.commit({("t", 0): 1, ("t", 1): 2}, group="simple")
    (member,) = desk.stable_group(group="left")
    desk.leave(member, group="left")
    desk.stable_group(group="used")
    ticket = desk.delete_groups("simple", "left", "used", "unknown")
    assert deletion(desk, ticket) == {
        "simple": ErrorCode.none,
        "left": ErrorCode.none,
        "used": ErrorCode.non_empty_group,
        "unknown": ErrorCode.group_id_not_found,
    }
    assert desk.list_groups() == ["used"]
    assert desk.committed("simple") == {}
    after = desk.successor()
    assert after.list_groups() == ["used"]
    assert after.committed("simple") == {}


def test_deletion_that_cannot_be_written_is_undone() -> None:
    desk = Desk()
    desk.commit({("t", 0): 1})
    desk.writes_succeed = False
    ticket = desk.delete_groups(GROUP)
    desk.settle(ErrorCode.not_enough_replicas)
    assert deletion(desk, ticket) == {GROUP: ErrorCode.coordinator_not_available}
    assert desk.list_groups() == [GROUP]
    assert desk.committed() == {("t", 0): 1}


def test_group_made_anew_while_it_is_deleted_stays() -> None:
    desk = Desk()
    desk.commit({("t", 0): 1})
    desk.writes_succeed = False
    desk.delete_groups(GROUP)
    desk.join(instance="one")
    desk.write_all()
    assert desk.state() == "PreparingRebalance"
    assert desk.committed() == {}


def test_deletion_reaches_commits_in_flight() -> None:
    desk = Desk()
    desk.commit({("t", 0): 1})
    desk.writes_succeed = False
    desk.commit({("t", 1): 2})
    desk.delete_groups(GROUP)
    desk.write_all()
    # The commit was written first, so it was made and then deleted; the group went with it.
    for coordinator in (desk, desk.successor()):
        assert coordinator.committed() == {}
        assert coordinator.list_groups() == []


def test_deletion_that_outlasts_the_commit_timeout_still_happens() -> None:
    desk = Desk()
    desk.commit({("t", 0): 1})
    desk.writes_succeed = False
    ticket = desk.delete_groups(GROUP)
    desk.advance(5_000)
    assert deletion(desk, ticket) == {GROUP: ErrorCode.coordinator_not_available}
    desk.settle(ErrorCode.none)
    assert desk.list_groups() == []
    assert desk.committed() == {}
