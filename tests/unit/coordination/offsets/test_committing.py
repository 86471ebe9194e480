"""OffsetCommit, OffsetFetch and OffsetDelete."""

from typing import Any
from uuid import UUID

import pytest
from tests.unit.coordination.group_client import GROUP, Desk, subscription

from tidelog.config.group_settings import GroupSettings
from tidelog.model.errors import ErrorCode

# -- OffsetCommit ----------------------------------------------------------------------------------


def test_commit_is_answered_and_seen_when_it_is_written() -> None:
    desk = Desk(writes_succeed=False)
    ticket = desk.commit({("t", 0): 5, ("t", 1): 6})
    assert ticket not in desk.answers
    assert desk.committed() == {}
    desk.settle(ErrorCode.none)
    assert desk.commit_error(ticket) is ErrorCode.none
    assert desk.committed() == {("t", 0): 5, ("t", 1): 6}


def test_commit_without_members_makes_a_simple_group() -> None:
    desk = Desk()
    desk.commit({("t", 0): 5})
    described = desk.describe()
    assert (described.group_state, described.protocol_type) == ("Empty", "")
    assert desk.list_groups() == [GROUP]


def test_record_of_a_commit() -> None:
    desk = Desk()
    topic_id = UUID(int=9)
    desk.commit({("t", 2): 5}, metadata="note", topic_id=topic_id)
    ((key, value),) = desk.written_offsets()
    assert (key.group, key.topic, key.partition) == (GROUP, "t", 2)
    assert value is not None
    assert (value.offset, value.leader_epoch, value.metadata) == (5, 3, "note")
    assert (value.commit_timestamp, value.topic_id) == (desk.now, topic_id)


def test_null_metadata_is_stored_as_nothing() -> None:
    desk = Desk()
    desk.commit({("t", 0): 5}, metadata=None)
    (group,) = desk.answers[desk.fetch(("t", 0))].groups
    assert group.topics[0].partitions[0].metadata == ""


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (ErrorCode.not_enough_replicas, ErrorCode.coordinator_not_available),
        (ErrorCode.not_leader_or_follower, ErrorCode.not_coordinator),
        (ErrorCode.message_too_large, ErrorCode.unknown_server_error),
    ],
)
def test_commit_that_cannot_be_written(failure: ErrorCode, error: ErrorCode) -> None:
    desk = Desk(writes_succeed=False)
    ticket = desk.commit({("t", 0): 5})
    desk.settle(failure)
    assert desk.commit_error(ticket) is error
    assert desk.committed() == {}
    assert desk.list_groups() == []


@pytest.mark.parametrize(
    ("about", "error"),
    [
        ({"generation": 1}, ErrorCode.none),
        ({"generation": 0}, ErrorCode.illegal_generation),
        ({"generation": 2}, ErrorCode.illegal_generation),
        ({"generation": -1}, ErrorCode.illegal_generation),
        ({"generation": 1, "member": "nobody"}, ErrorCode.unknown_member_id),
        ({"generation": -1, "member": ""}, ErrorCode.unknown_member_id),
        ({"generation": 1, "instance": "none such"}, ErrorCode.unknown_member_id),
    ],
)
def test_commit_to_a_group_with_members_is_checked(about: dict[str, Any], error: ErrorCode) -> None:
    desk = Desk()
    (member,) = desk.stable_group()
    ticket = desk.commit({("t", 0): 5}, **{"member": member, **about})
    assert desk.commit_error(ticket) is error


@pytest.mark.parametrize(
    ("version", "error"), [(9, ErrorCode.group_id_not_found), (8, ErrorCode.illegal_generation)]
)
def test_member_of_an_unknown_group(version: int, error: ErrorCode) -> None:
    desk = Desk()
    ticket = desk.commit({("t", 0): 5}, member="m", generation=1, version=version)
    assert desk.commit_error(ticket) is error


def test_commit_of_an_old_generation_during_a_rebalance_is_accepted() -> None:
    desk = Desk()
    leader, follower = desk.stable_group(2)
    desk.join(leader)
    assert desk.state() == "PreparingRebalance"
    ticket = desk.commit({("t", 0): 5}, member=follower, generation=1)
    assert desk.commit_error(ticket) is ErrorCode.none


