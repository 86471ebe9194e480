"""The cluster's metadata at one offset of the metadata log, as an immutable value.

Every node builds the image by applying the same records in the same order, so two nodes at the same
offset hold equal images. A new image shares its unchanged parts with the previous image, so the two
can be compared cheaply.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from tidelog.model.ids import (
    NO_NODE,
    NO_OFFSET,
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    Offset,
    ProducerId,
    TopicId,
    TopicPartition,
)
from tidelog.protocol.metadata.metadata_records import MetadataRecord, UserScramCredentialRecord
from tidelog.security.acls import AclEntry

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
BROKER_LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32
"""Kafka's ConfigResource types, as used in configuration records and requests."""

CLUSTER_DEFAULT = ""
"""The broker resource name under which cluster-wide dynamic broker configurations are kept."""

RECOVERED = 0
RECOVERING = 1
"""Leader recovery states. An unclean election sets RECOVERING, and the leader sets RECOVERED."""

UNASSIGNED_DIRECTORY = UUID(int=0)
LOST_DIRECTORY = UUID(int=1)
MIGRATING_DIRECTORY = UUID(int=2)
"""Kafka's reserved log directory ids (KIP-858)."""
FIRST_FREE_DIRECTORY = 100
"""Kafka reserves the directory ids below this number."""


@dataclass(frozen=True, slots=True)
class PartitionImage:
    replicas: tuple[NodeId, ...]
    """The replicas in order of preference. The first replica is the preferred leader."""
    isr: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    elr: tuple[NodeId, ...] = ()
    last_known_elr: tuple[NodeId, ...] = ()
    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()
    directories: tuple[UUID, ...] = ()
    """The log directory of each replica, in the order of `replicas`."""
    leader_recovery_state: int = RECOVERED

    @property
    def has_leader(self) -> bool:
        return self.leader != NO_NODE

    @property
    def preferred_leader(self) -> NodeId:
        return self.replicas[0] if self.replicas else NO_NODE

    def directory_of(self, broker: NodeId) -> UUID:
        """The log directory of a broker's replica; UNASSIGNED_DIRECTORY if it is unknown."""
        for replica, directory in zip(self.replicas, self.directories, strict=False):
            if replica == broker:
                return directory
        return UNASSIGNED_DIRECTORY

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(frozen=True, slots=True)
class TopicImage:
    name: str
    topic_id: TopicId
    partitions: Mapping[int, PartitionImage]


@dataclass(frozen=True, slots=True)
class Endpoint:
    host: str
    port: int
    security_protocol: int
    """Kafka's SecurityProtocol id: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL."""


@dataclass(frozen=True, slots=True)
class VersionRange:
    minimum: int
    maximum: int


@dataclass(frozen=True, slots=True)
class BrokerImage:
    id: NodeId
    epoch: BrokerEpoch
    incarnation: UUID
    endpoints: Mapping[str, Endpoint]
    rack: str | None = None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    features: Mapping[str, VersionRange] = field(default_factory=dict)
    directories: tuple[UUID, ...] = ()
    cordoned: tuple[UUID, ...] = ()
    """Directories in which no new replicas are placed (KIP-1066)."""
    shutdown_offset: Offset = field(default=NO_OFFSET, compare=False)
    """The offset at which the broker's controlled shutdown began. The shutdown ends after the other
    brokers have read up to this offset. A snapshot does not contain this offset, so a node that
    loads a snapshot uses a later one.
    """

    @property
    def is_active(self) -> bool:
        """Whether the broker may lead partitions and join in-sync sets (KIP-841)."""
        return not self.fenced and not self.in_controlled_shutdown


@dataclass(frozen=True, slots=True)
class ControllerImage:
    id: NodeId
    incarnation: UUID
    endpoints: Mapping[str, Endpoint]
    features: Mapping[str, VersionRange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClusterImage:
    cluster_id: str = ""
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[TopicId, str] = field(default_factory=dict)
    brokers: Mapping[NodeId, BrokerImage] = field(default_factory=dict)
    controllers: Mapping[NodeId, ControllerImage] = field(default_factory=dict)
    configs: Mapping[tuple[int, str], Mapping[str, str]] = field(default_factory=dict)
    """The configurations by resource type and name.

    Only explicit values are included, no defaults.
    """
    features: Mapping[str, int] = field(default_factory=dict)
    """Finalised feature levels; a feature that is absent has level 0."""
    next_producer_id: ProducerId = 0
    acls: Mapping[UUID, AclEntry] = field(default_factory=dict)
    scram: Mapping[tuple[str, int], UserScramCredentialRecord] = field(
        default_factory=dict, repr=False
    )
    """The SCRAM credentials by user name and mechanism, which no text of an image shows."""
    carried: Mapping[tuple[str | int, ...], MetadataRecord] = field(default_factory=dict)
    """Records that Tidelog keeps but does not act on yet: quotas and delegation tokens."""
    offset: Offset = NO_OFFSET
    """The offset of the last record applied."""
    epoch: LeaderEpoch = 0
    before_transaction: "ClusterImage | None" = None
    """The image before the open metadata transaction. This image is served until the transaction
    ends, and is restored if the transaction is aborted.
    """

    @property
    def visible(self) -> "ClusterImage":
        """The image that brokers and clients see; it contains no open metadata transaction."""
        return self if self.before_transaction is None else self.before_transaction

    def topic(self, topic_id: TopicId) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, of: TopicPartition) -> PartitionImage | None:
        topic = self.topics.get(of.topic)
        return None if topic is None else topic.partitions.get(of.partition)

    def config(self, resource_type: int, name: str) -> Mapping[str, str]:
        """The explicit configuration of a resource; empty if there is none."""
        return self.configs.get((resource_type, name), {})

    def is_active(self, broker: NodeId) -> bool:
        """Whether the broker is registered, unfenced and not shutting down."""
        found = self.brokers.get(broker)
        return found is not None and found.is_active

    def unfenced_brokers(self) -> Iterator[BrokerImage]:
        """Brokers that metadata responses list, in order of id."""
        return (broker for _, broker in sorted(self.brokers.items()) if not broker.fenced)

    def partition_count(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())
