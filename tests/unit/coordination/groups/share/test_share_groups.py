"""The members of share groups: heartbeats, epochs, assignments, sessions."""

import pytest
from kio.schema.alter_share_group_offsets.v0 import request as alter
from tests.unit.coordination.groups.share.share_members import (
    ShareGroupShard,
    image_of,
    topic_id,
)

from tidelog.coordination.groups.share.share_group import ShareGroup
from tidelog.model.errors import ErrorCode

SESSION_MS = 45_000


@pytest.fixture
def shard() -> ShareGroupShard:
    return ShareGroupShard(image_of(t=2, u=1))


def test_a_member_gets_partitions_once_their_state_is_initialized(shard: ShareGroupShard) -> None:
    joined = shard.heartbeat("a", 0, ("t",))
    assert (joined.error_code, joined.member_epoch) == (ErrorCode.none, 1)
    assert joined.assignment.topic_partitions == ()

    again = shard.heartbeat("a", 1)

    assert again.member_epoch == 2
    (topic,) = again.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (topic_id("t"), (0, 1))
    assert shard.heartbeat("a", 2).assignment is None


def test_initialization_is_asked_for_again_after_a_failure() -> None:
    shard = ShareGroupShard(image_of(t=1), initializes=False)
    epoch = shard.heartbeat("a", 0, ("t",)).member_epoch
    assert len(shard.asked) == 1

    shard.initializes = True
    shard.heartbeat("a", epoch)

    assert len(shard.asked) == 2
    shard.heartbeat("a", epoch)
    assert shard.assigned("a") == [("t", 0)]
    assert len(shard.asked) == 2


def test_members_share_partitions(shard: ShareGroupShard) -> None:
    for member in ("a", "b", "c"):
        shard.join(member, "t")
    epochs = {one.member_id: one.member_epoch for one in shard.describe("g")[0].members}
    for member, epoch in epochs.items():
        shard.heartbeat(member, epoch)

    found = {member: shard.assigned(member) for member in epochs}

    assert all(found.values())
    assert {one for parts in found.values() for one in parts} == {("t", 0), ("t", 1)}


def test_a_member_that_leaves_gives_its_partitions_to_the_others(shard: ShareGroupShard) -> None:
    shard.join("a", "t", "u")
    epoch = shard.join("b", "t", "u")

    left = shard.heartbeat("a", -1)

    assert (left.error_code, left.member_epoch) == (ErrorCode.none, -1)
    shard.heartbeat("b", epoch)
    assert shard.assigned("b") == [("t", 0), ("t", 1), ("u", 0)]


def test_a_silent_member_is_removed(shard: ShareGroupShard) -> None:
    shard.join("a", "t")
    shard.wait(SESSION_MS - 1)
    assert len(shard.describe("g")[0].members) == 1

    shard.wait(1)

    (group,) = shard.describe("g")
    assert (group.group_state, group.members) == ("Empty", ())
    assert shard.heartbeat("a", 2).error_code is ErrorCode.unknown_member_id


def test_epochs_fence_members(shard: ShareGroupShard) -> None:
    epoch = shard.join("a", "t")

    assert shard.heartbeat("a", epoch + 1).error_code is ErrorCode.fenced_member_epoch
    assert shard.heartbeat("a", epoch - 1).error_code is ErrorCode.none, "a lost response"
    shard.join("b", "t")
    newer = shard.heartbeat("a", epoch).member_epoch
    assert newer > epoch
    assert shard.heartbeat("a", epoch - 1).error_code is ErrorCode.fenced_member_epoch


@pytest.mark.parametrize(
    ("member", "epoch", "topics", "error"),
    [
        ("", 0, ("t",), ErrorCode.invalid_request),
        ("a", 0, None, ErrorCode.invalid_request),
        ("a", 0, (), ErrorCode.invalid_request),
        ("a", -2, ("t",), ErrorCode.invalid_request),
        ("a", 3, None, ErrorCode.group_id_not_found),
        ("a", -1, None, ErrorCode.group_id_not_found),
    ],
)
def test_invalid_heartbeats(
    shard: ShareGroupShard,
    member: str,
    epoch: int,
    topics: tuple[str, ...] | None,
    error: ErrorCode,
) -> None:
    assert shard.heartbeat(member, epoch, topics).error_code is error


def test_a_full_group_refuses_new_members(shard: ShareGroupShard) -> None:
    for number in range(5):
        shard.heartbeat(f"m{number}", 0, ("t",))

    assert shard.heartbeat("late", 0, ("t",)).error_code is ErrorCode.group_max_size_reached


def test_new_partitions_are_initialized_and_assigned(shard: ShareGroupShard) -> None:
    epoch = shard.join("a", "u")

    shard.change_image(image_of(t=2, u=2))
    epoch = shard.heartbeat("a", epoch).member_epoch
    shard.heartbeat("a", epoch)

    assert shard.assigned("a") == [("u", 0), ("u", 1)]


def test_the_partitions_of_a_deleted_topic_are_forgotten(shard: ShareGroupShard) -> None:
    epoch = shard.join("a", "t", "u")

    shard.change_image(image_of(t=2))
    shard.heartbeat("a", epoch)

    assert shard.assigned("a") == [("t", 0), ("t", 1)]
    group = shard.machine.directory["g"]
    assert isinstance(group, ShareGroup)
    assert {topic for topic, _ in group.shares.initialized} == {topic_id("t")}


def test_a_new_coordinator_knows_members_and_assignments(shard: ShareGroupShard) -> None:
    epoch = shard.join("a", "t")
    before = shard.describe("g")

    shard.fail_over()

    assert shard.describe("g") == before
    assert shard.heartbeat("a", epoch).member_epoch == epoch
    shard.wait(SESSION_MS)
    assert shard.describe("g")[0].group_state == "Empty"


def test_unknown_groups_are_not_described(shard: ShareGroupShard) -> None:
    (group,) = shard.describe("nobody")

    assert group.error_code is ErrorCode.group_id_not_found
    assert group.error_message == "Group nobody not found."


def test_tombstones_remove_the_group(shard: ShareGroupShard) -> None:
    shard.join("a", "t")
    shard.heartbeat("a", -1)
    group = shard.machine.directory["g"]

    assert group.check_delete() is ErrorCode.none
    for record in group.tombstones():
        shard.log.records.append(shard.machine.encode(record))
    shard.fail_over()

    assert shard.machine.directory == {}


def test_an_alteration_that_fails_does_not_reset_a_share_partition(shard: ShareGroupShard) -> None:
    shard.join("a", "t")
    shard.heartbeat("a", -1)
    shard.initializes = False
    partition = alter.AlterShareGroupOffsetsRequestPartition(partition_index=0, start_offset=7)
    topic = alter.AlterShareGroupOffsetsRequestTopic(topic_name="t", partitions=(partition,))
    answer = shard.ask(alter.AlterShareGroupOffsetsRequest(group_id="g", topics=(topic,)))
    assert answer.responses[0].partitions[0].error_code is not ErrorCode.none
    shard.initializes = True
    shard.asked.clear()

    shard.join("a", "t")

    assert not shard.asked, "the state would start at share.auto.offset.reset"
    assert shard.assigned("a") == [("t", 0), ("t", 1)]
