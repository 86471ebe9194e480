"""OffsetCommit, OffsetFetch and OffsetDelete."""

from typing import Any
from uuid import UUID

import pytest
from tests.unit.coordination.group_client import GROUP, CoordinatorUnderTest, subscription

from tidelog.config.group_settings import GroupSettings
from tidelog.coordination.records import OffsetCommitKey, OffsetCommitValue
from tidelog.coordination.runtime.decision import ProducerIdAndEpoch, RecordOrigin
from tidelog.model.errors import ErrorCode

# -- OffsetCommit ----------------------------------------------------------------------------------


def test_commit_is_answered_and_seen_when_it_is_written() -> None:
    coordinator = CoordinatorUnderTest(writes_succeed=False)
    ticket = coordinator.commit({("t", 0): 5, ("t", 1): 6})
    assert ticket not in coordinator.answers
    coordinator.commit_next()
    assert coordinator.commit_error(ticket) is ErrorCode.none
    assert coordinator.committed() == {("t", 0): 5, ("t", 1): 6}


def test_commit_without_members_makes_a_simple_group() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 5})
    described = coordinator.describe()
    assert (described.group_state, described.protocol_type) == ("Empty", "")
    assert coordinator.list_groups() == [GROUP]


def test_record_of_a_commit() -> None:
    coordinator = CoordinatorUnderTest()
    topic_id = UUID(int=9)
    coordinator.commit({("t", 2): 5}, metadata="note", topic_id=topic_id)
    ((key, value),) = coordinator.written_offsets()
    assert (key.group, key.topic, key.partition) == (GROUP, "t", 2)
    assert value is not None
    assert (value.offset, value.leader_epoch, value.metadata) == (5, 3, "note")
    assert (value.commit_timestamp, value.topic_id) == (coordinator.now, topic_id)


def test_null_metadata_is_stored_as_nothing() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 5}, metadata=None)
    (group,) = coordinator.answers[coordinator.fetch(("t", 0))].groups
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
    coordinator = CoordinatorUnderTest()
    coordinator.refuse_writes(failure)
    ticket = coordinator.commit({("t", 0): 5})
    assert coordinator.commit_error(ticket) is error
    assert coordinator.committed() == {}
    assert coordinator.list_groups() == []


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
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group()
    ticket = coordinator.commit({("t", 0): 5}, **{"member": member, **about})
    assert coordinator.commit_error(ticket) is error


@pytest.mark.parametrize(
    ("version", "error"), [(9, ErrorCode.group_id_not_found), (8, ErrorCode.illegal_generation)]
)
def test_member_of_an_unknown_group(version: int, error: ErrorCode) -> None:
    coordinator = CoordinatorUnderTest()
    ticket = coordinator.commit({("t", 0): 5}, member="m", generation=1, version=version)
    assert coordinator.commit_error(ticket) is error


def test_commit_of_an_old_generation_during_a_rebalance_is_accepted() -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = coordinator.stable_group(2)
    coordinator.join(leader)
    assert coordinator.state() == "PreparingRebalance"
    ticket = coordinator.commit({("t", 0): 5}, member=follower, generation=1)
    assert coordinator.commit_error(ticket) is ErrorCode.none


def test_commit_before_the_assignment_is_refused() -> None:
    coordinator = CoordinatorUnderTest()
    member, _ = coordinator.enter()
    coordinator.advance(3_000)
    ticket = coordinator.commit({("t", 0): 5}, member=member, generation=1)
    assert coordinator.commit_error(ticket) is ErrorCode.rebalance_in_progress


def test_commit_after_the_group_has_emptied() -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group()
    coordinator.leave(member)
    as_member = coordinator.commit({("t", 0): 5}, member=member, generation=1)
    assert coordinator.commit_error(as_member) is ErrorCode.unknown_member_id
    as_nobody = coordinator.commit({("t", 0): 5})
    assert coordinator.commit_error(as_nobody) is ErrorCode.none


