"""The life of a shard: loading, serving, failing writes, losing the leadership."""

import pytest
from kio.schema.offset_commit.v9 import request as commit_v9
from tests.unit.coordination.group_client import (
    LARGEST_BATCH,
    SETTINGS,
    CountingDice,
    Desk,
    subscription,
)

from tidelog.coordination.record_codec import RecordFormatError
from tidelog.coordination.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from tidelog.coordination.shard import GroupShard
from tidelog.model.errors import ErrorCode
from tidelog.node.clock import Clock

# -- Loading ---------------------------------------------------------------------------------------


def test_stable_group_is_found_again() -> None:
    desk = Desk()
    leader, follower = desk.stable_group(2, protocols=[("range", subscription("t"))])
    desk.commit({("t", 0): 5}, member=leader, generation=1)
    after = desk.successor()
    assert after.committed() == {("t", 0): 5}
    assert after.heartbeat(follower, 1) is ErrorCode.none
    assert after.answers[after.sync(follower, 1)].assignment == f"to {follower}".encode()
    assert after.describe() == desk.describe()
    # The leader is known too: its join begins a rebalance, the follower's does not.
    assert after.answers[after.join(follower, protocols=[("range", subscription("t"))])]
    assert after.join(leader, protocols=[("range", subscription("t"))]) not in after.answers


def test_sessions_begin_anew_after_loading() -> None:
    desk = Desk()
    (member,) = desk.stable_group()
    desk.advance(9_999)
    after = desk.successor()
    after.advance(9_999)
    assert after.heartbeat(member, 1) is ErrorCode.none
    after.advance(10_000)
    assert after.state() == "Empty"


def test_requests_while_loading() -> None:
    desk = Desk()
    desk.shard = GroupShard(SETTINGS, CountingDice(), Clock(0), lambda: LARGEST_BATCH)
    loading = ErrorCode.coordinator_load_in_progress
    assert desk.answers[desk.join()].error_code is loading
    assert desk.answers[desk.sync("m", 1)].error_code is loading
    assert desk.heartbeat("m", 1) is ErrorCode.none
    assert desk.answers[desk.leave("m")].error_code is loading
    assert desk.commit_error(desk.commit({("t", 0): 1})) is loading
    assert desk.answers[desk.fetch(("t", 0))].groups[0].error_code is loading
    assert desk.describe().error_code is loading
    assert desk.answers[desk.delete_groups("g")].results[0].error_code is loading
    assert desk.answers[desk.delete_offsets(("t", 0))].error_code is loading
    assert desk.shard.next_deadline() is None


def test_fetch_refused_before_version_2_says_so_of_each_partition() -> None:
    desk = Desk()
    desk.shard = GroupShard(SETTINGS, CountingDice(), Clock(0), lambda: LARGEST_BATCH)
    (group,) = desk.answers[desk.fetch(("t", 0), version=1)].groups
    partition = group.topics[0].partitions[0]
    assert partition.error_code is ErrorCode.coordinator_load_in_progress
    assert partition.committed_offset == -1


def replayed(*records: tuple[bytes, bytes | None]) -> Desk:
    desk = Desk()
    desk.log = list(records)
    return desk.successor()


def test_old_records_are_read() -> None:
    """A group of version 0 has one timeout, and does not say since when it is in its state."""
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        session_timeout=7_000,
        subscription=subscription("t"),
        assignment=b"a",
    )
    group = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol="range", leader="m", members=(member,)
    )
    offset = OffsetCommitValue(offset=3, metadata="", commit_timestamp=0)
    desk = replayed(
        (encode_key(GroupMetadataKey("g")), encode_value(group, 0)),
        (encode_key(OffsetCommitKey("g", "t", 0)), encode_value(offset, 0)),
    )
    assert desk.heartbeat("m", 4, group="g") is ErrorCode.none
    assert desk.committed("g") == {("t", 0): 3}
    desk.advance(7_000)
    assert desk.state("g") == "Empty"


def test_leader_that_is_no_member_is_replaced() -> None:
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/h",
        session_timeout=7_000,
        subscription=b"",
        assignment=b"a",
    )
    group = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol="range", leader="gone", members=(member,)
    )
    desk = replayed((encode_key(GroupMetadataKey("g")), encode_value(group)))
    assert desk.answers[desk.join("m", group="g")].leader == "m"


def test_empty_group_of_unknown_age_expires_by_its_commits() -> None:
    group = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol=None, leader=None, members=()
    )
    offset = OffsetCommitValue(offset=3, metadata="", commit_timestamp=1_000_000)
    records = (
        (encode_key(GroupMetadataKey("g")), encode_value(group, 1)),
        (encode_key(OffsetCommitKey("g", "t", 0)), encode_value(offset)),
    )
    desk = replayed(*records)
    desk.advance(SETTINGS.offsets_retention_ms)
    assert desk.list_groups() == []


