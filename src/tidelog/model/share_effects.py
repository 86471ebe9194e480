"""The effects of share groups that a request handler may request from its node (KIP-932)."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset, TopicId, TopicPartition


class SharedPartition(NamedTuple):
    """A partition that a share group consumes."""

    topic_id: TopicId
    partition: TopicPartition


class RecordsAcquired(NamedTuple):
    """Records that a member has acquired; `message` explains an error."""

    error: ErrorCode
    message: str | None = None
    records: bytes | None = None
    acquired: tuple[tuple[Offset, Offset, int], ...] = ()
    """The first and the last offset of each range, and its delivery count."""


@dataclass(slots=True)
class AcquireRecords:
    """Acquire records for a member of a share group. -> list[RecordsAcquired], in order.

    The result comes once there are records, on an error or at the timeout.
    """

    group: str
    member: str
    partitions: list[SharedPartition]
    max_records: int
    batch_size: int
    is_strict: bool
    max_bytes: int
    max_wait_ms: int


class RecordsAcknowledged(NamedTuple):
    error: ErrorCode
    message: str | None = None


class PartitionAcknowledgement(NamedTuple):
    partition: SharedPartition
    batches: tuple[tuple[Offset, Offset, tuple[int, ...]], ...]
    """The first and the last offset of each batch, and its acknowledge types."""


@dataclass(slots=True)
class AcknowledgeRecords:
    """Acknowledge records that a member has acquired. -> list[RecordsAcknowledged], in order.

    The result comes once the share coordinator has persisted the changes.
    """

    group: str
    member: str
    acknowledgements: list[PartitionAcknowledgement]


@dataclass(slots=True)
class ReleaseRecords:
    """Release all records that a member has acquired. -> None, once this is persisted."""

    group: str
    member: str
    partitions: list[SharedPartition]
    is_last: bool
    """Whether the group has no other share session on this node."""


ShareEffect: TypeAlias = AcquireRecords | AcknowledgeRecords | ReleaseRecords
