"""The effects that a request handler may request from its node.

A handler is a generator. It yields an effect and is resumed with the effect's result, which the
effect's docstring names after `->`. At its end, the handler returns the response. A handler that
waits for acks, records or a metadata commit is not resumed until they arrive, so a parked request
takes memory but no CPU time.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from tidelog.model.authentication import Authenticate, BeginAuthentication
from tidelog.model.disk import FileSlice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import (
    NO_EPOCH,
    NO_NODE,
    NO_OFFSET,
    NO_TIMESTAMP,
    BrokerEpoch,
    LeaderEpoch,
    Millis,
    NodeId,
    Offset,
    ProducerId,
    TopicPartition,
)
from tidelog.model.jobs import AnyJob
from tidelog.model.share_effects import ShareEffect
from tidelog.model.watches import PartitionWatch, SessionWatch

# -- Produce ---------------------------------------------------------------------------------------


class PartitionAppend(NamedTuple):
    partition: TopicPartition
    records: memoryview | None
    """A writable view of the batch, valid until the event that delivered it has been handled."""


class AppendResult(NamedTuple):
    error: ErrorCode
    base_offset: Offset = NO_OFFSET
    log_append_time: Millis = NO_TIMESTAMP
    log_start_offset: Offset = NO_OFFSET
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    """Index and reason of each invalid record of the batch."""


@dataclass(slots=True)
class AppendBatches:
    """Append as leader. -> list[AppendResult], in order, once `acks` is met or at the timeout."""

    appends: list[PartitionAppend]
    acks: int
    timeout_ms: int


@dataclass(slots=True)
class AppendInTransaction:
    """Append as leader, once the transaction is verified (KIP-890). -> as for `AppendBatches`"""

    transactional_id: str
    appends: list[PartitionAppend]
    acks: int
    timeout_ms: int
    adds: bool
    """Whether to add the partitions to the transaction (transaction version 2)."""
    names_abortable: bool
    """Whether the client knows the error TRANSACTION_ABORTABLE."""


@dataclass(slots=True)
class JoinTransaction:
    """Verify that a partition of this leader is in a transaction, or add it. -> ErrorCode"""

    transactional_id: str
    producer_id: ProducerId
    epoch: int
    partition: TopicPartition
    adds: bool


class MarkerWrite(NamedTuple):
    """A marker that ends a producer's transaction in one partition."""

    partition: TopicPartition
    producer_id: ProducerId
    epoch: int
    commits: bool
    coordinator_epoch: LeaderEpoch
    raises_epoch: bool
    """Whether the epoch is higher than that of the transaction's records (transaction version 2)"""


@dataclass(slots=True)
class WriteMarkers:
    """Append markers as leader. -> list[ErrorCode], in order, once they are committed."""

    markers: list[MarkerWrite]
    timeout_ms: int


# -- Fetch -----------------------------------------------------------------------------------------


class PartitionFetch(NamedTuple):
    partition: TopicPartition
    offset: Offset
    max_bytes: int
    current_leader_epoch: LeaderEpoch = NO_EPOCH
    last_fetched_epoch: LeaderEpoch = NO_EPOCH
    log_start_offset: Offset = NO_OFFSET
    watch: PartitionWatch | None = None
    """The watch to notify when the partition moves."""


class EpochEnd(NamedTuple):
    epoch: LeaderEpoch
    end_offset: Offset


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: Offset


class FetchResult(NamedTuple):
    error: ErrorCode
    high_watermark: Offset = NO_OFFSET
    last_stable_offset: Offset = NO_OFFSET
    log_start_offset: Offset = NO_OFFSET
    records: FileSlice | None = None
    diverging: EpochEnd | None = None
    preferred_read_replica: NodeId = NO_NODE
    aborted: tuple[AbortedTransaction, ...] | None = None
    """None if the read is not read_committed, or if the next batch did not fit."""
    is_at_rest: bool = False
    """Whether there is nothing to read and no error. The partition's next change notifies the
    watch."""


class Reader(NamedTuple):
    """A consumer that may also read from followers (KIP-392)."""

    rack: str
    """The rack that the consumer names; empty if it names none."""
    listener: str


@dataclass(slots=True)
class FetchBatches:
    """Read batches. -> list[FetchResult], in order.

    The result comes once min_bytes are available, on an error or at the timeout. In a fetch
    session, the node replaces `reads` with the partitions that have moved.
    """

    reads: list[PartitionFetch]
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    read_committed: bool = False
    replica: NodeId = NO_NODE
    replica_epoch: BrokerEpoch = -1
    reader: Reader | None = None
    session: SessionWatch[Any] | None = None


# -- Offsets, epochs, deletion, directories --------------------------------------------------------


class OffsetQuery(NamedTuple):
    partition: TopicPartition
    timestamp: Millis
    """A time, or -1 latest, -2 earliest, -3 max timestamp, -4 earliest local, -5 latest tiered."""
    current_leader_epoch: LeaderEpoch = NO_EPOCH


class OffsetFound(NamedTuple):
    error: ErrorCode
    offset: Offset = NO_OFFSET
    timestamp: Millis = NO_TIMESTAMP
    leader_epoch: LeaderEpoch = NO_EPOCH