def test_commit_before_the_assignment_is_refused() -> None:
    desk = Desk()
    member, _ = desk.enter()
    desk.advance(3_000)
    ticket = desk.commit({("t", 0): 5}, member=member, generation=1)
    assert desk.commit_error(ticket) is ErrorCode.rebalance_in_progress


def test_commit_after_the_group_has_emptied() -> None:
    desk = Desk()
    (member,) = desk.stable_group()
    desk.leave(member)
    as_member = desk.commit({("t", 0): 5}, member=member, generation=1)
    assert desk.commit_error(as_member) is ErrorCode.unknown_member_id
    as_nobody = desk.commit({("t", 0): 5})
    assert desk.commit_error(as_nobody) is ErrorCode.none


def test_metadata_has_a_limit_in_utf16_units() -> None:
    desk = Desk(GroupSettings(offset_metadata_max_bytes=4))
    fits = desk.commit({("t", 0): 1}, metadata="\U0001f600\U0001f600")
    too_large = desk.commit({("t", 0): 2}, metadata="\U0001f600\U0001f600x")
    assert desk.commit_error(fits) is ErrorCode.none
    assert desk.commit_error(too_large) is ErrorCode.offset_metadata_too_large
    assert desk.committed() == {("t", 0): 1}


def test_group_exists_from_its_first_commit_on_whatever_comes_of_it() -> None:
    desk = Desk()
    desk.commit({("t", 0): 2}, metadata="x" * 4_097)
    ticket = desk.commit({("t", 0): 5}, member="x", generation=3)
    assert desk.commit_error(ticket) is ErrorCode.unknown_member_id


def test_empty_group_id_may_commit() -> None:
    desk = Desk()
    assert desk.commit_error(desk.commit({("t", 0): 5}, group="")) is ErrorCode.none
    assert desk.committed("") == {("t", 0): 5}


def test_commit_of_nothing() -> None:
    desk = Desk(writes_succeed=False)
    assert desk.answers[desk.commit({})].topics == ()
    assert desk.unwritten == []


# -- OffsetFetch -----------------------------------------------------------------------------------


def test_fetch_of_what_was_never_committed() -> None:
    desk = Desk()
    (group,) = desk.answers[desk.fetch(("t", 0))].groups
    (partition,) = group.topics[0].partitions
    assert group.error_code is ErrorCode.none
    assert (partition.committed_offset, partition.committed_leader_epoch) == (-1, -1)
    assert (partition.metadata, partition.error_code) == ("", ErrorCode.none)


def test_fetch_of_all_is_in_order() -> None:
    desk = Desk()
    desk.commit({("b", 1): 1, ("a", 10): 2, ("b", 0): 3, ("a", 9): 4})
    assert list(desk.committed()) == [("a", 9), ("a", 10), ("b", 0), ("b", 1)]


def test_fetch_by_another_id_of_the_same_name_finds_nothing() -> None:
    desk = Desk()
    desk.commit({("t", 0): 5}, topic_id=UUID(int=1))

    def found(topic_id: UUID | None) -> int:
        (group,) = desk.answers[desk.fetch(("t", 0), topic_id=topic_id)].groups
        offset: int = group.topics[0].partitions[0].committed_offset
        return offset

    assert found(UUID(int=1)) == 5
    assert found(None) == 5
    assert found(UUID(int=2)) == -1


def test_stable_fetch_waits_for_what_is_in_flight() -> None:
    desk = Desk(writes_succeed=False)
    desk.commit({("t", 0): 5})
    unstable = desk.fetch(("t", 0))
    stable = desk.fetch(("t", 0), require_stable=True)
    assert desk.answers[unstable].groups[0].topics[0].partitions[0].committed_offset == -1
    assert stable not in desk.answers
    desk.commit({("t", 0): 6})
    desk.settle(ErrorCode.none)
    assert desk.answers[stable].groups[0].topics[0].partitions[0].committed_offset == 5


