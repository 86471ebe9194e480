"""Kafka's records of a share group in `__consumer_offsets`.

A record type (the version of the key) identifies each kind of record. All values have version 0,
which is flexible. The encoded bytes are identical to Kafka's.
"""

from dataclasses import dataclass
from typing import TypeAlias

from tidelog.coordination.record_codec import Array, RecordField, Schema, Type
from tidelog.model.ids import Millis, TopicId


@dataclass(frozen=True, slots=True)
class ShareGroupMemberMetadataKey:
    group: str
    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMemberMetadataValue:
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShareGroupMetadataKey:
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupMetadataValue:
    epoch: int
    metadata_hash: int


@dataclass(frozen=True, slots=True)
class ShareGroupTargetAssignmentMetadataKey:
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupTargetAssignmentMetadataValue:
    assignment_epoch: int
    assignment_timestamp: Millis = 0


@dataclass(frozen=True, slots=True)
class ShareGroupTargetAssignmentMemberKey:
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class AssignedShareTopic:
    topic_id: TopicId
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShareGroupTargetAssignmentMemberValue:
    topic_partitions: tuple[AssignedShareTopic, ...]


@dataclass(frozen=True, slots=True)
class ShareGroupCurrentMemberAssignmentKey:
    group: str
    member_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupCurrentMemberAssignmentValue:
    member_epoch: int
    previous_member_epoch: int
    state: int = 0
    assigned_partitions: tuple[AssignedShareTopic, ...] = ()


@dataclass(frozen=True, slots=True)
class ShareGroupStatePartitionMetadataKey:
    group: str


@dataclass(frozen=True, slots=True)
class ShareTopicState:
    """The partitions of a topic that have, or will have, state in the share coordinator."""

    topic_id: TopicId
    topic_name: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeletingShareTopic:
    topic_id: TopicId
    topic_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareGroupStatePartitionMetadataValue:
    initializing_topics: tuple[ShareTopicState, ...] = ()
    initialized_topics: tuple[ShareTopicState, ...] = ()
    deleting_topics: tuple[DeletingShareTopic, ...] = ()


ShareGroupKey: TypeAlias = (
    ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)
ShareGroupValue: TypeAlias = (
    ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)
ShareGroupRecord: TypeAlias = tuple[ShareGroupKey, ShareGroupValue | None]
"""A record to write; a value of None is a tombstone."""


def _group_key(entity: type) -> Schema:
    return Schema(entity, RecordField("group", Type.STRING))


def _member_key(entity: type) -> Schema:
    return Schema(entity, RecordField("group", Type.STRING), RecordField("member_id", Type.STRING))


KEY_SCHEMAS: dict[int, tuple[type, Schema]] = {
    10: (ShareGroupMemberMetadataKey, _member_key(ShareGroupMemberMetadataKey)),
    11: (ShareGroupMetadataKey, _group_key(ShareGroupMetadataKey)),
    12: (
        ShareGroupTargetAssignmentMetadataKey,
        _group_key(ShareGroupTargetAssignmentMetadataKey),
    ),
    13: (ShareGroupTargetAssignmentMemberKey, _member_key(ShareGroupTargetAssignmentMemberKey)),
    14: (ShareGroupCurrentMemberAssignmentKey, _member_key(ShareGroupCurrentMemberAssignmentKey)),
    15: (ShareGroupStatePartitionMetadataKey, _group_key(ShareGroupStatePartitionMetadataKey)),
}
"""The class and the schema of the key of each record type."""

_ASSIGNED_TOPIC = Schema(
    AssignedShareTopic,
    RecordField("topic_id", Type.UUID),
    RecordField("partitions", Array(Type.INT32)),
    flexible=0,
)
_TOPIC_STATE = Schema(
    ShareTopicState,
    RecordField("topic_id", Type.UUID),
    RecordField("topic_name", Type.STRING),
    RecordField("partitions", Array(Type.INT32)),
    flexible=0,
)
_DELETING_TOPIC = Schema(
    DeletingShareTopic,
    RecordField("topic_id", Type.UUID),
    RecordField("topic_name", Type.STRING),
    flexible=0,
)

VALUE_SCHEMAS: dict[type, Schema] = {
    ShareGroupMemberMetadataKey: Schema(
        ShareGroupMemberMetadataValue,
        RecordField("rack_id", Type.NULLABLE_STRING),
        RecordField("client_id", Type.STRING),
        RecordField("client_host", Type.STRING),
        RecordField("subscribed_topic_names", Array(Type.STRING)),
        flexible=0,
    ),
    ShareGroupMetadataKey: Schema(
        ShareGroupMetadataValue,
        RecordField("epoch", Type.INT32),
        RecordField("metadata_hash", Type.INT64),
        flexible=0,
    ),
    ShareGroupTargetAssignmentMetadataKey: Schema(
        ShareGroupTargetAssignmentMetadataValue,
        RecordField("assignment_epoch", Type.INT32),
        RecordField("assignment_timestamp", Type.INT64, tag=0, default=0),
        flexible=0,
    ),
    ShareGroupTargetAssignmentMemberKey: Schema(
        ShareGroupTargetAssignmentMemberValue,
        RecordField("topic_partitions", Array(_ASSIGNED_TOPIC)),
        flexible=0,
    ),
    ShareGroupCurrentMemberAssignmentKey: Schema(
        ShareGroupCurrentMemberAssignmentValue,
        RecordField("member_epoch", Type.INT32),
        RecordField("previous_member_epoch", Type.INT32),
        RecordField("state", Type.INT8),
        RecordField("assigned_partitions", Array(_ASSIGNED_TOPIC)),
        flexible=0,
    ),
    ShareGroupStatePartitionMetadataKey: Schema(
        ShareGroupStatePartitionMetadataValue,
        RecordField("initializing_topics", Array(_TOPIC_STATE)),
        RecordField("initialized_topics", Array(_TOPIC_STATE)),
        RecordField("deleting_topics", Array(_DELETING_TOPIC)),
        flexible=0,
    ),
}
"""The schema of the value of each class of keys, in version 0."""