@dataclass(slots=True)
class FindOffsets:
    """Find offsets by timestamp. -> list[OffsetFound], in order."""

    queries: list[OffsetQuery]
    read_committed: bool = False
    replica: NodeId = NO_NODE


class EpochQuery(NamedTuple):
    partition: TopicPartition
    current_leader_epoch: LeaderEpoch
    leader_epoch: LeaderEpoch


class EpochFound(NamedTuple):
    error: ErrorCode
    leader_epoch: LeaderEpoch = NO_EPOCH
    end_offset: Offset = NO_OFFSET


@dataclass(slots=True)
class FindEpochEnds:
    """Find the end offsets of leader epochs. -> list[EpochFound], in order."""

    queries: list[EpochQuery]


class RecordDeletion(NamedTuple):
    partition: TopicPartition
    before: Offset
    """Records below this offset are deleted; -1 means the high watermark."""


class RecordsDeleted(NamedTuple):
    error: ErrorCode
    low_watermark: Offset = NO_OFFSET


@dataclass(slots=True)
class DeleteRecordsBefore:
    """Delete records at the start of logs. -> list[RecordsDeleted], in order.

    The result comes once all live replicas have deleted the records, or at the timeout.
    """

    deletions: list[RecordDeletion]
    timeout_ms: int


class ReplicaOnDisk(NamedTuple):
    partition: TopicPartition
    size: int
    offset_lag: int
    is_future: bool = False
    """Whether the replica is being moved here from another directory."""


class DescribedDirectory(NamedTuple):
    error: ErrorCode
    path: str
    replicas: tuple[ReplicaOnDisk, ...]
    total_bytes: int = -1
    usable_bytes: int = -1


class ActiveProducer(NamedTuple):
    """The state of an idempotent or transactional producer in a partition's log."""

    producer_id: ProducerId
    epoch: int
    last_sequence: int
    last_timestamp: Millis
    coordinator_epoch: int
    transaction_start: Offset
    """The first offset of the producer's open transaction; -1 if it has none."""


class ProducersFound(NamedTuple):
    error: ErrorCode
    producers: tuple[ActiveProducer, ...] = ()


@dataclass(slots=True)
class DescribeProducers:
    """Describe producers, on any replica. -> list[ProducersFound], in order."""

    partitions: list[TopicPartition]


@dataclass(slots=True)
class DescribeDirectories:
    """Describe the log directories. -> list[DescribedDirectory]."""

    partitions: frozenset[TopicPartition] | None
    """The partitions to describe; None means every partition."""


@dataclass(slots=True)
class MoveReplicas:
    """Move replicas to other log directories of this broker. -> list[ErrorCode], in order."""

    moves: list[tuple[TopicPartition, str]]
    """Each partition with the path of its new directory."""


# -- Work in slices --------------------------------------------------------------------------------


@dataclass(slots=True)
class Pause:
    """Let the node serve other requests first. -> None, when the node resumes the handler.

    A handler yields this effect after every slice of long work (`api/slicing.py`). The next request
    of the same connection starts only when the handler is done.
    """


# -- Metadata and groups ---------------------------------------------------------------------------


@dataclass(slots=True)
class ChangeMetadata:
    """Send a request to the controller. -> the response, once the change is committed and applied.

    The request and the response are kio's messages in their newest version.
    """

    request: Any
    is_brokers_own: bool = False
    """Whether the broker needs the change itself, so that the client's rights do not matter."""


@dataclass(slots=True)
class AwaitElections:
    """If a leader of these topics was just lost, wait until the topics have leaders again.

    -> tuple[NodeId, ...]: the recently fenced brokers that metadata responses still list.
    """

    topics: Collection[str] | None
    """Topic names; None means all topics."""


@dataclass(slots=True)
class AskQuorum:
    """Pass a Vote, BeginQuorumEpoch, EndQuorumEpoch or FetchSnapshot request. -> the response."""

    request: Any


@dataclass(slots=True)
class FetchMetadata:
    """Read the metadata log, if this node leads it. -> FetchResponse, once there are records."""

    request: Any


@dataclass(slots=True)
class Coordinate:
    """Pass a request to the coordinator of a key. -> the response, once it is available."""

    key: str
    request: Any
    topic: str = "__consumer_offsets"
    """The internal topic in which the coordinator keeps its state."""


@dataclass(slots=True)
class CoordinateAll:
    """Pass a request to every coordinator of a topic on this node. -> the list of responses."""

    request: Any
    topic: str = "__consumer_offsets"


# -- Background jobs -------------------------------------------------------------------------------


@dataclass(slots=True)
class RunJob:
    """Run a job off the node's thread. -> the job's result, or `JobFailed`."""

    job: AnyJob


Effect: TypeAlias = (
    AppendBatches
    | AppendInTransaction
    | JoinTransaction
    | WriteMarkers
    | FetchBatches
    | FindOffsets
    | FindEpochEnds
    | DeleteRecordsBefore
    | DescribeProducers
    | DescribeDirectories
    | MoveReplicas
    | ChangeMetadata
    | AwaitElections
    | AskQuorum
    | FetchMetadata
    | Coordinate
    | CoordinateAll
    | BeginAuthentication
    | Authenticate
    | ShareEffect
    | RunJob
    | Pause
)
