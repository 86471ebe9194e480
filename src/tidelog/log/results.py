"""Results of log operations, as named tuples, because every request creates some of them."""

from enum import Enum
from typing import NamedTuple

from tidelog.model.disk import FileSlice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, Offset, ProducerId


class AppendOrigin(Enum):
    """The origin of batches that the leader appends. It determines which checks apply."""

    CLIENT = "client"
    """A produce request: one batch, without control records, with sequence numbers in order."""
    CHECKED_CLIENT = "checked client"
    """A produce request whose records have already been inspected."""
    COORDINATOR = "coordinator"
    """A group or transaction coordinator: epochs are checked, but sequence numbers are not."""
    EPOCH_MARKER = "epoch marker"
    """A transaction marker that raises the producer's epoch (transaction version 2)."""
    RAFT_LEADER = "raft leader"
    """The metadata log: many batches; control records are allowed, and timestamps are kept."""


class Appended(NamedTuple):
    base_offset: Offset
    last_offset: Offset
    log_append_time: Millis
    """The append time if message.timestamp.type is LogAppendTime, else -1. A duplicate has the
    timestamp that its first append stored."""
    duplicate: bool = False
    """Whether the batch was already in the log. If so, the offsets are from its first append."""


class AppendRefused(NamedTuple):
    error: ErrorCode
    message: str
    record_errors: tuple[tuple[int, str], ...] = ()
    """Index and reason of each invalid record; empty if the batch as a whole is refused."""


class ReadResult(NamedTuple):
    slice: FileSlice | None
    """None if there is nothing between the offset and the limit, or the first batch is too large.
    """
    end_offset: Offset
    """Every record in the slice has a smaller offset."""


class TimestampOffset(NamedTuple):
    offset: Offset
    timestamp: Millis
    leader_epoch: LeaderEpoch


class AbortedTxn(NamedTuple):
    """One aborted transaction, as stored in the transaction index."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


class ProducerSequence(NamedTuple):
    """The first sequence number of a batch, and its producer."""

    producer_id: ProducerId
    producer_epoch: int
    base_sequence: int


class Damage(NamedTuple):
    """An offset range that was durable and is now lost or unreadable. Reads never return it."""

    first_offset: Offset
    end_offset: Offset
    reason: str


class Recovery(NamedTuple):
    """The result of opening a log."""

    scanned_bytes: int = 0
    truncated_bytes: int = 0
    damages: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()
    """Findings for the broker's own log, one sentence each."""
    doubts: tuple[str, ...] = ()
    """Reasons why a log without visible damage may still be incomplete."""

    @property
    def is_proven(self) -> bool:
        """Whether it is certain that the log is as complete as a clean shutdown left it (F54)."""
        return not self.damages and not self.doubts
