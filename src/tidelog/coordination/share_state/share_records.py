"""Kafka's records in `__share_group_state`.

A ShareSnapshot holds the whole state of a share partition. A ShareUpdate holds what has changed
since the last snapshot. The encoded bytes are identical to Kafka's.
"""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias
from uuid import UUID

from tidelog.coordination.delivery.stored_state import StateBatch
from tidelog.coordination.record_codec import Array, RecordField, RecordFormatError, Schema, Type
from tidelog.coordination.runtime.decision import LogRecord
from tidelog.model.ids import LeaderEpoch, Millis, Offset, TopicId

SHARE_STATE_TOPIC = "__share_group_state"
NO_COUNT = -1

_SNAPSHOT, _UPDATE = 0, 1


class SharePartitionKey(NamedTuple):
    group: str
    topic_id: TopicId
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareSnapshot:
    snapshot_epoch: int
    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    delivery_complete_count: int = NO_COUNT
    create_timestamp: Millis = 0
    write_timestamp: Millis = 0
    batches: tuple[StateBatch, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareUpdate:
    snapshot_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    delivery_complete_count: int = NO_COUNT
    batches: tuple[StateBatch, ...] = ()


class ShareStateRecord(NamedTuple):
    key: SharePartitionKey
    value: ShareSnapshot | ShareUpdate | None
    """None deletes the state."""


@dataclass(frozen=True, slots=True)
class _Key:
    group: str
    topic_id: UUID
    partition: int


_Field: TypeAlias = RecordField
_KEY = Schema(
    _Key,
    _Field("group", Type.STRING),
    _Field("topic_id", Type.UUID),
    _Field("partition", Type.INT32),
)
_BATCH = Schema(
    StateBatch,
    _Field("first", Type.INT64),
    _Field("last", Type.INT64),
    _Field("state", Type.INT8),
    _Field("delivery_count", Type.INT16),
    flexible=0,
)
_COUNT = _Field("delivery_complete_count", Type.INT32, tag=0, default=NO_COUNT)
_SNAPSHOT_VALUE = Schema(
    ShareSnapshot,
    _Field("snapshot_epoch", Type.INT32),
    _Field("state_epoch", Type.INT32),
    _Field("leader_epoch", Type.INT32),
    _Field("start_offset", Type.INT64),
    _COUNT,
    _Field("create_timestamp", Type.INT64),
    _Field("write_timestamp", Type.INT64),
    _Field("batches", Array(_BATCH)),
    flexible=0,
)
_UPDATE_VALUE = Schema(
    ShareUpdate,
    _Field("snapshot_epoch", Type.INT32),
    _Field("leader_epoch", Type.INT32),
    _Field("start_offset", Type.INT64),
    _COUNT,
    _Field("batches", Array(_BATCH)),
    flexible=0,
)


def encode_record(record: ShareStateRecord) -> LogRecord:
    key = _Key(*record.key)
    match record.value:
        case ShareUpdate() as update:
            value = _UPDATE_VALUE.encode(update, prefix=0, version=0)
            return _KEY.encode(key, prefix=_UPDATE, version=0), value
        case ShareSnapshot() as snapshot:
            value = _SNAPSHOT_VALUE.encode(snapshot, prefix=0, version=0)
            return _KEY.encode(key, prefix=_SNAPSHOT, version=0), value
        case None:
            return _KEY.encode(key, prefix=_SNAPSHOT, version=0), None


def decode_record(key: bytes, value: bytes | None) -> ShareStateRecord | None:
    """Decode a record; None if its type is unknown, or if it says nothing."""
    if len(key) < 2:
        raise RecordFormatError("no type")
    kind = int.from_bytes(key[:2], "big")
    if kind not in (_SNAPSHOT, _UPDATE):
        return None
    decoded: _Key = _KEY.decode(key, 2, version=0)
    found = SharePartitionKey(decoded.group, decoded.topic_id, decoded.partition)
    if value is None:
        return ShareStateRecord(found, None) if kind == _SNAPSHOT else None
    schema = _SNAPSHOT_VALUE if kind == _SNAPSHOT else _UPDATE_VALUE
    return ShareStateRecord(found, schema.decode(value, 2, version=0))
