"""One partition's log: append, read, truncate, delete, on Kafka's files.

Invariant: offsets in [log_start_offset, log_end_offset) are on disk in order, everything below the
recovery point survives power loss, and no state (index, epoch, producer) speaks of an offset at or
past the log end.
"""

from tidelog.log.config import LogConfig
from tidelog.log.results import (
    AbortedTxn,
    Appended,
    AppendOrigin,
    AppendRefused,
    ReadResult,
    Recovery,
    TimestampOffset,
)
from tidelog.model.disk import Disk, File
from tidelog.model.effects import EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, Offset


class PartitionLog:
    """Bytes at rest of one replica of one partition. Not thread-safe: the node's thread owns it."""

    log_start_offset: Offset
    log_end_offset: Offset
    recovery_point: Offset
    """Everything below has been fsynced."""
    directory: str
    config: LogConfig
    recovery: Recovery

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        now: Millis,
        *,
        clean_shutdown: bool,
        recovery_point: Offset = 0,
        log_start_offset: Offset = 0,
    ) -> "PartitionLog":
        """Load the log in `directory`, or create an empty one.

        After an unclean shutdown the tail from the recovery point on is scanned, cut at the last whole
        valid batch, and fsynced before this returns: nobody reads what power loss could still take.
        """
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Bytes in all segments."""
        raise NotImplementedError

    # -- writing

    def append_as_leader(
        self,
        batches: memoryview,
        leader_epoch: LeaderEpoch,
        now: Millis,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> Appended | AppendRefused:
        """Check, assign offsets in place, write. Raises OSError with the log as it was."""
        raise NotImplementedError

    def append_as_follower(self, batches: memoryview) -> Appended | AppendRefused:
        """Write what a leader assigned, byte for byte; a batch cut short at the end is left out."""
        raise NotImplementedError

    # -- reading

    def read(
        self, offset: Offset, max_bytes: int, limit: Offset, *, at_least_one: bool
    ) -> ReadResult | ErrorCode:
        """Where the batches from `offset` on lie, within one segment, below `limit`."""
        raise NotImplementedError

    def offset_for_timestamp(self, timestamp: Millis, limit: Offset) -> TimestampOffset | None:
        """The first record below `limit` that is not older than `timestamp`."""
        raise NotImplementedError

    def max_timestamp_offset(self, limit: Offset) -> TimestampOffset | None:
        """The (first) record with the largest timestamp below `limit`."""
        raise NotImplementedError

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """What a read_committed consumer may see, given the high watermark."""
        raise NotImplementedError

    def aborted_transactions(self, start: Offset, end: Offset) -> tuple[AbortedTxn, ...]:
        """Aborted transactions that overlap [start, end)."""
        raise NotImplementedError

    # -- epochs

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """The newest leader epoch known to this log; -1 when there is none."""
        raise NotImplementedError

    def epoch_end(self, requested: LeaderEpoch) -> EpochEnd:
        """The largest epoch not above `requested` and where it ends; -1, -1 when unknown."""
        raise NotImplementedError

    def epoch_at(self, offset: Offset) -> LeaderEpoch:
        """The epoch of the record at `offset`; -1 when unknown."""
        raise NotImplementedError

    def assign_epoch(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """A leader epoch begins at this offset, whether or not it will have records."""
        raise NotImplementedError

    # -- cutting

    def truncate_to(self, offset: Offset, now: Millis) -> None:
        """Drop every record at or past `offset`."""
        raise NotImplementedError

    def truncate_fully_and_start_at(self, offset: Offset, now: Millis) -> None:
        """Drop every record; the next one is `offset`."""
        raise NotImplementedError

    def advance_log_start(self, offset: Offset) -> None:
        """Records below are gone for readers; their segments go with the next retention run."""
        raise NotImplementedError

    def apply_retention(self, now: Millis, high_watermark: Offset) -> list[Offset]:
        """Delete what time, size or the log start allow; the base offsets of the segments deleted."""
        raise NotImplementedError

    def purge(self, now: Millis) -> None:
        """Remove the files of deleted segments whose file.delete.delay.ms is over; forget idle producers."""
        raise NotImplementedError

    # -- durability

    def needs_flush(self, now: Millis) -> bool:
        """flush.messages or flush.ms is reached, or a rolled segment awaits its fsync."""
        raise NotImplementedError

    def begin_flush(self, now: Millis) -> tuple[tuple[File, ...], Offset]:
        """The files to fsync; once that is done, report `flushed` with the offset returned here."""
        raise NotImplementedError

    def flushed(self, up_to: Offset) -> None:
        """The fsync begun for this offset has ended: the recovery point moves."""
        raise NotImplementedError

    def next_deadline(self) -> Millis | None:
        """When `needs_flush` or `purge` is next worth a call."""
        raise NotImplementedError

    # -- life

    def update_config(self, config: LogConfig) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Write out indexes and producer state and fsync all: the next open may skip the scan."""
        raise NotImplementedError
