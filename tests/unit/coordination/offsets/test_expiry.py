"""Expiry of offsets and groups, and the deletion of partitions."""

from uuid import UUID

from tests.unit.coordination.group_client import GROUP, CoordinatorUnderTest, subscription

from tidelog.config.group_settings import GroupSettings
from tidelog.controller.image.image import ClusterImage
from tidelog.coordination.records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from tidelog.coordination.runtime.shard import TICK_RETRY_MS
from tidelog.coordination.runtime.sizes import MAX_RECORDS
from tidelog.model.errors import ErrorCode

RETENTION_MS = 100_000
CHECK_MS = 10_000
SHORT = GroupSettings(
    offsets_retention_ms=RETENTION_MS, offsets_retention_check_interval_ms=CHECK_MS
)


def keep_alive(coordinator: CoordinatorUnderTest, member: str, milliseconds: int) -> None:
    for _ in range(0, milliseconds, 5_000):
        coordinator.advance(5_000)
        assert coordinator.heartbeat(member, 1) is ErrorCode.none


def test_offset_of_a_simple_group_expires_after_its_commit() -> None:
    coordinator = CoordinatorUnderTest(SHORT)
    coordinator.commit({("t", 0): 1})
    coordinator.advance(RETENTION_MS - CHECK_MS)
    coordinator.commit({("t", 1): 2})
    assert len(coordinator.committed()) == 2
    coordinator.advance(CHECK_MS)
    assert coordinator.committed() == {("t", 1): 2}
    assert coordinator.list_groups() == [GROUP]
    coordinator.advance(RETENTION_MS)
    assert coordinator.committed() == {}
    assert coordinator.list_groups() == []
    assert coordinator.successor().list_groups() == []


def test_offsets_of_a_group_expire_after_its_last_member_left() -> None:
    coordinator = CoordinatorUnderTest(SHORT)
    (member,) = coordinator.stable_group(protocols=[("range", subscription("t"))])
    coordinator.commit({("t", 0): 1}, member=member, generation=1)
    keep_alive(coordinator, member, 2 * RETENTION_MS)
    assert coordinator.committed() == {("t", 0): 1}
    coordinator.leave(member)
    coordinator.advance(RETENTION_MS - CHECK_MS)
    assert coordinator.committed() == {("t", 0): 1}
    coordinator.advance(2 * CHECK_MS)
    assert coordinator.committed() == {}
    assert coordinator.list_groups() == []
    assert list(coordinator.written_groups())[-1] is None


def test_offsets_of_topics_no_longer_read_expire_under_a_live_group() -> None:
    coordinator = CoordinatorUnderTest(SHORT)
    (member,) = coordinator.stable_group(protocols=[("range", subscription("t"))])
    coordinator.commit({("t", 0): 1, ("old", 0): 2}, member=member, generation=1)
    keep_alive(coordinator, member, RETENTION_MS + CHECK_MS)
    assert coordinator.committed() == {("t", 0): 1}
    assert coordinator.state() == "Stable"


def test_unknown_subscriptions_and_other_types_do_not_expire_while_alive() -> None:
    for about in ({"protocols": [("range", b"?")]}, {"protocol_type": "connect"}):
        coordinator = CoordinatorUnderTest(SHORT)
        (member,) = coordinator.stable_group(**about)
        coordinator.commit({("t", 0): 1}, member=member, generation=1)
        keep_alive(coordinator, member, RETENTION_MS + CHECK_MS)
        assert coordinator.committed() == {("t", 0): 1}


def test_retention_asked_for_by_an_old_client_counts() -> None:
    coordinator = CoordinatorUnderTest(SHORT)
    coordinator.commit({("t", 0): 1}, retention_ms=2 * RETENTION_MS, version=4)
    coordinator.commit({("t", 1): 1}, retention_ms=1, version=4)
    coordinator.advance(CHECK_MS)
    assert coordinator.committed() == {("t", 0): 1}
    coordinator.advance(2 * RETENTION_MS - 2 * CHECK_MS)
    assert coordinator.committed() == {("t", 0): 1}
    coordinator.advance(CHECK_MS)
    assert coordinator.committed() == {}


