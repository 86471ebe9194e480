"""Kafka's KRaft metadata records: one class per record for all of its versions.

A field declares its encoding: its type, the first version that has the field (`Since`), and its tag
if it is a tagged field (`Tag`). `codec` reads and writes the records; the classes hold no code. If
a version lacks a field, the field has its default.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple, TypeAlias
from uuid import UUID


class Wire(NamedTuple):
    """The type of a field, or of an array's elements, in Kafka's schema language."""

    kafka_type: str
    array: bool = False
    nullable: bool = False


class Since(NamedTuple):
    version: int


class Tag(NamedTuple):
    number: int


Int8: TypeAlias = Annotated[int, Wire("int8")]
Int16: TypeAlias = Annotated[int, Wire("int16")]
UInt16: TypeAlias = Annotated[int, Wire("uint16")]
Int32: TypeAlias = Annotated[int, Wire("int32")]
Int64: TypeAlias = Annotated[int, Wire("int64")]
Float64: TypeAlias = Annotated[float, Wire("float64")]
Bool: TypeAlias = Annotated[bool, Wire("bool")]
String: TypeAlias = Annotated[str, Wire("string")]
NullableString: TypeAlias = Annotated[str | None, Wire("string", nullable=True)]
Bytes: TypeAlias = Annotated[bytes, Wire("bytes")]
Uuid: TypeAlias = Annotated[UUID, Wire("uuid")]
Int32s: TypeAlias = Annotated[tuple[int, ...], Wire("int32", array=True)]
NullableInt32s: TypeAlias = Annotated[
    tuple[int, ...] | None, Wire("int32", array=True, nullable=True)
]
Uuids: TypeAlias = Annotated[tuple[UUID, ...], Wire("uuid", array=True)]
NullableUuids: TypeAlias = Annotated[
    tuple[UUID, ...] | None, Wire("uuid", array=True, nullable=True)
]
Strings: TypeAlias = Annotated[tuple[str, ...], Wire("string", array=True)]

NO_CHANGE = -2
"""The value of `leader` in a PartitionChangeRecord that does not change the leader."""


# -- Brokers and controllers -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPoint:
    name: String
    host: String
    port: UInt16
    security_protocol: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    name: String
    min_supported_version: Int16
    max_supported_version: Int16


EndPoints: TypeAlias = Annotated[tuple[EndPoint, ...], Wire("EndPoint", array=True)]
Features: TypeAlias = Annotated[tuple[Feature, ...], Wire("Feature", array=True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerRecord:
    API_KEY: ClassVar = 0
    MAX_VERSION: ClassVar = 4
    broker_id: Int32
    is_migrating_zk_broker: Annotated[Bool, Since(2)] = False
    incarnation_id: Uuid
    broker_epoch: Int64
    end_points: EndPoints
    features: Features
    rack: NullableString
    fenced: Bool = True
    in_controlled_shutdown: Annotated[Bool, Since(1)] = False
    log_dirs: Annotated[Uuids, Since(3), Tag(0)] = ()
    cordoned_log_dirs: Annotated[NullableUuids, Since(4), Tag(1)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnregisterBrokerRecord:
    API_KEY: ClassVar = 1
    MAX_VERSION: ClassVar = 0
    broker_id: Int32
    broker_epoch: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceBrokerRecord:
    API_KEY: ClassVar = 7
    MAX_VERSION: ClassVar = 0
    id: Int32
    epoch: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfenceBrokerRecord:
    API_KEY: ClassVar = 8
    MAX_VERSION: ClassVar = 0
    id: Int32
    epoch: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistrationChangeRecord:
    API_KEY: ClassVar = 17
    MAX_VERSION: ClassVar = 3
    broker_id: Int32
    broker_epoch: Int64
    fenced: Annotated[Int8, Tag(0)] = 0
    """-1 unfenced, 0 no change, 1 fenced."""
    in_controlled_shutdown: Annotated[Int8, Since(1), Tag(1)] = 0
    """0 no change, 1 in controlled shutdown."""
    log_dirs: Annotated[Uuids, Since(2), Tag(2)] = ()
    cordoned_log_dirs: Annotated[NullableUuids, Since(3), Tag(3)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterControllerRecord:
    API_KEY: ClassVar = 27
    MAX_VERSION: ClassVar = 0
    controller_id: Int32
    incarnation_id: Uuid
    zk_migration_ready: Bool
    end_points: EndPoints
    features: Features


# -- Topics and partitions -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRecord:
    API_KEY: ClassVar = 2
    MAX_VERSION: ClassVar = 0
    name: String
    topic_id: Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTopicRecord:
    """Removes the topic and, with it, all its partitions and its configuration."""

    API_KEY: ClassVar = 9
    MAX_VERSION: ClassVar = 0
    topic_id: Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRecord:
    API_KEY: ClassVar = 3
    MAX_VERSION: ClassVar = 2
    partition_id: Int32 = -1
    topic_id: Uuid
    replicas: Int32s
    isr: Int32s
    removing_replicas: Int32s = ()
    adding_replicas: Int32s = ()
    leader: Int32 = -1
    leader_recovery_state: Annotated[Int8, Tag(0)] = 0
    leader_epoch: Int32 = -1
    partition_epoch: Int32 = -1
    directories: Annotated[Uuids, Since(1)] = ()
    eligible_leader_replicas: Annotated[NullableInt32s, Since(2), Tag(1)] = None
    last_known_elr: Annotated[NullableInt32s, Since(2), Tag(2)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChangeRecord:
    """A change of a partition. A field whose value is the default stays unchanged.

    The default is -2 for the leader, -1 for its recovery state, and None for all other fields.
    """

    API_KEY: ClassVar = 5
    MAX_VERSION: ClassVar = 2
    partition_id: Int32 = -1
    topic_id: Uuid
    isr: Annotated[NullableInt32s, Tag(0)] = None
    leader: Annotated[Int32, Tag(1)] = NO_CHANGE
    replicas: Annotated[NullableInt32s, Tag(2)] = None
    removing_replicas: Annotated[NullableInt32s, Tag(3)] = None
    adding_replicas: Annotated[NullableInt32s, Tag(4)] = None
    leader_recovery_state: Annotated[Int8, Tag(5)] = -1
    eligible_leader_replicas: Annotated[NullableInt32s, Since(2), Tag(6)] = None
    last_known_elr: Annotated[NullableInt32s, Since(2), Tag(7)] = None
    directories: Annotated[NullableUuids, Since(1), Tag(8)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearElrRecord:
    """An empty topic name clears the eligible leader replicas of every topic."""

    API_KEY: ClassVar = 28
    MAX_VERSION: ClassVar = 0
    topic_name: String


# -- Configurations, features, producer ids --------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigRecord:
    """A value of None deletes the key."""

    API_KEY: ClassVar = 4
    MAX_VERSION: ClassVar = 0
    resource_type: Int8
    resource_name: String
    name: String
    value: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelRecord:
    API_KEY: ClassVar = 12
    MAX_VERSION: ClassVar = 0
    name: String
    feature_level: Int16


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsRecord:
    API_KEY: ClassVar = 15
    MAX_VERSION: ClassVar = 0
    broker_id: Int32
    broker_epoch: Int64 = -1
    next_producer_id: Int64


# -- Transactions of the metadata log, and no-ops --------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginTransactionRecord:
    API_KEY: ClassVar = 23
    MAX_VERSION: ClassVar = 0
    name: Annotated[NullableString, Tag(0)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransactionRecord:
    API_KEY: ClassVar = 24
    MAX_VERSION: ClassVar = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortTransactionRecord:
    API_KEY: ClassVar = 25
    MAX_VERSION: ClassVar = 0
    reason: Annotated[NullableString, Tag(0)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoOpRecord:
    API_KEY: ClassVar = 20
    MAX_VERSION: ClassVar = 0


# -- Security, quotas, and records of older clusters -----------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessControlEntryRecord:
    API_KEY: ClassVar = 18
    MAX_VERSION: ClassVar = 0
    id: Uuid
    resource_type: Int8
    resource_name: String
    pattern_type: Int8
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveAccessControlEntryRecord:
    API_KEY: ClassVar = 19
    MAX_VERSION: ClassVar = 0
    id: Uuid


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntity:
    entity_type: String
    entity_name: NullableString


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuotaRecord:
    API_KEY: ClassVar = 14
    MAX_VERSION: ClassVar = 0
    entity: Annotated[tuple[QuotaEntity, ...], Wire("QuotaEntity", array=True)]
    key: String
    value: Float64
    remove: Bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UserScramCredentialRecord:
    API_KEY: ClassVar = 11
    MAX_VERSION: ClassVar = 0
    name: String
    mechanism: Int8
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveUserScramCredentialRecord:
    API_KEY: ClassVar = 22
    MAX_VERSION: ClassVar = 0
    name: String
    mechanism: Int8


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationTokenRecord:
    API_KEY: ClassVar = 10
    MAX_VERSION: ClassVar = 0
    owner: String
    requester: String
    renewers: Strings
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveDelegationTokenRecord:
    API_KEY: ClassVar = 26
    MAX_VERSION: ClassVar = 0
    token_id: String


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkMigrationStateRecord:
    API_KEY: ClassVar = 21
    MAX_VERSION: ClassVar = 0
    zk_migration_state: Int8


MetadataRecord: TypeAlias = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | BrokerRegistrationChangeRecord
    | RegisterControllerRecord
    | TopicRecord
    | RemoveTopicRecord
    | PartitionRecord
    | PartitionChangeRecord
    | ClearElrRecord
    | ConfigRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | NoOpRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | ClientQuotaRecord
    | UserScramCredentialRecord
    | RemoveUserScramCredentialRecord
    | DelegationTokenRecord
    | RemoveDelegationTokenRecord
    | ZkMigrationStateRecord
)
