"""The bytes of `__consumer_offsets` equal those of Kafka 4.1's own classes."""

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.coordination.fast_offsets import fast_offset_key, fast_offset_value
from tidelog.coordination.record_codec import RecordFormatError
from tidelog.coordination.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    Value,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from tidelog.model.ids import ZERO_TOPIC_ID

OFFSET_KEY = OffsetCommitKey("g", "t\u00f6", 9)
GROUP_KEY = GroupMetadataKey("g")
TIME = 1_700_000_000_000


def offset_value(version: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=1234567890123,
        metadata="m\u00e9\U0001f600",
        commit_timestamp=TIME,
        leader_epoch=7 if version >= 3 else -1,
        expire_timestamp=TIME + 1000 if version == 1 else -1,
    )


def group_value(version: int) -> GroupMetadataValue:
    first = MemberMetadata(
        member_id="m-1",
        client_id="c",
        client_host="/127.0.0.1",
        session_timeout=10000,
        subscription=b"\0\1",
        assignment=b"\2",
        rebalance_timeout=60000 if version >= 1 else -1,
        group_instance_id="i" if version >= 3 else None,
    )
    second = MemberMetadata(
        member_id="m-2",
        client_id="",
        client_host="/::1",
        session_timeout=1,
        subscription=b"",
        assignment=b"",
    )
    return GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m-1",
        current_state_timestamp=TIME if version >= 2 else -1,
        members=(first, second),
    )


EMPTY_GROUP = GroupMetadataValue(
    protocol_type="", generation=0, protocol=None, leader=None, members=()
)

KAFKA_OFFSETS = [
    "00000000011f71fb04cb00076dc3a9f09f98800000018bcfe56800",
    "00010000011f71fb04cb00076dc3a9f09f98800000018bcfe568000000018bcfe56be8",
    "00020000011f71fb04cb00076dc3a9f09f98800000018bcfe56800",
    "00030000011f71fb04cb0000000700076dc3a9f09f98800000018bcfe56800",
    "00040000011f71fb04cb00000007086dc3a9f09f98800000018bcfe5680000",
]
KAFKA_GROUPS = [
    "00000008636f6e73756d657200000003000572616e676500036d2d310000000200036d2d31000163000a2f3132372e30"
    "2e302e3100002710000000020001000000010200036d2d32000000042f3a3a31000000010000000000000000",
    "00010008636f6e73756d657200000003000572616e676500036d2d310000000200036d2d31000163000a2f3132372e30"
    "2e302e310000ea6000002710000000020001000000010200036d2d32000000042f3a3a31ffffffff0000000100000000"
    "00000000",
    "00020008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000200036d2d31000163"
    "000a2f3132372e302e302e310000ea6000002710000000020001000000010200036d2d32000000042f3a3a31ffffffff"
    "000000010000000000000000",
    "00030008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000200036d2d31000169"
    "000163000a2f3132372e302e302e310000ea6000002710000000020001000000010200036d2d32ffff000000042f3a3a"
    "31ffffffff000000010000000000000000",
    "000409636f6e73756d6572000000030672616e6765046d2d310000018bcfe5680003046d2d31026902630b2f3132372e"
    "302e302e310000ea6000002710030001020200046d2d320001052f3a3a31ffffffff0000000101010000",
]
KAFKA_EMPTY_GROUPS = [
    "0000000000000000ffffffff00000000",
    "0001000000000000ffffffff00000000",
    "0002000000000000ffffffffffffffffffffffff00000000",
    "0003000000000000ffffffffffffffffffffffff00000000",
    "000401000000000000ffffffffffffffff0100",
]


def test_keys_are_kafkas() -> None:
    assert encode_key(OFFSET_KEY).hex() == "0001000167000374c3b600000009"
    assert encode_key(GROUP_KEY).hex() == "0002000167"
    assert decode_key(encode_key(OFFSET_KEY)) == OFFSET_KEY
    assert decode_key(encode_key(GROUP_KEY)) == GROUP_KEY


def test_key_version_zero_is_an_offset_too() -> None:
    assert decode_key(b"\0\0" + encode_key(OFFSET_KEY)[2:]) == OFFSET_KEY


def test_key_of_another_kind_of_group_is_none_of_ours() -> None:
    streams_group_metadata = b"\0\x11" + encode_key(GROUP_KEY)[2:]
    assert decode_key(streams_group_metadata) is None


@pytest.mark.parametrize("version", range(5))
def test_offset_value_is_kafkas(version: int) -> None:
    value = offset_value(version)
    assert encode_value(value, version).hex() == KAFKA_OFFSETS[version]
    assert decode_value(OFFSET_KEY, bytes.fromhex(KAFKA_OFFSETS[version])) == value


@pytest.mark.parametrize("version", range(5))
def test_group_value_is_kafkas(version: int) -> None:
    value = group_value(version)
    assert encode_value(value, version).hex() == KAFKA_GROUPS[version]
    assert decode_value(GROUP_KEY, bytes.fromhex(KAFKA_GROUPS[version])) == value


