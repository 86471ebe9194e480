"""What the log answers: values, slotted or tuples, since one of each passes per request."""

from enum import Enum
from typing import NamedTuple

from tidelog.model.disk import FileSlice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, Offset, ProducerId


class AppendOrigin(Enum):
    """Who asks the leader to append, which decides how much is checked."""

    CLIENT = "client"
    """A produce request: one batch, no control records, sequence numbers in order."""
    CHECKED_CLIENT = "checked client"
    """The same, of a batch whose records have been looked at."""
    COORDINATOR = "coordinator"
    """A group or transaction coordinator: epochs are checked, sequences are not."""
    RAFT_LEADER = "raft leader"
    """The metadata log: many batches, control records welcome, timestamps kept."""


class Appended(NamedTuple):
    base_offset: Offset
    last_offset: Offset
    log_append_time: Millis
    """-1 unless message.timestamp.type is LogAppendTime; a duplicate's is that of its batch."""
    duplicate: bool = False
    """The batch was here already: the offsets are those of its first append."""


class AppendRefused(NamedTuple):
    error: ErrorCode
    message: str
    record_errors: tuple[tuple[int, str], ...] = ()
    """Which records of the batch are to blame, and why, where it was not the batch as a whole."""


class ReadResult(NamedTuple):
    slice: FileSlice | None
    """None: nothing to read between the offset and the limit, or not even one batch fits."""
    end_offset: Offset
    """No record in the slice has this offset or a later one."""


class TimestampOffset(NamedTuple):
    offset: Offset
    timestamp: Millis
    leader_epoch: LeaderEpoch


class AbortedTxn(NamedTuple):
    """One aborted transaction as the transaction index keeps it."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


class Damage(NamedTuple):
    """Bytes that were durable and are no longer sound: reported, not served, never cut."""

    first_offset: Offset
    end_offset: Offset
    reason: str


class Recovery(NamedTuple):
    """What opening the log found out."""

    scanned_bytes: int = 0
    truncated_bytes: int = 0
    damages: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()
    """One sentence each, for the broker's own log."""
    doubts: tuple[str, ...] = ()
    """Why the log, though it reads well, cannot be shown to be all that it was."""

    @property
    def is_proven(self) -> bool:
        """Whether the log is surely all that a clean shutdown left (F54)."""
        return not self.damages and not self.doubts
