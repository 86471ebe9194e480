"""A shard: loading, serving, failed writes, losing leadership."""

from typing import Any

import pytest
from kio.schema.offset_commit.v9 import request as commit_v9
from tests.unit.coordination.group_client import (
    CLIENT,
    SETTINGS,
    CoordinatorUnderTest,
    beating,
    joining,
    subscription,
    syncing,
)

from tidelog.coordination.groups.machine import refuse_group_request
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
from tidelog.coordination.runtime.decision import CoordinatorRequest
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.canonical import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

# -- Loading the log -------------------------------------------------------------------------------


def test_stable_group_is_found_again() -> None:
    coordinator = CoordinatorUnderTest()
    leader, follower = coordinator.stable_group(2, protocols=[("range", subscription("t"))])
    coordinator.commit({("t", 0): 5}, member=leader, generation=1)
    after = coordinator.successor()
    assert after.committed() == {("t", 0): 5}
    assert after.heartbeat(follower, 1) is ErrorCode.none
    assert after.answers[after.sync(follower, 1)].assignment == f"to {follower}".encode()
    assert after.describe() == coordinator.describe()
    # The new coordinator knows the group's leader, so only the leader's join starts a rebalance.
    assert after.answers[after.join(follower, protocols=[("range", subscription("t"))])]
    assert after.join(leader, protocols=[("range", subscription("t"))]) not in after.answers


def test_sessions_begin_anew_after_loading() -> None:
    coordinator = CoordinatorUnderTest()
    (member,) = coordinator.stable_group()
    coordinator.advance(9_999)
    after = coordinator.successor()
    after.advance(9_999)
    assert after.heartbeat(member, 1) is ErrorCode.none
    after.advance(10_000)
    assert after.state() == "Empty"


def refused(message: Any, error: ErrorCode, version: int | None = None) -> Any:
    version = message.__version__ if version is None else version
    return refuse_group_request(CoordinatorRequest(message, version, CLIENT, 1), error)


def test_requests_while_loading() -> None:
    loading = ErrorCode.coordinator_load_in_progress
    for message in (joining(), syncing("m", 1)):
        assert refused(message, loading).error_code is loading
    assert refused(beating("m", 1), loading).error_code is ErrorCode.none


def fetching(topic: str) -> OffsetFetchRequest:
    topics = (OffsetFetchRequestTopics(name=topic, topic_id=None, partition_indexes=(0,)),)
    group = OffsetFetchRequestGroup(group_id="g", topics=topics)
    return OffsetFetchRequest(groups=(group,), require_stable=False)


def test_fetch_refused_before_version_2_says_so_of_each_partition() -> None:
    loading = ErrorCode.coordinator_load_in_progress
    (group,) = refused(fetching("t"), loading, version=1).groups
    partition = group.topics[0].partitions[0]
    assert partition.error_code is loading
    assert partition.committed_offset == -1
    (group,) = refused(fetching("t"), loading).groups
    assert (group.error_code, group.topics) == (loading, ())


def replayed(*records: tuple[bytes, bytes | None]) -> CoordinatorUnderTest:
    coordinator = CoordinatorUnderTest()
    coordinator.partition.records = list(records)
    return coordinator.successor()


def test_old_records_are_read() -> None:
    """A group record of version 0 has only one timeout, and lacks the time of the state change."""
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
    coordinator = replayed(
        (encode_key(GroupMetadataKey("g")), encode_value(group, 0)),
        (encode_key(OffsetCommitKey("g", "t", 0)), encode_value(offset, 0)),
    )
    assert coordinator.heartbeat("m", 4, group="g") is ErrorCode.none
    assert coordinator.committed("g") == {("t", 0): 3}
    coordinator.advance(7_000)
    assert coordinator.state("g") == "Empty"


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
    coordinator = replayed((encode_key(GroupMetadataKey("g")), encode_value(group)))
    assert coordinator.answers[coordinator.join("m", group="g")].leader == "m"


