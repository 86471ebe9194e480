"""Expiry of offsets and groups, and the end of partitions."""

from tests.unit.coordination.group_client import GROUP, Desk, subscription

from tidelog.config.group_settings import GroupSettings
from tidelog.coordination.core import MAX_RECORDS
from tidelog.coordination.records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_key,
    decode_value,
)
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition

RETENTION_MS = 100_000
CHECK_MS = 10_000
SHORT = GroupSettings(
    offsets_retention_ms=RETENTION_MS, offsets_retention_check_interval_ms=CHECK_MS
)


def keep_alive(desk: Desk, member: str, milliseconds: int) -> None:
    for _ in range(0, milliseconds, 5_000):
        desk.advance(5_000)
        assert desk.heartbeat(member, 1) is ErrorCode.none


def test_offset_of_a_simple_group_expires_after_its_commit() -> None:
    desk = Desk(SHORT)
    desk.commit({("t", 0): 1})
    desk.advance(RETENTION_MS - CHECK_MS)
    desk.commit({("t", 1): 2})
    assert len(desk.committed()) == 2
    desk.advance(CHECK_MS)
    assert desk.committed() == {("t", 1): 2}
    assert desk.list_groups() == [GROUP]
    desk.advance(RETENTION_MS)
    assert desk.committed() == {}
    assert desk.list_groups() == []
    assert desk.successor().list_groups() == []


def test_offsets_of_a_group_expire_after_its_last_member_left() -> None:
    desk = Desk(SHORT)
    (member,) = desk.stable_group(protocols=[("range", subscription("t"))])
    desk.commit({("t", 0): 1}, member=member, generation=1)
    keep_alive(desk, member, 2 * RETENTION_MS)
    assert desk.committed() == {("t", 0): 1}
    desk.leave(member)
    desk.advance(RETENTION_MS - CHECK_MS)
    assert desk.committed() == {("t", 0): 1}
    desk.advance(2 * CHECK_MS)
    assert desk.committed() == {}
    assert desk.list_groups() == []
    assert list(desk.written_groups())[-1] is None


def test_offsets_of_topics_no_longer_read_expire_under_a_live_group() -> None:
    desk = Desk(SHORT)
    (member,) = desk.stable_group(protocols=[("range", subscription("t"))])
    desk.commit({("t", 0): 1, ("old", 0): 2}, member=member, generation=1)
    keep_alive(desk, member, RETENTION_MS + CHECK_MS)
    assert desk.committed() == {("t", 0): 1}
    assert desk.state() == "Stable"


def test_unknown_subscriptions_and_other_types_do_not_expire_while_alive() -> None:
    for about in ({"protocols": [("range", b"?")]}, {"protocol_type": "connect"}):
        desk = Desk(SHORT)
        (member,) = desk.stable_group(**about)
        desk.commit({("t", 0): 1}, member=member, generation=1)
        keep_alive(desk, member, RETENTION_MS + CHECK_MS)
        assert desk.committed() == {("t", 0): 1}


def test_retention_asked_for_by_an_old_client_counts() -> None:
    desk = Desk(SHORT)
    desk.commit({("t", 0): 1}, retention_ms=2 * RETENTION_MS, version=4)
    desk.commit({("t", 1): 1}, retention_ms=1, version=4)
    desk.advance(CHECK_MS)
    assert desk.committed() == {("t", 0): 1}
    desk.advance(2 * RETENTION_MS - 2 * CHECK_MS)
    assert desk.committed() == {("t", 0): 1}
    desk.advance(CHECK_MS)
    assert desk.committed() == {}


def test_group_without_offsets_goes_when_it_is_empty() -> None:
    desk = Desk(SHORT)
    (member,) = desk.stable_group()
    keep_alive(desk, member, 2 * CHECK_MS)
    desk.leave(member)
    desk.advance(CHECK_MS)
    assert desk.list_groups() == []


def test_offset_that_is_being_committed_does_not_expire() -> None:
    desk = Desk(SHORT)
    desk.commit({("t", 0): 1})
    desk.advance(RETENTION_MS - CHECK_MS)
    desk.writes_succeed = False
    desk.commit({("t", 0): 2})
    desk.advance(CHECK_MS)
    desk.write_all()
    assert desk.committed() == {("t", 0): 2}


def test_expiry_that_cannot_be_written_is_tried_again() -> None:
    desk = Desk(SHORT)
    desk.commit({("t", 0): 1})
    desk.writes_succeed = False
    desk.advance(RETENTION_MS)
    desk.settle(ErrorCode.not_enough_replicas)
    assert desk.committed() == {("t", 0): 1}
    assert desk.list_groups() == [GROUP]
    desk.writes_succeed = True
    desk.advance(CHECK_MS)
    assert desk.list_groups() == []


def test_many_tombstones_go_in_several_writes_and_the_group_last() -> None:
    desk = Desk(SHORT)
    count = MAX_RECORDS + 500
    desk.commit({("t", partition): 1 for partition in range(count)})
    desk.commit({("u", 0): 1}, group="other")
    desk.writes_succeed = False
    desk.advance(RETENTION_MS)
    assert all(len(write.records) <= MAX_RECORDS for write in desk.unwritten)
    keys = [decode_key(key) for write in desk.unwritten for key, _ in write.records]
    offsets = [key for key in keys if isinstance(key, OffsetCommitKey)]
    assert len(offsets) == count + 1
    assert GroupMetadataKey("other") in keys
    of_group = [key for key in keys if key.group == GROUP]
    assert of_group.index(GroupMetadataKey(GROUP)) == count
    desk.writes_succeed = True
    desk.write_all()
    assert desk.list_groups() == []


def test_a_group_whose_own_removal_is_written_and_that_of_its_offsets_is_not_still_exists() -> None:
    desk = Desk(SHORT)
    desk.commit({("t", partition): 1 for partition in range(MAX_RECORDS + 1)})
    desk.writes_succeed = False
    desk.advance(RETENTION_MS)

    desk.settle(ErrorCode.not_enough_replicas)
    desk.settle(ErrorCode.none)

    assert len(desk.committed()) == MAX_RECORDS
    assert desk.list_groups() == [GROUP]


def test_offsets_of_deleted_partitions_are_forgotten() -> None:
    desk = Desk()
    desk.commit({("t", 0): 1, ("t", 1): 2, ("u", 0): 3})
    desk.commit({("t", 0): 4}, group="other")
    gone = [TopicPartition("t", 0), TopicPartition("v", 0)]
    desk.carry_out(desk.shard.partitions_deleted(gone, desk.now))
    assert desk.committed() == {("t", 1): 2, ("u", 0): 3}
    assert desk.committed("other") == {}
    desk.carry_out(desk.shard.partitions_deleted([TopicPartition("w", 0)], desk.now))


def test_offsets_are_stamped_by_the_machines_clock_and_expire_by_time_that_can_be_trusted() -> None:
    """A clock set forward is not believed before it has stood for long; one set back is."""
    desk = Desk(SHORT)
    desk.commit({("t", 0): 1})
    desk.wall_clock.wall_moved(100 * RETENTION_MS)
    desk.commit({("t", 1): 2})
    desk.advance(CHECK_MS)
    assert desk.committed() == {("t", 0): 1, ("t", 1): 2}
    [*_, (_, value)] = desk.log
    stamped = decode_value(OffsetCommitKey(GROUP, "t", 1), value or b"")
    assert isinstance(stamped, OffsetCommitValue)
    assert stamped.commit_timestamp >= 100 * RETENTION_MS
