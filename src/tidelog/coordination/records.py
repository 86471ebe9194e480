"""Kafka's records in `__consumer_offsets`: the state that survives a coordinator failover.

Keys and values are prefixed with a version. The version of a key defines the type of the record: 0
and 1 mean the committed offset of a partition, 2 means a classic group, and later versions belong
to other group types. The version of a value is the version of its schema, so records of older Kafka
versions are readable. The encoded bytes are identical to Kafka's.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidelog.coordination.fast_offsets import fast_offset_key, fast_offset_value
from tidelog.coordination.groups.consumer.records import (
    KEY_SCHEMAS as CONSUMER_KEYS,
)
from tidelog.coordination.groups.consumer.records import (
    VALUE_SCHEMAS as CONSUMER_VALUES,
)
from tidelog.coordination.groups.consumer.records import (
    ConsumerGroupKey,
    ConsumerGroupValue,
)
from tidelog.coordination.groups.share.share_group_records import (
    KEY_SCHEMAS as SHARE_KEYS,
)
from tidelog.coordination.groups.share.share_group_records import (
    VALUE_SCHEMAS as SHARE_VALUES,
)
from tidelog.coordination.groups.share.share_group_records import (
    ShareGroupKey,
    ShareGroupValue,
)
from tidelog.coordination.record_codec import Array, RecordField, RecordFormatError, Schema, Type
from tidelog.model.ids import NO_EPOCH, NO_TIMESTAMP, ZERO_TOPIC_ID, LeaderEpoch, Millis, Offset

OFFSET_COMMIT_VALUE_VERSION = 4
_OFFSET_KEY_PREFIX = b"\0\1"
OFFSET_COMMIT_VALUE_VERSION_WITH_EXPIRY = 1
GROUP_METADATA_VALUE_VERSION = 3


class OffsetCommitKey(NamedTuple):
    group: str
    topic: str
    partition: int


class OffsetCommitValue(NamedTuple):
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


Key: TypeAlias = OffsetCommitKey | GroupMetadataKey | ConsumerGroupKey | ShareGroupKey
Value: TypeAlias = OffsetCommitValue | GroupMetadataValue | ConsumerGroupValue | ShareGroupValue

_OFFSET_KEY = Schema(
    OffsetCommitKey,
    RecordField("group", Type.STRING),
    RecordField("topic", Type.STRING),
    RecordField("partition", Type.INT32),
)
_GROUP_KEY = Schema(GroupMetadataKey, RecordField("group", Type.STRING))
_KEYS = {
    0: _OFFSET_KEY,
    1: _OFFSET_KEY,
    2: _GROUP_KEY,
    **{number: schema for number, (_, schema) in CONSUMER_KEYS.items()},
    **{number: schema for number, (_, schema) in SHARE_KEYS.items()},
}
_RECORD_TYPES: dict[type, int] = {
    OffsetCommitKey: 1,
    GroupMetadataKey: 2,
    **{entity: number for number, (entity, _) in CONSUMER_KEYS.items()},
    **{entity: number for number, (entity, _) in SHARE_KEYS.items()},
}

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
_VALUES: dict[type, Schema] = {
    OffsetCommitKey: _OFFSET_VALUE,
    GroupMetadataKey: _GROUP_VALUE,
    **CONSUMER_VALUES,
    **SHARE_VALUES,
}
_SCHEMAS = {schema.entity: schema for schema in _VALUES.values()}


def encode_key(key: Key) -> bytes:
    number = _RECORD_TYPES[type(key)]
    return _KEYS[number].encode(key, prefix=number, version=0)


def encode_value(value: Value, version: int | None = None) -> bytes:
    """Encode in the given version, or in the version that Kafka 4.3 chooses."""
    if version is None:
        version = _version_of(value)
    return _SCHEMAS[type(value)].encode(value, prefix=version, version=version)


def decode_key(data: bytes) -> Key | None:
    """Decode a key; None if it belongs to an unknown group type."""
    if data[:2] == _OFFSET_KEY_PREFIX and (fast := fast_offset_key(data)) is not None:
        return OffsetCommitKey(*fast)
    schema = _KEYS.get(_version(data))
    if schema is None:
        return None
    key: Key = schema.decode(data, 2, version=0)
    return key


def decode_value(key: Key, data: bytes) -> Value:
    """Decode the value of a key.

    A newer version is decoded as the first flexible version, because later versions only add tagged
    fields (KIP-915).
    """
    if type(key) is OffsetCommitKey and (fast := fast_offset_value(data)) is not None:
        return OffsetCommitValue(*fast)
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


def _version_of(value: Value) -> int:
    match value:
        case OffsetCommitValue() if value.expire_timestamp != NO_TIMESTAMP:
            return OFFSET_COMMIT_VALUE_VERSION_WITH_EXPIRY
        case OffsetCommitValue():
            return OFFSET_COMMIT_VALUE_VERSION
        case GroupMetadataValue():
            return GROUP_METADATA_VALUE_VERSION
        case _:
            return 0