def test_empty_group_of_unknown_age_expires_by_its_commits() -> None:
    group = GroupMetadataValue(
        protocol_type="consumer", generation=4, protocol=None, leader=None, members=()
    )
    offset = OffsetCommitValue(offset=3, metadata="", commit_timestamp=1_000_000)
    records = (
        (encode_key(GroupMetadataKey("g")), encode_value(group, 1)),
        (encode_key(OffsetCommitKey("g", "t", 0)), encode_value(offset)),
    )
    coordinator = replayed(*records)
    coordinator.advance(SETTINGS.offsets_retention_ms)
    assert coordinator.list_groups() == []


def test_tombstones_and_foreign_records_are_replayed() -> None:
    offset_key = encode_key(OffsetCommitKey("g", "t", 0))
    offset = encode_value(OffsetCommitValue(offset=3, metadata="", commit_timestamp=0))
    coordinator = replayed(
        (offset_key, offset),
        (encode_key(GroupMetadataKey("g")), None),
        (offset_key, None),
        (b"\0\x11\0\1g", b"\0\0\0\0\0\7"),
        (b"\0\x11\0\1g", None),
    )
    assert coordinator.list_groups() == []
    assert coordinator.committed("g") == {}


@pytest.mark.parametrize(("key", "value"), [(b"", b""), (b"\0\1\0", None), (b"\0\2\0\1g", b"\0\3")])
def test_garbage_in_the_log_is_an_error(key: bytes, value: bytes | None) -> None:
    with pytest.raises(RecordFormatError):
        CoordinatorUnderTest().machine.decode(key, value)


# -- Writes to the log -----------------------------------------------------------------------------


def test_write_that_takes_too_long_fails_but_may_still_be_durable() -> None:
    coordinator = CoordinatorUnderTest(writes_succeed=False)
    ticket = coordinator.commit({("t", 0): 5})
    coordinator.advance(4_999)
    assert ticket not in coordinator.answers
    coordinator.advance(1)
    assert coordinator.commit_error(ticket) is ErrorCode.coordinator_not_available
    coordinator.write_all()
    assert coordinator.committed() == {("t", 0): 5}


def test_a_write_that_cannot_be_committed_now_fails_but_may_still_be_durable() -> None:
    coordinator = CoordinatorUnderTest(writes_succeed=False)
    ticket = coordinator.commit({("t", 0): 5})
    coordinator.fail_to_commit(ErrorCode.not_enough_replicas_after_append)
    assert coordinator.commit_error(ticket) is ErrorCode.coordinator_not_available
    coordinator.write_all()
    assert coordinator.committed() == {("t", 0): 5}


# -- Losing the leadership -------------------------------------------------------------------------


def test_everyone_who_waits_is_sent_away() -> None:
    coordinator = CoordinatorUnderTest()
    leader, _ = coordinator.stable_group(2, session_ms=60_000)
    parked_join = coordinator.join(leader)
    syncing = coordinator.enter(group="syncing")[0], coordinator.enter(group="syncing")[0]
    coordinator.advance(6_000)
    parked_sync = coordinator.sync(syncing[1], 1, group="syncing")
    coordinator.writes_succeed = False
    written_sync = coordinator.sync(syncing[0], 1, group="syncing")
    new_static = coordinator.join(instance="one", group="new")
    commit = coordinator.commit({("t", 0): 5}, group="simple")
    stable_fetch = coordinator.fetch(require_stable=True)
    coordinator.resign()
    gone = ErrorCode.not_coordinator
    for ticket in (parked_join, parked_sync, written_sync, new_static):
        assert coordinator.answers[ticket].error_code is gone
    assert coordinator.commit_error(commit) is gone
    assert coordinator.answers[stable_fetch].groups[0].error_code is gone


def test_request_of_any_version_is_understood() -> None:
    """The API layer may pass a message in the shape of an older version."""
    partition = commit_v9.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=5, committed_metadata=None
    )
    request = commit_v9.OffsetCommitRequest(
        group_id="g",
        member_id="",
        topics=(commit_v9.OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
    )
    coordinator = CoordinatorUnderTest()
    assert coordinator.commit_error(coordinator.ask(request)) is ErrorCode.none
    assert coordinator.committed("g") == {("t", 0): 5}
