"""A request whose records are too large for the log is refused and changes no state (F61)."""

import pytest
from tests.unit.coordination.group_client import GROUP, LARGEST_BATCH, CoordinatorUnderTest

from tidelog.coordination.runtime.sizes import MAX_RECORDS
from tidelog.model.errors import ErrorCode

TOO_MUCH = bytes(LARGEST_BATCH + 1)
HALF = bytes(LARGEST_BATCH // 2 + 1)
REFUSED = ErrorCode.unknown_server_error
"""The error that Kafka sends to group members if the log answers MESSAGE_TOO_LARGE."""


def is_as_written(coordinator: CoordinatorUnderTest) -> bool:
    """Whether a new coordinator that loads the log has the same state as this one."""
    other = coordinator.successor()
    return (
        other.list_groups() == coordinator.list_groups()
        and other.committed() == coordinator.committed()
        and len(other.describe().members) == len(coordinator.describe().members)
    )


@pytest.mark.parametrize("version", [3, 4, 9])
@pytest.mark.parametrize("instance", [None, "one"])
def test_f61_a_member_whose_metadata_fits_no_batch_does_not_join(
    version: int, instance: str | None
) -> None:
    coordinator = CoordinatorUnderTest()
    ticket = coordinator.join(version=version, instance=instance, protocols=[("range", TOO_MUCH)])
    assert coordinator.answers[ticket].error_code is REFUSED
    assert (coordinator.list_groups(), coordinator.log) == ([], [])


def test_f61_protocols_that_only_fit_apart_are_refused() -> None:
    coordinator = CoordinatorUnderTest()
    ticket = coordinator.join(protocols=[("range", HALF), ("sticky", HALF)])
    assert coordinator.answers[ticket].error_code is REFUSED
    assert coordinator.list_groups() == []


def test_f61_a_member_that_does_not_fit_beside_the_others_leaves_them_alone() -> None:
    coordinator = CoordinatorUnderTest()
    [member] = coordinator.stable_group(protocols=[("range", HALF)])
    ticket = coordinator.join(protocols=[("range", HALF)])
    assert coordinator.answers[ticket].error_code is REFUSED
    assert coordinator.state() == "Stable"
    assert coordinator.heartbeat(member, 1) is ErrorCode.none
    assert is_as_written(coordinator)


def test_f61_a_member_that_joins_again_counts_once() -> None:
    coordinator = CoordinatorUnderTest()
    [member] = coordinator.stable_group(protocols=[("range", HALF)])
    ticket = coordinator.join(member, protocols=[("range", HALF + b"!")])
    assert coordinator.answers[ticket].error_code is ErrorCode.none


def test_f61_an_assignment_that_fits_no_batch_is_refused_and_the_members_join_again() -> None:
    coordinator = CoordinatorUnderTest()
    leader, joined = coordinator.enter()
    coordinator.advance(6_000)
    log = list(coordinator.log)
    generation = coordinator.answers[joined].generation_id

    ticket = coordinator.sync(leader, generation, {leader: TOO_MUCH})

    assert coordinator.answers[ticket].error_code is REFUSED
    assert coordinator.log == log
    assert coordinator.state() == "PreparingRebalance"
    assert coordinator.heartbeat(leader, generation) is ErrorCode.rebalance_in_progress
    again = coordinator.join(leader)
    generation = coordinator.answers[again].generation_id
    ticket = coordinator.sync(leader, generation, {leader: b"less"})
    assert coordinator.answers[ticket].assignment == b"less"
    assert is_as_written(coordinator)


def test_f61_offsets_that_fit_no_batch_are_refused_together() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.commit({("t", 0): 1})
    many = {("t" * 200, partition): 2 for partition in range(5_000)} | {("t", 0): 2}

    ticket = coordinator.commit(many)

    answer = coordinator.answers[ticket]
    errors = {one.error_code for topic in answer.topics for one in topic.partitions}
    assert errors == {REFUSED}
    assert coordinator.committed() == {("t", 0): 1}
    assert is_as_written(coordinator)


def test_f61_a_group_that_only_a_refused_commit_named_does_not_exist() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.partition.largest_batch = 100
    ticket = coordinator.commit({("t", 0): 1}, metadata="m" * 100)
    assert coordinator.commit_error(ticket) is REFUSED
    assert coordinator.list_groups() == []


def test_f61_a_group_whose_first_record_fits_no_batch_does_not_exist() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.partition.largest_batch = 70
    ticket = coordinator.join(version=3)
    assert coordinator.answers[ticket].error_code is REFUSED
    assert (coordinator.list_groups(), coordinator.log) == ([], [])


def test_f61_the_last_member_that_leaves_is_told_that_this_could_not_be_written() -> None:
    coordinator = CoordinatorUnderTest()
    [member] = coordinator.stable_group()
    coordinator.partition.largest_batch = 70
    assert coordinator.answers[coordinator.leave(member)].error_code is REFUSED


def test_f61_a_group_with_more_offsets_than_a_batch_holds_is_deleted_all_the_same() -> None:
    coordinator = CoordinatorUnderTest()
    count = MAX_RECORDS // 2
    coordinator.commit({("t" * 249, partition): 1 for partition in range(count)})
    coordinator.partition.largest_batch = 10_000
    coordinator.writes_succeed = False

    ticket = coordinator.delete_groups(GROUP)
    assert ticket not in coordinator.answers
    coordinator.write_all()

    [result] = coordinator.answers[ticket].results
    assert result.error_code is ErrorCode.none
    assert (coordinator.list_groups(), coordinator.committed()) == ([], {})
    assert is_as_written(coordinator)


def test_f61_offsets_are_deleted_in_as_many_writes_as_it_takes() -> None:
    coordinator = CoordinatorUnderTest()
    offsets = {("t" * 249, partition): 1 for partition in range(200)}
    coordinator.commit(offsets)
    coordinator.partition.largest_batch = 10_000

    ticket = coordinator.delete_offsets(*offsets)

    assert coordinator.answers[ticket].error_code is ErrorCode.none
    assert coordinator.committed() == {}
    assert is_as_written(coordinator)
