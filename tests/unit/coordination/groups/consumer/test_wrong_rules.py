"""The invariants of consumer groups find coordinators with a wrong rule."""

import pytest
from tests.unit.coordination.groups.consumer.consumer_group_shard import (
    ConsumerGroupShard,
    FakeMember,
)

from tidelog.coordination.groups.consumer import offset_checks, reconciling
from tidelog.model.errors import ErrorCode

COMMIT_VERSION = 10


def two_members() -> tuple[ConsumerGroupShard, FakeMember, FakeMember]:
    """A owns both partitions; B has joined, and A has not been told yet."""
    shard = ConsumerGroupShard()
    shard.put_topic("t", 2)
    first, second = FakeMember("A"), FakeMember("B")
    shard.join(first, "t")
    first.carry_out()
    shard.join(second, "t")
    second.carry_out()
    return shard, first, second


def owned_twice(*members: FakeMember) -> int:
    owned = [
        (topic_id, partition)
        for member in members
        for topic_id, partitions in member.owned.items()
        for partition in partitions
    ]
    return len(owned) - len(set(owned))


def test_f67_a_partition_that_is_assigned_before_it_is_revoked_has_two_owners(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert owned_twice(*two_members()[1:]) == 0

    monkeypatch.setattr(reconciling, "is_released", lambda *_: True)

    assert owned_twice(*two_members()[1:]) == 1


def test_f66_without_the_check_of_the_epoch_a_former_owner_sets_an_offset_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def commit_of_a_former_owner() -> ErrorCode:
        shard, first, second = two_members()
        old_epoch, (topic_id,) = first.epoch, first.owned
        shard.settle(first, second)
        (moved,) = second.owned[topic_id]
        assert shard.group.check_commit("A", None, old_epoch, COMMIT_VERSION) is ErrorCode.none
        return shard.group.check_committed_partition("A", old_epoch, topic_id, moved)

    assert commit_of_a_former_owner() is ErrorCode.stale_member_epoch

    monkeypatch.setattr(offset_checks, "check_partition", lambda *_: ErrorCode.none)

    assert commit_of_a_former_owner() is ErrorCode.none