def test_group_without_offsets_goes_when_it_is_empty() -> None:
    coordinator = CoordinatorUnderTest(SHORT)
    (member,) = coordinator.stable_group()
    keep_alive(coordinator, member, 2 * CHECK_MS)
    coordinator.leave(member)
    coordinator.advance(CHECK_MS)
    assert coordinator.list_groups() == []


def test_offset_that_is_being_committed_does_not_expire() -> None:
    coordinator = CoordinatorUnderTest(SHORT)
    coordinator.commit({("t", 0): 1})
    coordinator.advance(RETENTION_MS - CHECK_MS)
    coordinator.writes_succeed = False
    coordinator.commit({("t", 0): 2})
    coordinator.advance(CHECK_MS)
    coordinator.write_all()
    assert coordinator.committed() == {("t", 0): 2}


def test_expiry_that_cannot_be_written_is_tried_again() -> None:
    coordinator = CoordinatorUnderTest(SHORT)
    coordinator.commit({("t", 0): 1})
    coordinator.refuse_writes(ErrorCode.not_enough_replicas)
    coordinator.advance(RETENTION_MS)
    assert coordinator.committed() == {("t", 0): 1}
    assert coordinator.list_groups() == [GROUP]
    coordinator.refuse_writes(ErrorCode.none)
    coordinator.advance(TICK_RETRY_MS)
    assert coordinator.list_groups() == []


def test_many_tombstones_go_in_several_writes_and_the_group_last() -> None:
    coordinator = CoordinatorUnderTest(SHORT)
    count = MAX_RECORDS + 500
    coordinator.commit({("t", partition): 1 for partition in range(count)})
    coordinator.commit({("u", 0): 1}, group="other")
    coordinator.writes_succeed = False
    coordinator.advance(RETENTION_MS)
    assert all(len(records) <= MAX_RECORDS for _, records in coordinator.unwritten)
    keys = [decode_key(key) for _, records in coordinator.unwritten for key, _ in records]
    offsets = [key for key in keys if isinstance(key, OffsetCommitKey)]
    assert len(offsets) == count + 1
    assert GroupMetadataKey("other") in keys
    of_group = [key for key in keys if key.group == GROUP]
    assert of_group.index(GroupMetadataKey(GROUP)) == count
    coordinator.writes_succeed = True
    coordinator.write_all()
    assert coordinator.list_groups() == []


def image_of(*topics: str) -> ClusterImage:
    return ClusterImage(topic_names={UUID(int=sum(map(ord, name))): name for name in topics})


def test_offsets_of_deleted_topics_are_forgotten() -> None:
    coordinator = CoordinatorUnderTest()
    coordinator.image = image_of("t", "u", "v")
    coordinator.commit({("t", 0): 1, ("t", 1): 2, ("u", 0): 3})
    coordinator.commit({("t", 0): 4}, group="other")
    coordinator.image_changed(image_of("u"))
    assert coordinator.committed() == {("u", 0): 3}
    assert coordinator.committed("other") == {}
    written = len(coordinator.log)
    coordinator.image_changed(image_of("u", "w"))
    coordinator.image_changed(image_of("u"))
    assert len(coordinator.log) == written


def test_offsets_are_stamped_by_the_machines_clock_and_expire_by_time_that_can_be_trusted() -> None:
    """For expiry, a clock step forward counts only after some time. A step back counts at once."""
    coordinator = CoordinatorUnderTest(SHORT)
    coordinator.commit({("t", 0): 1})
    coordinator.wall_clock.wall_moved(100 * RETENTION_MS)
    coordinator.commit({("t", 1): 2})
    coordinator.advance(CHECK_MS)
    assert coordinator.committed() == {("t", 0): 1, ("t", 1): 2}
    [*_, (_, value)] = coordinator.log
    stamped = decode_value(OffsetCommitKey(GROUP, "t", 1), value or b"")
    assert isinstance(stamped, OffsetCommitValue)
    assert stamped.commit_timestamp >= 100 * RETENTION_MS