def test_stable_fetch_outlives_a_failed_write() -> None:
    desk = Desk(writes_succeed=False)
    desk.commit({("t", 0): 5})
    desk.commit({("t", 0): 6})
    stable = desk.fetch(("t", 0), require_stable=True)
    desk.settle(ErrorCode.message_too_large, index=1)
    assert stable not in desk.answers
    desk.settle(ErrorCode.none)
    assert desk.answers[stable].groups[0].topics[0].partitions[0].committed_offset == 5


def test_stable_fetch_after_the_only_write_failed() -> None:
    desk = Desk(writes_succeed=False)
    desk.commit({("t", 0): 5})
    stable = desk.fetch(("t", 0), require_stable=True)
    desk.settle(ErrorCode.message_too_large)
    assert desk.answers[stable].groups[0].topics[0].partitions[0].committed_offset == -1


def test_stable_fetch_does_not_wait_for_ever() -> None:
    desk = Desk(writes_succeed=False)
    desk.commit({("t", 0): 5})
    early = desk.fetch(("t", 0), require_stable=True)
    desk.advance(5_000)
    late = desk.fetch(("t", 0), require_stable=True)
    for ticket in (early, late):
        (group,) = desk.answers[ticket].groups
        assert (group.error_code, group.topics) == (ErrorCode.not_coordinator, ())


# -- OffsetDelete ----------------------------------------------------------------------------------


def deletion_errors(desk: Desk, ticket: int) -> list[ErrorCode]:
    return [topic.partitions[0].error_code for topic in desk.answers[ticket].topics]


def test_offsets_of_an_empty_group_are_deleted() -> None:
    desk = Desk()
    desk.commit({("t", 0): 5, ("u", 0): 6})
    ticket = desk.delete_offsets(("t", 0), ("nowhere", 3))
    assert desk.answers[ticket].error_code is ErrorCode.none
    assert deletion_errors(desk, ticket) == [ErrorCode.none, ErrorCode.none]
    assert desk.committed() == {("u", 0): 6}
    *_, (key, value) = desk.written_offsets()
    assert (key.topic, value) == ("t", None)


def test_topic_that_is_read_keeps_its_offsets() -> None:
    desk = Desk()
    (member,) = desk.stable_group(protocols=[("range", subscription("t"))])
    desk.commit({("t", 0): 5, ("u", 0): 6}, member=member, generation=1)
    ticket = desk.delete_offsets(("t", 0), ("u", 0))
    assert deletion_errors(desk, ticket) == [ErrorCode.group_subscribed_to_topic, ErrorCode.none]
    assert desk.committed() == {("t", 0): 5}


def test_group_of_unknown_subscriptions_keeps_all() -> None:
    desk = Desk()
    desk.stable_group(protocols=[("range", b"not a subscription")])
    ticket = desk.delete_offsets(("t", 0))
    assert deletion_errors(desk, ticket) == [ErrorCode.group_subscribed_to_topic]


@pytest.mark.parametrize(
    ("group", "error"),
    [
        ("", ErrorCode.invalid_group_id),
        ("unknown", ErrorCode.group_id_not_found),
        (GROUP, ErrorCode.non_empty_group),
    ],
)
def test_deletion_of_offsets_is_checked(group: str, error: ErrorCode) -> None:
    desk = Desk()
    desk.stable_group(protocol_type="connect")
    assert desk.answers[desk.delete_offsets(("t", 0), group=group)].error_code is error


def test_deletion_reaches_a_commit_in_flight() -> None:
    desk = Desk()
    desk.commit({("u", 0): 1})
    desk.writes_succeed = False
    desk.commit({("t", 0): 5})
    ticket = desk.delete_offsets(("t", 0))
    desk.write_all()
    assert deletion_errors(desk, ticket) == [ErrorCode.none]
    assert desk.committed() == {("u", 0): 1}


def test_deletion_of_offsets_that_cannot_be_written() -> None:
    desk = Desk()
    desk.commit({("t", 0): 5})
    desk.writes_succeed = False
    ticket = desk.delete_offsets(("t", 0))
    desk.settle(ErrorCode.not_enough_replicas)
    assert desk.answers[ticket].error_code is ErrorCode.coordinator_not_available
    assert desk.committed() == {("t", 0): 5}