def test_metadata_has_a_limit_in_utf16_units() -> None:
    coordinator = CoordinatorUnderTest(GroupSettings(offset_metadata_max_bytes=4))
    fits = coordinator.commit({("t", 0): 1}, metadata="\U0001f600\U0001f600")
    too_large = coordinator.commit({("t", 0): 2}, metadata="\U0001f600\U0001f600x")
    assert coordinator.commit_error(fits) is ErrorCode.none
    assert coordinator.commit_error(too_large) is ErrorCode.offset_metadata_too_large
    assert coordinator.committed() == {("t", 0): 1}


def test_group_exists_from_its_first_commit_on_whatever_comes_of_it() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 2}, metadata="x" * 4_097)
    ticket = coordinator.commit({("t", 0): 5}, member="x", generation=3)
    assert coordinator.commit_error(ticket) is ErrorCode.unknown_member_id


def test_empty_group_id_may_commit() -> None:
    coordinator = CoordinatorUnderTest()
    assert coordinator.commit_error(coordinator.commit({("t", 0): 5}, group="")) is ErrorCode.none
    assert coordinator.committed("") == {("t", 0): 5}


def test_commit_of_nothing() -> None:
    coordinator = CoordinatorUnderTest(writes_succeed=False)
    assert coordinator.answers[coordinator.commit({})].topics == ()
    assert coordinator.unwritten == []


# -- OffsetFetch -----------------------------------------------------------------------------------


def test_fetch_of_what_was_never_committed() -> None:
    coordinator = CoordinatorUnderTest()
    (group,) = coordinator.answers[coordinator.fetch(("t", 0))].groups
    (partition,) = group.topics[0].partitions
    assert group.error_code is ErrorCode.none
    assert (partition.committed_offset, partition.committed_leader_epoch) == (-1, -1)
    assert (partition.metadata, partition.error_code) == ("", ErrorCode.none)


def test_fetch_of_all_is_in_order() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("b", 1): 1, ("a", 10): 2, ("b", 0): 3, ("a", 9): 4})
    assert list(coordinator.committed()) == [("a", 9), ("a", 10), ("b", 0), ("b", 1)]


def test_fetch_by_another_id_of_the_same_name_finds_nothing() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 5}, topic_id=UUID(int=1))

    def found(topic_id: UUID | None) -> int:
        (group,) = coordinator.answers[coordinator.fetch(("t", 0), topic_id=topic_id)].groups
        offset: int = group.topics[0].partitions[0].committed_offset
        return offset

    assert found(UUID(int=1)) == 5
    assert found(None) == 5
    assert found(UUID(int=2)) == -1


@pytest.mark.parametrize("require_stable", [False, True])
def test_f68_a_fetch_is_answered_when_the_offsets_in_it_are_committed(
    require_stable: bool,
) -> None:
    coordinator = CoordinatorUnderTest(writes_succeed=False)
    coordinator.commit({("t", 0): 5})
    ticket = coordinator.fetch(("t", 0), require_stable=require_stable)
    coordinator.commit({("t", 0): 6})
    assert ticket not in coordinator.answers
    coordinator.commit_next()
    (group,) = coordinator.answers[ticket].groups
    assert group.topics[0].partitions[0].committed_offset == 5


def test_f68_a_fetch_after_a_failover_waits_for_the_commit_of_what_was_loaded() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 5})
    after = coordinator.successor()
    after.partition.high_watermark = 0
    ticket = after.fetch(("t", 0))
    assert ticket not in after.answers
    after.partition.high_watermark = 1
    after.carry_out(after.shard.committed(after.at))
    assert after.answers[ticket].groups[0].topics[0].partitions[0].committed_offset == 5


def test_fetch_does_not_wait_for_ever() -> None:
    coordinator = CoordinatorUnderTest(writes_succeed=False)
    coordinator.commit({("t", 0): 5})
    early = coordinator.fetch(("t", 0))
    coordinator.advance(5_000)
    late = coordinator.fetch(("t", 0), require_stable=True)
    coordinator.advance(5_000)
    for ticket in (early, late):
        (group,) = coordinator.answers[ticket].groups
        assert (group.error_code, group.topics) == (ErrorCode.not_coordinator, ())


