"""Kafka's records of a consumer group in `__consumer_offsets`.

A record type (the version of the key) identifies each kind of record. All values have version 0,
which is flexible from the start. The encoded bytes are identical to Kafka's.
"""

from dataclasses import dataclass
from typing import TypeAlias

from tidelog.coordination.record_codec import (
    Array,
    NullableStruct,
    RecordField,
    Schema,
    Type,
)
from tidelog.model.ids import Millis, TopicId

NO_METADATA_HASH = 0


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadataKey:
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataValue:
    epoch: int
    metadata_hash: int = NO_METADATA_HASH
    """A hash of the subscribed topics, their partition counts and racks."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupPartitionMetadataKey:
    group: str


@dataclass(frozen=True, slots=True)
class PartitionRacks:
    partition: int
    racks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscribedTopicMetadata:
    topic_id: TopicId
    topic_name: str
    num_partitions: int
    partition_metadata: tuple[PartitionRacks, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupPartitionMetadataValue:
    """Written by Kafka 4.0 only; later versions write the hash of the metadata instead."""

    topics: tuple[SubscribedTopicMetadata, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberMetadataKey:
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """What a member of a consumer group has that uses the classic protocol."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataValue:
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMetadataKey:
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadataValue:
    assignment_epoch: int
    assignment_timestamp: Millis = 0


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMemberKey:
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class TargetTopicPartitions:
    topic_id: TopicId
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMemberValue:
    topic_partitions: tuple[TargetTopicPartitions, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupCurrentMemberAssignmentKey:
    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class CurrentTopicPartitions:
    topic_id: TopicId
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None = None
    """The epoch at which the member received each partition; None in records before Kafka 4.3."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignmentValue:
    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[CurrentTopicPartitions, ...]
    partitions_pending_revocation: tuple[CurrentTopicPartitions, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupRegularExpressionKey:
    group: str
    regular_expression: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpressionValue:
    topics: tuple[str, ...]
    version: int
    timestamp: Millis


ConsumerGroupKey: TypeAlias = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
ConsumerGroupValue: TypeAlias = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)
ConsumerGroupRecord: TypeAlias = tuple[ConsumerGroupKey, ConsumerGroupValue | None]
"""A record to write; a value of None is a tombstone."""


def _group_key(entity: type) -> Schema:
    return Schema(entity, RecordField("group", Type.STRING))


def _member_key(entity: type) -> Schema:
    return Schema(entity, RecordField("group", Type.STRING), RecordField("member_id", Type.STRING))


KEY_SCHEMAS: dict[int, tuple[type, Schema]] = {
    3: (ConsumerGroupMetadataKey, _group_key(ConsumerGroupMetadataKey)),
    4: (ConsumerGroupPartitionMetadataKey, _group_key(ConsumerGroupPartitionMetadataKey)),
    5: (ConsumerGroupMemberMetadataKey, _member_key(ConsumerGroupMemberMetadataKey)),
    6: (
        ConsumerGroupTargetAssignmentMetadataKey,
        _group_key(ConsumerGroupTargetAssignmentMetadataKey),
    ),
    7: (
        ConsumerGroupTargetAssignmentMemberKey,
        _member_key(ConsumerGroupTargetAssignmentMemberKey),
    ),
    8: (
        ConsumerGroupCurrentMemberAssignmentKey,
        _member_key(ConsumerGroupCurrentMemberAssignmentKey),
    ),
    16: (
        ConsumerGroupRegularExpressionKey,
        Schema(
            ConsumerGroupRegularExpressionKey,
            RecordField("group", Type.STRING),
            RecordField("regular_expression", Type.STRING),
        ),
    ),
}
"""The class and the schema of the key of each record type."""

_PARTITION_RACKS = Schema(
    PartitionRacks,
    RecordField("partition", Type.INT32),
    RecordField("racks", Array(Type.STRING)),
    flexible=0,
)
_SUBSCRIBED_TOPIC = Schema(
    SubscribedTopicMetadata,
    RecordField("topic_id", Type.UUID),
    RecordField("topic_name", Type.STRING),
    RecordField("num_partitions", Type.INT32),
    RecordField("partition_metadata", Array(_PARTITION_RACKS)),
    flexible=0,
)
_CLASSIC_PROTOCOL = Schema(
    ClassicProtocol,
    RecordField("name", Type.STRING),
    RecordField("metadata", Type.BYTES),
    flexible=0,
)
_CLASSIC_MEMBER = Schema(
    ClassicMemberMetadata,
    RecordField("session_timeout_ms", Type.INT32),
    RecordField("supported_protocols", Array(_CLASSIC_PROTOCOL)),
    flexible=0,
)
_MEMBER_VALUE = Schema(
    ConsumerGroupMemberMetadataValue,
    RecordField("instance_id", Type.NULLABLE_STRING),
    RecordField("rack_id", Type.NULLABLE_STRING),
    RecordField("client_id", Type.STRING),
    RecordField("client_host", Type.STRING),
    RecordField("subscribed_topic_names", Array(Type.STRING)),
    RecordField("subscribed_topic_regex", Type.NULLABLE_STRING),
    RecordField("rebalance_timeout_ms", Type.INT32),
    RecordField("server_assignor", Type.NULLABLE_STRING),
    RecordField("classic_member_metadata", NullableStruct(_CLASSIC_MEMBER), tag=0, default=None),
    flexible=0,
)
_TARGET_PARTITIONS = Schema(
    TargetTopicPartitions,
    RecordField("topic_id", Type.UUID),
    RecordField("partitions", Array(Type.INT32)),
    flexible=0,
)
_CURRENT_PARTITIONS = Schema(
    CurrentTopicPartitions,
    RecordField("topic_id", Type.UUID),
    RecordField("partitions", Array(Type.INT32)),
    RecordField("assignment_epochs", Array(Type.INT32, nullable=True), tag=0, default=None),
    flexible=0,
)
_CURRENT_VALUE = Schema(
    ConsumerGroupCurrentMemberAssignmentValue,
    RecordField("member_epoch", Type.INT32),
    RecordField("previous_member_epoch", Type.INT32),
    RecordField("state", Type.INT8),
    RecordField("assigned_partitions", Array(_CURRENT_PARTITIONS)),
    RecordField("partitions_pending_revocation", Array(_CURRENT_PARTITIONS)),
    flexible=0,
)

VALUE_SCHEMAS: dict[type, Schema] = {
    ConsumerGroupMetadataKey: Schema(
        ConsumerGroupMetadataValue,
        RecordField("epoch", Type.INT32),
        RecordField("metadata_hash", Type.INT64, tag=0, default=NO_METADATA_HASH),
        flexible=0,
    ),
    ConsumerGroupPartitionMetadataKey: Schema(
        ConsumerGroupPartitionMetadataValue,
        RecordField("topics", Array(_SUBSCRIBED_TOPIC)),
        flexible=0,
    ),
    ConsumerGroupMemberMetadataKey: _MEMBER_VALUE,
    ConsumerGroupTargetAssignmentMetadataKey: Schema(
        ConsumerGroupTargetAssignmentMetadataValue,
        RecordField("assignment_epoch", Type.INT32),
        RecordField("assignment_timestamp", Type.INT64, tag=0, default=0),
        flexible=0,
    ),
    ConsumerGroupTargetAssignmentMemberKey: Schema(
        ConsumerGroupTargetAssignmentMemberValue,
        RecordField("topic_partitions", Array(_TARGET_PARTITIONS)),
        flexible=0,
    ),
    ConsumerGroupCurrentMemberAssignmentKey: _CURRENT_VALUE,
    ConsumerGroupRegularExpressionKey: Schema(
        ConsumerGroupRegularExpressionValue,
        RecordField("topics", Array(Type.STRING)),
        RecordField("version", Type.INT64),
        RecordField("timestamp", Type.INT64),
        flexible=0,
    ),
}
"""The schema of the value of each class of keys, in version 0."""
