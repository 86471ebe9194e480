"""Kafka's records in `__consumer_offsets`: the state that survives a coordinator failover.

Keys and values are prefixed with a version. The version of a key defines the type of the record: 0
and 1 mean the committed offset of a partition, 2 means a group, and later versions belong to other
group types. The version of a value is the version of its schema, so records of older Kafka versions
are readable. The encoded bytes are identical to Kafka's.
"""

from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

from tidelog.coordination.record_codec import Array, RecordField, RecordFormatError, Schema, Type
from tidelog.model.ids import NO_EPOCH, NO_TIMESTAMP, ZERO_TOPIC_ID, LeaderEpoch, Millis, Offset

OFFSET_COMMIT_VALUE_VERSION = 4
OFFSET_COMMIT_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_METADATA_VALUE_VERSION = 3


@dataclass(frozen=True, slots=True)
class OffsetCommitKey:
    group: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue:
    offset: Offset
    metadata: str
    commit_timestamp: Millis
    leader_epoch: LeaderEpoch = NO_EPOCH
    expire_timestamp: Millis = NO_TIMESTAMP
    """Set in version 1 only; for later versions, the broker's retention time applies."""
    topic_id: UUID = ZERO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class GroupMetadataKey:
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    member_id: str
    client_id: str
    client_host: str
    session_timeout: int
    subscription: bytes
    assignment: bytes
    group_instance_id: str | None = None
    rebalance_timeout: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataValue:
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    members: tuple[MemberMetadata, ...]
    current_state_timestamp: Millis = NO_TIMESTAMP


Key: TypeAlias = OffsetCommitKey | GroupMetadataKey
Value: TypeAlias = OffsetCommitValue | GroupMetadataValue

_OFFSET_KEY = Schema(
    OffsetCommitKey,
    RecordField("group", Type.STRING),
    RecordField("topic", Type.STRING),
    RecordField("partition", Type.INT32),
)
_GROUP_KEY = Schema(GroupMetadataKey, RecordField("group", Type.STRING))
_KEYS = {0: _OFFSET_KEY, 1: _OFFSET_KEY, 2: _GROUP_KEY}

_OFFSET_VALUE = Schema(
    OffsetCommitValue,
    RecordField("offset", Type.INT64),
    RecordField("leader_epoch", Type.INT32, since=3),
    RecordField("metadata", Type.STRING),
    RecordField("commit_timestamp", Type.INT64),
    RecordField("expire_timestamp", Type.INT64, since=1, until=1),
    RecordField("topic_id", Type.UUID, since=4, tag=0, default=ZERO_TOPIC_ID),
    flexible=4,
)
_MEMBER = Schema(
    MemberMetadata,
    RecordField("member_id", Type.STRING),
    RecordField("group_instance_id", Type.NULLABLE_STRING, since=3),
    RecordField("client_id", Type.STRING),
    RecordField("client_host", Type.STRING),
    RecordField("rebalance_timeout", Type.INT32, since=1),
    RecordField("session_timeout", Type.INT32),
    RecordField("subscription", Type.BYTES),
    RecordField("assignment", Type.BYTES),
    flexible=4,
)
_GROUP_VALUE = Schema(
    GroupMetadataValue,
    RecordField("protocol_type", Type.STRING),
    RecordField("generation", Type.INT32),
    RecordField("protocol", Type.NULLABLE_STRING),
    RecordField("leader", Type.NULLABLE_STRING),
    RecordField("current_state_timestamp", Type.INT64, since=2),
    RecordField("members", Array(_MEMBER)),
    flexible=4,
)
_VALUES = {OffsetCommitKey: _OFFSET_VALUE, GroupMetadataKey: _GROUP_VALUE}


def encode_key(key: Key) -> bytes:
    match key:
        case OffsetCommitKey():
            return _OFFSET_KEY.encode(key, prefix=1, version=0)
        case GroupMetadataKey():
            return _GROUP_KEY.encode(key, prefix=2, version=0)


def encode_value(value: Value, version: int | None = None) -> bytes:
    """Encode in the given version, or in the version that Kafka 4.1 chooses."""
    match value:
        case OffsetCommitValue():
            if version is None:
                version = _offset_version(value)
            return _OFFSET_VALUE.encode(value, prefix=version, version=version)
        case GroupMetadataValue():
            if version is None:
                version = GROUP_METADATA_VALUE_VERSION
            return _GROUP_VALUE.encode(value, prefix=version, version=version)


def decode_key(data: bytes) -> Key | None:
    """Decode a key; None if it belongs to another group type."""
    schema = _KEYS.get(_version(data))
    if schema is None:
        return None
    key: Key = schema.decode(data, 2, version=0)
    return key


def decode_value(key: Key, data: bytes) -> Value:
    """Decode the value of a key.

    A newer version is decoded as version 4, because later versions only add tagged fields
    (KIP-915).
    """
    schema = _VALUES[type(key)]
    value: Value = schema.decode(data, 2, version=min(_version(data), schema.flexible))
    return value


def _version(data: bytes) -> int:
    if len(data) < 2:
        raise RecordFormatError("no version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise RecordFormatError(f"version {version}")
    return version


def _offset_version(value: OffsetCommitValue) -> int:
    if value.expire_timestamp != NO_TIMESTAMP:
        return OFFSET_COMMIT_VALUE_VERSION_WITH_EXPIRY
    return OFFSET_COMMIT_VALUE_VERSION
