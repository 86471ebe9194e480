"""What cannot be written because it is too large is refused, and nothing of it is kept (F61)."""

import pytest
from tests.unit.coordination.group_client import GROUP, LARGEST_BATCH, Desk

from tidelog.coordination.core import MAX_RECORDS
from tidelog.model.errors import ErrorCode

TOO_MUCH = bytes(LARGEST_BATCH + 1)
HALF = bytes(LARGEST_BATCH // 2 + 1)
REFUSED = ErrorCode.unknown_server_error
"""What Kafka makes of MESSAGE_TOO_LARGE for members of a group."""


def is_as_written(desk: Desk) -> bool:
    """Whether a coordinator that takes over from the log knows the same as this one."""
    other = desk.successor()
    return (
        other.list_groups() == desk.list_groups()
        and other.committed() == desk.committed()
        and len(other.describe().members) == len(desk.describe().members)
    )


@pytest.mark.parametrize("version", [3, 4, 9])
@pytest.mark.parametrize("instance", [None, "one"])
def test_f61_a_member_whose_metadata_fits_no_batch_does_not_join(
    version: int, instance: str | None
) -> None:
    desk = Desk()
    ticket = desk.join(version=version, instance=instance, protocols=[("range", TOO_MUCH)])
    assert desk.answers[ticket].error_code is REFUSED
    assert (desk.list_groups(), desk.log) == ([], [])


def test_f61_protocols_that_only_fit_apart_are_refused() -> None:
    desk = Desk()
    ticket = desk.join(protocols=[("range", HALF), ("sticky", HALF)])
    assert desk.answers[ticket].error_code is REFUSED
    assert desk.list_groups() == []


def test_f61_a_member_that_does_not_fit_beside_the_others_leaves_them_alone() -> None:
    desk = Desk()
    [member] = desk.stable_group(protocols=[("range", HALF)])
    ticket = desk.join(protocols=[("range", HALF)])
    assert desk.answers[ticket].error_code is REFUSED
    assert desk.state() == "Stable"
    assert desk.heartbeat(member, 1) is ErrorCode.none
    assert is_as_written(desk)


def test_f61_a_member_that_joins_again_counts_once() -> None:
    desk = Desk()
    [member] = desk.stable_group(protocols=[("range", HALF)])
    ticket = desk.join(member, protocols=[("range", HALF + b"!")])
    assert desk.answers[ticket].error_code is ErrorCode.none


def test_f61_an_assignment_that_fits_no_batch_is_refused_and_the_members_join_again() -> None:
    desk = Desk()
    leader, joined = desk.enter()
    desk.advance(6_000)
    log = list(desk.log)
    generation = desk.answers[joined].generation_id

    ticket = desk.sync(leader, generation, {leader: TOO_MUCH})

    assert desk.answers[ticket].error_code is REFUSED
    assert desk.log == log
    assert desk.state() == "PreparingRebalance"
    assert desk.heartbeat(leader, generation) is ErrorCode.rebalance_in_progress
    again = desk.join(leader)
    generation = desk.answers[again].generation_id
    ticket = desk.sync(leader, generation, {leader: b"less"})
    assert desk.answers[ticket].assignment == b"less"
    assert is_as_written(desk)


def test_f61_offsets_that_fit_no_batch_are_refused_together() -> None:
    desk = Desk()
    desk.commit({("t", 0): 1})
    many = {("t" * 200, partition): 2 for partition in range(5_000)} | {("t", 0): 2}

    ticket = desk.commit(many)

    answer = desk.answers[ticket]
    errors = {one.error_code for topic in answer.topics for one in topic.partitions}
    assert errors == {REFUSED}
    assert desk.committed() == {("t", 0): 1}
    assert is_as_written(desk)


def test_f61_a_group_that_only_a_refused_commit_named_does_not_exist() -> None:
    desk = Desk()
    desk.largest_batch = 100
    ticket = desk.commit({("t", 0): 1}, metadata="m" * 100)
    assert desk.commit_error(ticket) is REFUSED
    assert desk.list_groups() == []


def test_f61_a_group_whose_first_record_fits_no_batch_does_not_exist() -> None:
    desk = Desk()
    desk.largest_batch = 70
    ticket = desk.join(version=3)
    assert desk.answers[ticket].error_code is REFUSED
    assert (desk.list_groups(), desk.log) == ([], [])


def test_f61_the_last_member_that_leaves_is_told_that_this_could_not_be_written() -> None:
    desk = Desk()
    [member] = desk.stable_group()
    desk.largest_batch = 70
    assert desk.answers[desk.leave(member)].error_code is REFUSED


def test_f61_a_group_with_more_offsets_than_a_batch_holds_is_deleted_all_the_same() -> None:
    desk = Desk()
    count = MAX_RECORDS // 2
    desk.commit({("t" * 249, partition): 1 for partition in range(count)})
    desk.largest_batch = 10_000
    desk.writes_succeed = False

    ticket = desk.delete_groups(GROUP)
    assert ticket not in desk.answers
    desk.write_all()

    [result] = desk.answers[ticket].results
    assert result.error_code is ErrorCode.none
    assert (desk.list_groups(), desk.committed()) == ([], {})
    assert is_as_written(desk)


def test_f61_offsets_are_deleted_in_as_many_writes_as_it_takes() -> None:
    desk = Desk()
    offsets = {("t" * 249, partition): 1 for partition in range(200)}
    desk.commit(offsets)
    desk.largest_batch = 10_000

    ticket = desk.delete_offsets(*offsets)

    assert desk.answers[ticket].error_code is ErrorCode.none
    assert desk.committed() == {}
    assert is_as_written(desk)