def test_f76_offsets_of_an_open_transaction_are_unstable_and_not_seen() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 5})
    producer = ProducerIdAndEpoch(7, 0)

    def pend(offset: int) -> None:
        value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=0)
        key = OffsetCommitKey(GROUP, "t", 0)
        coordinator.machine.replay((key, value), RecordOrigin(9, producer))

    def fetched(*, require_stable: bool) -> tuple[ErrorCode, int]:
        ticket = coordinator.fetch(("t", 0), require_stable=require_stable)
        (found,) = coordinator.answers[ticket].groups[0].topics[0].partitions
        return found.error_code, found.committed_offset

    pend(6)
    assert fetched(require_stable=True) == (ErrorCode.unstable_offset_commit, -1)
    assert fetched(require_stable=False) == (ErrorCode.none, 5)
    coordinator.machine.transaction_ended(producer, committed=False)
    assert fetched(require_stable=True) == (ErrorCode.none, 5)
    pend(7)
    coordinator.machine.transaction_ended(producer, committed=True)
    assert fetched(require_stable=True) == (ErrorCode.none, 7)


# -- OffsetDelete ----------------------------------------------------------------------------------


def deletion_errors(coordinator: CoordinatorUnderTest, ticket: int) -> list[ErrorCode]:
    return [topic.partitions[0].error_code for topic in coordinator.answers[ticket].topics]


def test_offsets_of_an_empty_group_are_deleted() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 5, ("u", 0): 6})
    ticket = coordinator.delete_offsets(("t", 0), ("nowhere", 3))
    assert coordinator.answers[ticket].error_code is ErrorCode.none
    assert deletion_errors(coordinator, ticket) == [ErrorCode.none, ErrorCode.none]
    assert coordinator.committed() == {("u", 0): 6}
    *_, (key, value) = coordinator.written_offsets()
    assert (key.topic, value) == ("t", None)


def test_topic_that_is_read_keeps_its_offsets() -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group(protocols=[("range", subscription("t"))])
    coordinator.commit({("t", 0): 5, ("u", 0): 6}, member=member, generation=1)
    ticket = coordinator.delete_offsets(("t", 0), ("u", 0))
    assert deletion_errors(coordinator, ticket) == [
        ErrorCode.group_subscribed_to_topic,
        ErrorCode.none,
    ]
    assert coordinator.committed() == {("t", 0): 5}


def test_group_of_unknown_subscriptions_keeps_all() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.stable_group(protocols=[("range", b"not a subscription")])
    ticket = coordinator.delete_offsets(("t", 0))
    assert deletion_errors(coordinator, ticket) == [ErrorCode.group_subscribed_to_topic]


@pytest.mark.parametrize(
    ("group", "error"),
    [
        ("", ErrorCode.invalid_group_id),
        ("unknown", ErrorCode.group_id_not_found),
        (GROUP, ErrorCode.non_empty_group),
    ],
)
def test_deletion_of_offsets_is_checked(group: str, error: ErrorCode) -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.stable_group(protocol_type="connect")
    assert (
        coordinator.answers[coordinator.delete_offsets(("t", 0), group=group)].error_code is error
    )


def test_deletion_reaches_a_commit_in_flight() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("u", 0): 1})
    coordinator.writes_succeed = False
    coordinator.commit({("t", 0): 5})
    ticket = coordinator.delete_offsets(("t", 0))
    coordinator.write_all()
    assert deletion_errors(coordinator, ticket) == [ErrorCode.none]
    assert coordinator.committed() == {("u", 0): 1}


def test_deletion_of_offsets_that_cannot_be_written() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 5})
    coordinator.refuse_writes(ErrorCode.not_enough_replicas)
    ticket = coordinator.delete_offsets(("t", 0))
    assert coordinator.answers[ticket].error_code is ErrorCode.coordinator_not_available
    assert coordinator.committed() == {("t", 0): 5}
