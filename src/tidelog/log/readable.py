"""The read side of a partition's log: reads, searches by time, leader epochs and index repair.

Invariant: a read returns only batches that were written to this log. If offsets are missing for any
reason other than compaction, a read ends before the gap, and a read that starts at the gap fails
(F54).
"""

from collections.abc import Callable
from typing import TypeVar

from tidelog.log.checkpoints.epochs import EpochStart
from tidelog.log.config import LogConfig
from tidelog.log.indexes import timestamps
from tidelog.log.indexes.index_repair import SLICE, StillIndexing
from tidelog.log.indexes.timestamps import NewestSearch, TimeSearch
from tidelog.log.recovery import epoch_checks
from tidelog.log.recovery.loading import LoadedLog
from tidelog.log.recovery.upkeep import Upkeep
from tidelog.log.recovery.verification import LogVerification
from tidelog.log.results import AbortedTxn, Damage, ProducerSequence, ReadResult
from tidelog.log.segments import reading
from tidelog.log.segments.scan import BrokenChainError
from tidelog.log.tail import LogTail
from tidelog.model.disk import Disk, FileSlice
from tidelog.model.effects import ActiveProducer, EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import LeaderEpoch, Millis, Offset, ProducerId

T = TypeVar("T")


class ReadableLog:
    __slots__ = (
        "_at_rest",
        "_disk",
        "_epochs_are_checked",
        "_tail",
        "_upkeep",
        "log_start_offset",
        "recovery",
        "was_cleaned",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        loaded: LoadedLog,
    ) -> None:
        self._disk = disk
        self._tail = LogTail(disk, directory, config, loaded)
        self._upkeep = Upkeep(disk, directory, loaded.recovery.damages, loaded.log_end_offset)
        self._epochs_are_checked = False
        self._at_rest = [(one.base_offset, one.size) for one in loaded.segments if one.size]
        """The base offset and size of each segment that earlier runs wrote and this run has not
        verified.
        """
        self.log_start_offset: Offset = loaded.log_start_offset
        self.recovery = loaded.recovery
        """The result of opening the log."""
        self.was_cleaned = loaded.was_cleaned
        """Whether compaction may have removed records, so that offsets may be missing."""

    @property
    def config(self) -> LogConfig:
        return self._tail.config

    @property
    def log_end_offset(self) -> Offset:
        """The offset of the next record."""
        return self._tail.end_offset

    @property
    def size(self) -> int:
        """The size of all segments in bytes."""
        return self._tail.segments.size

    @property
    def first_segment_offset(self) -> Offset:
        """The base offset of the oldest segment, which is at or before the log start offset."""
        return self._tail.segments.first.base_offset

    # -- reading records

    def read(
        self,
        offset: Offset,
        max_bytes: int,
        limit: Offset,
        *,
        at_least_one: bool,
        checks_sums: bool = False,
        waits: bool = True,
    ) -> ReadResult | ErrorCode:
        """Locate the batches from `offset` on and below `limit`, within one segment.

        Batches that an earlier run wrote are checked when they are first read. The check covers
        their offsets, and for a follower (`checks_sums`) also their checksums, because a follower
        cannot append a corrupt batch. Raises NotCached if `waits` is False and the read would wait
        for the disk.
        """
        end = self._tail.end_offset
        if offset < self.log_start_offset or offset > end:
            return ErrorCode.offset_out_of_range
        if limit > end:
            limit = end
        if offset >= limit:
            return ReadResult(None, offset)
        self._disk.only_cached = not waits
        try:
            segments = self._tail.segments
            return reading.read(
                segments,
                offset,
                max_bytes,
                limit,
                end,
                at_least_one=at_least_one,
                has_gaps=self.was_cleaned,
                epochs=self._tail.epochs if checks_sums else None,
                mark_due=self._upkeep.mark_due,
                broken_at=self._broken_at,
            )
        except BrokenChainError:
            self._broken_at(offset)
            return ErrorCode.corrupt_message
        except StillIndexing:
            self._upkeep.mark_due()
            return ReadResult(None, offset)
        finally:
            self._disk.only_cached = False

    def begin_verification(self) -> LogVerification | None:
        """Begin the verification of the segments that earlier runs wrote.

        Returns None if earlier runs wrote no segments, or if the verification has already begun.
        """
        at_rest, self._at_rest = self._at_rest, []
        if not at_rest:
            return None
        tail = self._tail
        return LogVerification(
            tail.segments,
            tail.epochs,
            tail.snapshots,
            at_rest,
            self._upkeep.note,
            has_gaps=self.was_cleaned,
        )

    def found_broken(self, offset: Offset) -> None:
        """Check the log at `offset`, where a background read found a broken batch."""
        if self.log_start_offset <= offset < self.log_end_offset:
            self._broken_at(offset)

    def _broken_at(self, offset: Offset) -> None:
        self._disk.only_cached = False  # damage is rare, so the search for it may wait for the disk
        segments = self._tail.segments
        number = segments.index_of(offset)
        end = segments.end_of(number, self.log_end_offset)
        if not self._epochs_are_checked:
            self._check_epochs()
        epochs, has_gaps = self._tail.epochs, self.was_cleaned
        self._upkeep.broken(segments[number], offset, end, epochs, has_gaps=has_gaps)

    def search_by_time(
        self, timestamp: Millis, limit: Offset, start: Offset = 0, *, waits: bool = True
    ) -> TimeSearch | ErrorCode | None:
        """Returns a job that finds the first record in [start, limit) with at least this timestamp.

        The job searches one segment. If it finds nothing, the caller continues the search with a
        new job that starts at `next_offset`. Raises NotCached if `waits` is False and the choice of
        the segment would wait for the disk.
        """
        start, segments = max(start, self.log_start_offset), self._tail.segments
        return self._prepare(
            lambda: timestamps.first_not_older(segments, timestamp, start, limit), waits
        )

    def search_newest(
        self, limit: Offset, *, waits: bool = True
    ) -> NewestSearch | ErrorCode | None:
        """Returns a job that finds the first record with the largest timestamp below `limit`.

        Raises NotCached as `search_by_time` does.
        """
        start, end, segments = self.log_start_offset, self.log_end_offset, self._tail.segments
        return self._prepare(lambda: timestamps.newest(segments, start, end, limit), waits)

    def _prepare(self, prepared: Callable[[], T], waits: bool) -> T | ErrorCode:
        self._disk.only_cached = not waits
        try:
            return prepared()
        except BrokenChainError:
            return ErrorCode.corrupt_message
        except StillIndexing:
            return ErrorCode.offset_not_available
        finally:
            self._disk.only_cached = False
            if any(segment.rebuild is not None for segment in self._tail.segments):
                self._upkeep.mark_due()

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """The end offset for a read_committed consumer at this high watermark."""
        return max(self._tail.producers.last_stable_offset(high_watermark), self.log_start_offset)

    def has_open_transaction(self, producer_id: ProducerId, epoch: int) -> bool:
        """Whether the log holds records of the producer's open transaction in this epoch."""
        return self._tail.producers.has_open_transaction(producer_id, epoch)

    def marker_offset(self, producer_id: ProducerId) -> Offset:
        """The offset of the last marker of a producer since the log was opened, or -1."""
        return self._tail.producers.marker_offset(producer_id)

    def transaction_verified(self, producer_id: ProducerId, marker_offset: Offset) -> None:
        """Accept a transaction of this producer, unless it gets another marker first.

        The coordinator has confirmed the transaction after the marker at `marker_offset`.
        """
        self._tail.producers.verified(producer_id, marker_offset)

    def aborted_transactions(
        self, start: Offset, end: Offset, *, waits: bool = True
    ) -> tuple[AbortedTxn, ...]:
        """Aborted transactions that overlap [start, end); raises NotCached as `read` does."""
        self._disk.only_cached = not waits
        try:
            return reading.aborted(self._tail.segments.starting_from(start), start, end)
        finally:
            self._disk.only_cached = False

    def bytes_of(self, part: FileSlice, *, waits: bool = True) -> bytes:
        """The bytes of batches that `read` located; raises NotCached as `read` does."""
        self._disk.only_cached = not waits
        try:
            return part.file.read(part.position, part.length)
        finally:
            self._disk.only_cached = False

    def sequences_from(self, offset: Offset) -> list[ProducerSequence]:
        """For each producer, its first known batch that reaches `offset` or lies past it."""
        return self._tail.producers.sequences_from(offset)

    def has_producer(self, producer: ProducerId) -> bool:
        """Whether the sequence numbers of this producer are known."""
        return producer in self._tail.producers.entries

    def active_producers(self) -> tuple[ActiveProducer, ...]:
        return self._tail.producers.active()

    # -- leader epochs

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """The newest leader epoch known to this log; -1 when there is none."""
        return self._tail.epochs.latest

    def continues(self, last_epoch: LeaderEpoch, offset: Offset) -> bool:
        """Whether this log surely agrees with a reader's log that ends with this epoch and offset.

        If not, `epoch_end` shows whether the logs diverge.
        """
        tail = self._tail
        return (
            last_epoch == tail.epochs.latest and self.log_start_offset <= offset <= tail.end_offset
        )

    @property
    def epoch_starts(self) -> tuple[EpochStart, ...]:
        return self._tail.epochs.entries

    def epoch_end(self, requested: LeaderEpoch, *, waits: bool = True) -> EpochEnd:
        """The largest epoch up to `requested`, and its end offset; both are -1 if unknown.

        Raises NotCached if `waits` is False and the check of the epochs would wait for the disk.
        """
        if not self._epochs_are_checked and requested != self._tail.epochs.latest:
            self._disk.only_cached = not waits
            try:
                self._check_epochs()
            finally:
                self._disk.only_cached = False
        return self._tail.epochs.end(requested, self.log_end_offset)

    def _check_epochs(self) -> None:
        """Compare the epochs with the batches, and rebuild the epochs if the two differ.

        This happens once, before a truncation relies on the epochs.
        """
        epochs, segments = self._tail.epochs, self._tail.segments
        start, end = self.log_start_offset, self.log_end_offset
        fits = epoch_checks.fit_boundaries(epochs, segments, start, end, has_gaps=self.was_cleaned)
        self._epochs_are_checked = True
        if fits:
            return
        self._disk.only_cached = False  # a rebuild that stopped halfway would lose epochs
        unwritten = [entry for entry in epochs.entries if entry.start_offset >= end]
        epoch_checks.rebuild_all(epochs, segments)
        epochs.truncate_from_start(start)
        for epoch, begins in unwritten:
            epochs.announce(epoch, begins)
        self._upkeep.note("the leader epochs did not match the batches and were rebuilt from them")

    def epoch_at(self, offset: Offset) -> LeaderEpoch:
        """The epoch of the record at `offset`; -1 when unknown."""
        return self._tail.epochs.at(offset)

    # -- damage and index repair

    @property
    def damages(self) -> tuple[Damage, ...]:
        """Ranges of offsets before the log end that cannot be read."""
        return self._upkeep.damages

    def accept_end(self) -> None:
        """Forget which records past the log end offset were lost. The loss has been reported."""
        self._upkeep.accept_end()

    @property
    def is_upkeep_due(self) -> bool:
        """Whether to call `repair_indexes` and `take_notes`."""
        return self._upkeep.is_due

    def take_notes(self) -> list[str]:
        """The findings since the last call, one sentence each."""
        return self._upkeep.take_notes()

    def repair_indexes(self, budget: int = SLICE) -> int:
        """Scan up to `budget` headers to repair indexes.

        Returns the unused budget, or 0 while work is left.
        """
        tail, has_gaps = self._tail, self.was_cleaned
        return self._upkeep.repair_indexes(
            tail.segments, tail.end_offset, budget, tail.epochs, has_gaps=has_gaps
        )