def test_tombstones_and_foreign_records_are_replayed() -> None:
    offset_key = encode_key(OffsetCommitKey("g", "t", 0))
    offset = encode_value(OffsetCommitValue(offset=3, metadata="", commit_timestamp=0))
    desk = replayed(
        (offset_key, offset),
        (encode_key(GroupMetadataKey("g")), None),
        (offset_key, None),
        (b"\0\3\0\1g", b"\0\0\0\0\0\7"),
        (b"\0\3\0\1g", None),
    )
    assert desk.list_groups() == []
    assert desk.committed("g") == {}


@pytest.mark.parametrize(("key", "value"), [(b"", b""), (b"\0\1\0", None), (b"\0\2\0\1g", b"\0\3")])
def test_garbage_in_the_log_is_an_error(key: bytes, value: bytes | None) -> None:
    with pytest.raises(RecordFormatError):
        GroupShard(SETTINGS, CountingDice(), Clock(0), lambda: LARGEST_BATCH).replay(key, value, 0)


# -- Writes ----------------------------------------------------------------------------------------


def test_write_that_takes_too_long_fails_but_may_still_be_durable() -> None:
    desk = Desk(writes_succeed=False)
    ticket = desk.commit({("t", 0): 5})
    desk.advance(4_999)
    assert ticket not in desk.answers
    desk.advance(1)
    assert desk.commit_error(ticket) is ErrorCode.coordinator_not_available
    assert desk.committed() == {}
    desk.settle(ErrorCode.none)
    assert desk.committed() == {("t", 0): 5}


def test_later_success_proves_what_had_timed_out() -> None:
    desk = Desk(writes_succeed=False)
    desk.commit({("t", 0): 5})
    desk.advance(5_000)
    desk.commit({("t", 1): 6})
    desk.settle(ErrorCode.none, index=1)
    assert desk.committed() == {("t", 0): 5, ("t", 1): 6}
    desk.settle(ErrorCode.none)
    assert desk.committed() == {("t", 0): 5, ("t", 1): 6}


@pytest.mark.parametrize(
    "error", [ErrorCode.request_timed_out, ErrorCode.not_enough_replicas_after_append]
)
def test_error_after_the_append_leaves_the_outcome_open(error: ErrorCode) -> None:
    desk = Desk(writes_succeed=False)
    ticket = desk.commit({("t", 0): 5})
    (write,) = desk.unwritten
    desk.carry_out(desk.shard.written(write.write_id, error, desk.now))
    assert desk.commit_error(ticket) is ErrorCode.coordinator_not_available
    desk.settle(ErrorCode.none)
    assert desk.committed() == {("t", 0): 5}


def test_failure_after_a_timeout_is_not_told_twice() -> None:
    desk = Desk(writes_succeed=False)
    ticket = desk.commit({("t", 0): 5})
    desk.advance(5_000)
    desk.settle(ErrorCode.not_leader_or_follower)
    assert desk.commit_error(ticket) is ErrorCode.coordinator_not_available
    assert desk.committed() == {}


def test_successes_out_of_order_are_a_bug() -> None:
    desk = Desk(writes_succeed=False)
    desk.commit({("t", 0): 5})
    desk.commit({("t", 0): 6})
    with pytest.raises(AssertionError):
        desk.settle(ErrorCode.none, index=1)


# -- Losing the leadership -------------------------------------------------------------------------


def test_everyone_who_waits_is_sent_away() -> None:
    desk = Desk()
    leader, _ = desk.stable_group(2, session_ms=60_000)
    parked_join = desk.join(leader)
    syncing = desk.enter(group="syncing")[0], desk.enter(group="syncing")[0]
    desk.advance(6_000)
    parked_sync = desk.sync(syncing[1], 1, group="syncing")
    desk.writes_succeed = False
    written_sync = desk.sync(syncing[0], 1, group="syncing")
    new_static = desk.join(instance="one", group="new")
    commit = desk.commit({("t", 0): 5}, group="simple")
    stable_fetch = desk.fetch(require_stable=True)
    desk.carry_out(desk.shard.abandon())
    gone = ErrorCode.not_coordinator
    for ticket in (parked_join, parked_sync, written_sync, new_static):
        assert desk.answers[ticket].error_code is gone
    assert desk.commit_error(commit) is gone
    assert desk.answers[stable_fetch].groups[0].error_code is gone


def test_abandoned_shard_does_nothing_more() -> None:
    desk = Desk(writes_succeed=False)
    desk.join(instance="one")
    desk.carry_out(desk.shard.abandon())
    assert desk.shard.next_deadline() is None
    assert desk.shard.tick(desk.now + 1_000_000) == []
    desk.settle(ErrorCode.none)
    assert desk.shard.partitions_deleted([], desk.now) == []
    assert desk.answers[desk.join()].error_code is ErrorCode.not_coordinator
    assert desk.heartbeat("m", 1) is ErrorCode.not_coordinator
    assert desk.shard.abandon() == []


def test_request_of_any_version_is_understood() -> None:
    """The API layer may hand over an older shape of a message than the newest."""
    partition = commit_v9.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=None
    )
    request = commit_v9.OffsetCommitRequest(
        group_id="g",
        member_id="",
        topics=(commit_v9.OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
    )
    desk = Desk()
    assert desk.commit_error(desk.ask(request)) is ErrorCode.none
    assert desk.committed("g") == {("t", 0): 5}