@pytest.mark.parametrize("version", range(5))
def test_empty_group_is_kafkas(version: int) -> None:
    assert encode_value(EMPTY_GROUP, version).hex() == KAFKA_EMPTY_GROUPS[version]
    assert decode_value(GROUP_KEY, bytes.fromhex(KAFKA_EMPTY_GROUPS[version])) == EMPTY_GROUP


def test_topic_id_is_a_tagged_field() -> None:
    value = OffsetCommitValue(
        offset=5, metadata="", commit_timestamp=1, topic_id=UUID(bytes=bytes(range(1, 17)))
    )
    expected = (
        "00040000000000000005ffffffff0100000000000000010100100102030405060708090a0b0c0d0e0f10"
    )
    assert encode_value(value).hex() == expected
    assert decode_value(OFFSET_KEY, bytes.fromhex(expected)) == value


def test_versions_written_are_those_of_kafka_4_1() -> None:
    assert encode_value(offset_value(3))[:2] == b"\0\4"
    assert encode_value(offset_value(1))[:2] == b"\0\1"
    assert encode_value(EMPTY_GROUP)[:2] == b"\0\3"


def test_unknown_tags_and_newer_versions_are_read() -> None:
    data = bytes.fromhex(KAFKA_OFFSETS[4])
    newer = b"\0\5" + data[2:-1] + b"\1\7\2xy"
    assert decode_value(OFFSET_KEY, newer) == offset_value(4)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0",
        b"\xff\xff",
        b"\0\3\0\0",
        bytes.fromhex(KAFKA_OFFSETS[3])[:-1],
        b"\0\4" + b"\xff" * 40,
    ],
    ids=["nothing", "half a version", "negative", "cut", "one byte short", "all ones"],
)
def test_garbage_is_refused(value: bytes) -> None:
    with pytest.raises(RecordFormatError):
        decode_value(OFFSET_KEY, value)


@given(st.binary(max_size=80), st.integers(0, 4), st.sampled_from([OFFSET_KEY, GROUP_KEY]))
def test_any_bytes_are_a_value_or_refused(
    data: bytes, version: int, key: OffsetCommitKey | GroupMetadataKey
) -> None:
    with suppress(RecordFormatError):
        decode_value(key, version.to_bytes(2, "big") + data)


int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(max_size=40)
members = st.builds(
    MemberMetadata,
    member_id=text,
    client_id=text,
    client_host=text,
    session_timeout=int32,
    subscription=st.binary(max_size=200),
    assignment=st.binary(max_size=20),
    group_instance_id=st.none() | text,
    rebalance_timeout=int32,
)
groups = st.builds(
    GroupMetadataValue,
    protocol_type=text,
    generation=int32,
    protocol=st.none() | text,
    leader=st.none() | text,
    members=st.lists(members, max_size=3).map(tuple),
    current_state_timestamp=int64,
)
offsets = st.builds(
    OffsetCommitValue,
    offset=int64,
    metadata=text,
    commit_timestamp=int64,
    leader_epoch=int32,
    expire_timestamp=st.just(-1),
    topic_id=st.uuids(),
)


@given(groups, st.sampled_from([3, 4]))
def test_group_round_trip(value: GroupMetadataValue, version: int) -> None:
    assert decode_value(GROUP_KEY, encode_value(value, version)) == value


@given(offsets)
def test_offset_round_trip(value: Value) -> None:
    assert decode_value(OFFSET_KEY, encode_value(value, 4)) == value


# -- The fast readers of offsets -------------------------------------------------------------------

texts = st.text(max_size=200)


@given(texts, texts, st.integers(0, 2**31 - 1))
def test_the_fast_reader_of_keys_agrees_with_the_codec(
    group: str, topic: str, partition: int
) -> None:
    key = OffsetCommitKey(group, topic, partition)
    assert fast_offset_key(encode_key(key)) == (group, topic, partition)


@given(st.integers(0, 2**63 - 1), texts, st.sampled_from([ZERO_TOPIC_ID, UUID(int=77)]))
def test_the_fast_reader_of_values_agrees_with_the_codec(
    offset: int, metadata: str, topic_id: UUID
) -> None:
    value = OffsetCommitValue(
        offset=offset,
        metadata=metadata,
        commit_timestamp=TIME,
        leader_epoch=3,
        topic_id=topic_id,
    )
    data = encode_value(value)
    fast = fast_offset_value(data)
    assert fast == value or len(metadata.encode()) >= 127
    assert decode_value(OFFSET_KEY, data) == value


@given(st.binary(max_size=60), st.sampled_from([b"\0\1", b"\0\4"]))
def test_the_fast_readers_never_fail(tail: bytes, prefix: bytes) -> None:
    fast_offset_key(prefix + tail)
    fast_offset_value(prefix + tail)


def test_a_newer_value_with_unknown_tags_is_left_to_the_codec() -> None:
    data = encode_value(offset_value(4))[:-1] + b"\1\5\1x"
    assert fast_offset_value(data) is None
    assert decode_value(OFFSET_KEY, data) == offset_value(4)
