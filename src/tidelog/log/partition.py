"""One partition's log: append, read, truncate and delete, in Kafka's file format.

Invariant: offsets in [log_start_offset, log_end_offset) are on disk in order. All records below the
recovery point survive power loss. No index, epoch or producer entry refers to an offset at or past
the log end offset.
"""

from collections.abc import Callable
from typing import Unpack
from weakref import ref

from tidelog.log.checkpoints.last_stop import LastStop
from tidelog.log.cleaner import selection
from tidelog.log.cleaner.cleaning_pass import CleanerLimits, CleaningPass
from tidelog.log.cleaner.selection import Cleanable
from tidelog.log.config import LogConfig
from tidelog.log.producers.producers import ProducerStates
from tidelog.log.readable import ReadableLog
from tidelog.log.recovery import replay
from tidelog.log.recovery.loading import LoadedLog, LogLoader
from tidelog.log.recovery.steps import OpeningOptions, OpeningSteps, all_at_once
from tidelog.log.results import Appended, AppendOrigin, AppendRefused
from tidelog.log.segments import retention
from tidelog.log.segments.cutting import cut_point
from tidelog.log.segments.flushing import FlushProgress
from tidelog.log.segments.retention import DeletedFiles
from tidelog.log.segments.segment import Segment
from tidelog.log.validation.record_checks import RecordCheck, check_records, looks_inside, rules_of
from tidelog.log.validation.validation import check_produced, check_replicated
from tidelog.model.disk import Disk, File
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import MAX_EPOCH, NO_TIMESTAMP, LeaderEpoch, Millis, Offset
from tidelog.protocol.records.batch import BatchHeader


class PartitionLog(ReadableLog):
    """The log of one replica of one partition. Not thread-safe: the node's thread owns it."""

    __slots__ = (
        "_before_gap",
        "_cleaning",
        "_deleted",
        "_flush",
        "_looks_inside",
        "_lower_recovery_point",
        "_now",
        "directory",
        "retention_waits",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        config: LogConfig,
        now: Millis,
        loaded: LoadedLog,
        lower_recovery_point: Callable[[Offset], None],
        before_gap: Callable[[], None],
    ) -> None:
        super().__init__(disk, directory, config, loaded)
        self._lower_recovery_point = lower_recovery_point
        self._before_gap = before_gap
        self._looks_inside = looks_inside(config)
        self._now = now
        self._deleted = DeletedFiles(disk)
        self._flush = FlushProgress(loaded.log_end_offset, now)
        self._cleaning: Callable[[], CleaningPass | None] = lambda: None
        self.directory = directory
        self.retention_waits = False
        """Whether to apply retention again after `repair_indexes` has confirmed every index."""

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        now: Millis,
        **options: Unpack[OpeningOptions],
    ) -> "PartitionLog":
        """Load the log in `directory`, or create an empty log there."""
        return all_at_once(cls.opening(disk, directory, config, now, **options))

    @classmethod
    def opening(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        now: Millis,
        *,
        last_stop: LastStop,
        recovery_point: Offset | None = 0,
        log_start_offset: Offset = 0,
        lower_recovery_point: Callable[[Offset], None] = lambda offset: None,
        before_change: Callable[[], None] = lambda: None,
        before_gap: Callable[[], None] = lambda: None,
        was_cleaned: bool = False,
    ) -> "OpeningSteps[PartitionLog]":
        """The steps in which the log in `directory` is loaded or created.

        If the last stop was not clean, loading scans and fsyncs the log from the recovery point on,
        so no reader sees a record that power loss could still remove. If writes may be lost,
        loading truncates the log after the last valid batch. `recovery_point` is None if the
        recovery point is unknown.

        The log calls three functions before it changes. `lower_recovery_point` checkpoints a lower
        recovery point before the log is truncated below the current one. `before_change` is called
        before the first change of the log's files. `before_gap` is called before the first gap in
        the log's offsets, which only compaction may cause.
        """
        loader = LogLoader(
            disk,
            directory,
            config,
            now,
            recovery_point,
            log_start_offset,
            before_change,
            was_cleaned=was_cleaned,
        )
        loaded = yield from loader.load(last_stop)
        if loaded.was_cleaned and not was_cleaned:
            before_gap()
        return cls(disk, directory, config, now, loaded, lower_recovery_point, before_gap)

    def update_config(self, config: LogConfig) -> None:
        self._tail.configure(config)
        self._looks_inside = looks_inside(config)

    # -- appending

    def append_as_leader(
        self,
        batches: memoryview,
        leader_epoch: LeaderEpoch,
        now: Millis,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        ahead_ms: Millis = 0,
    ) -> Appended | AppendRefused | RecordCheck:
        """Validate a batch, assign its offsets in place, and write it.

        If the records must be inspected first, nothing is written, and the result is the job that
        inspects them. Timestamps are compared with the wall clock, which is `ahead_ms` ahead of
        `now`. If the write raises OSError, the log is unchanged.
        """
        self._now = now
        tail = self._tail
        if origin is not AppendOrigin.CLIENT and origin is not AppendOrigin.CHECKED_CLIENT:
            return tail.append_internal(batches, leader_epoch, origin, now)
        wall = now + ahead_ms
        header = check_produced(batches, tail.config, wall, origin)
        if not isinstance(header, BatchHeader):
            return header
        if self._looks_inside and origin is AppendOrigin.CLIENT:
            refused = check_records(batches, rules_of(tail.config, wall))
            if refused is not None:
                return refused
        if header.producer_id >= 0:
            span = tail.producers.duplicate_of(header)
            if span is not None:
                return Appended(span.first_offset, span.last_offset, span.timestamp, duplicate=True)
            out_of_order = tail.producers.refusal(header, check_sequence=True)
            if out_of_order is not None:
                return out_of_order
        return tail.append_one(batches, header, leader_epoch, now, wall)

    def append_as_follower(
        self, batches: memoryview, newest_epoch: LeaderEpoch = MAX_EPOCH
    ) -> Appended | AppendRefused:
        """Write the leader's batches byte for byte, except a partial last batch.

        If compaction has never left a gap in this log, batches after a gap in the offsets are left
        out as well. The next fetch then asks the leader for the missing offset. The leader confirms
        the gap, or reports that its own log is damaged (F54).
        """
        found = check_replicated(batches, newest_epoch, has_gaps=self.was_cleaned)
        if isinstance(found, AppendRefused):
            return found
        tail = self._tail
        if not found:
            return Appended(tail.end_offset, tail.end_offset - 1, NO_TIMESTAMP)
        first = found[0][1]
        starts_inside = first.base_offset < tail.end_offset
        if starts_inside and not self._start_inside_batch(first):
            return AppendRefused(
                ErrorCode.offset_out_of_range,
                f"Offset {first.base_offset} is before the log end offset {tail.end_offset}",
            )
        if not self.was_cleaned and first.base_offset > tail.end_offset and self._is_gap():
            self._before_gap()
            self.was_cleaned = True
        tail.append_all(batches, found, self._now)
        if starts_inside:
            tail.epochs.truncate_from_start(self.log_start_offset)
        return Appended(first.base_offset, tail.end_offset - 1, NO_TIMESTAMP)

    def _is_gap(self) -> bool:
        """Whether only compaction on the leader explains a batch past the end of this log."""
        return self._tail.config.is_compacted or self.log_end_offset > self.log_start_offset

    def _start_inside_batch(self, first: BatchHeader) -> bool:
        """Prepare an empty log to append all of `first`, a batch that begins before the log start.

        Returns False if the log is not empty, or if its start offset lies past the batch.
        """
        start = self.log_start_offset
        if start != self.log_end_offset or first.last_offset < start:
            return False
        self.truncate_fully_and_start_at(first.base_offset, self._now)
        self.log_start_offset = start
        return True

    def assign_epoch(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """Record that an epoch begins at this offset, even if the epoch never gets a record."""
        self._tail.epochs.announce(epoch, start_offset)

    # -- truncation and retention

    def truncate_to(self, offset: Offset, now: Millis) -> None:
        """Drop every record at or past `offset`."""
        self._now = now
        if offset >= self.log_end_offset:
            return
        segments = self._tail.segments
        if offset <= segments.first.base_offset:
            self.truncate_fully_and_start_at(offset, now)
            return
        keep = segments.index_of(offset)
        if segments[keep].base_offset == offset:
            keep -= 1
        position, end = cut_point(segments[keep], offset)
        self._before_cut(end)
        self._deleted.add(segments.drop_from(keep + 1), self._removal_due())
        segments.active.truncate(position, end)
        # Without an fsync, if power is lost, the truncated bytes could reappear after the next
        # append. Truncations are rare, so this fsync is allowed to block the node's thread.
        segments.active.file.sync()
        self._disk.sync_directory(self.directory)
        self._end_at(end)
        expired_before = now - self.config.producer_id_expiration_ms
        self._tail.producers = replay.rebuild_producers(
            segments, self._tail.snapshots, self.log_start_offset, end, expired_before
        )

    def truncate_fully_and_start_at(self, offset: Offset, now: Millis) -> None:
        """Drop every record; the next record gets `offset`."""
        self._now = now
        self._before_cut(offset, is_whole=True)
        self._deleted.add(list(self._tail.segments), self._removal_due())
        interval = self._tail.config.index_interval_bytes
        fresh = Segment(self._disk, self.directory, offset, now, interval)
        fresh.start()
        self._tail.segments.start_over(fresh)
        self.log_start_offset = offset
        self._end_at(offset)
        self._flush.restart(offset)
        self._tail.producers = ProducerStates(offset)
        self._disk.sync_directory(self.directory)

    def _before_cut(self, offset: Offset, *, is_whole: bool = False) -> None:
        self._tail.begin_change()
        cleaning = self._cleaning()
        if cleaning is not None and (is_whole or offset <= cleaning.cleanable.end):
            # The pass may have removed records because of records that are cut now, or its last
            # segment may become the active segment.
            cleaning.cancel()
        if offset < self.recovery_point:
            self._lower_recovery_point(offset)

    def _end_at(self, offset: Offset) -> None:
        self._tail.end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self._flush.truncated(offset)
        self._upkeep.truncated(offset)
        self._tail.epochs.truncate_from_end(offset)
        self._tail.snapshots.keep_only(self.log_start_offset, offset)

    def advance_log_start(self, offset: Offset) -> None:
        """Hide the records below `offset`; the next retention run deletes their segments."""
        assert offset <= self.log_end_offset
        if offset > self.log_start_offset:
            self._tail.begin_change()
            self.log_start_offset = offset
            self._tail.epochs.truncate_from_start(offset)

    def apply_retention(
        self, now: Millis, high_watermark: Offset, ahead_ms: Millis = 0
    ) -> list[Offset]:
        """Delete segments by age, size or log start offset, and return their base offsets.

        Retention also removes the state of idle producers.
        """
        self._now = now
        self._tail.producers.expire(now + ahead_ms, self.config.producer_id_expiration_ms)
        self._tail.producers.forget_completed(high_watermark)
        offsets, tail = (self.log_start_offset, self.log_end_offset, high_watermark), self._tail
        count = retention.count_deletable(tail.segments, tail.config, now, ahead_ms, *offsets)
        self.retention_waits = retention.awaits_confirmation(self._tail.segments, count)
        if self.retention_waits:
            self._upkeep.mark_due()
        if not count:
            return []
        self._tail.begin_change()
        if count == len(self._tail.segments):
            self._tail.roll(self.log_end_offset, now)
        dropped = self._tail.segments.drop_first(count)
        # Write the epochs before the files are renamed. If the process ends in between, the epochs
        # show the next process that these segments were deleted, not lost.
        self.advance_log_start(max(self._tail.segments.first.base_offset, self.log_start_offset))
        self._deleted.add(dropped, self._removal_due())
        self._tail.snapshots.keep_only(self._tail.segments.first.base_offset, self.log_end_offset)
        return [segment.base_offset for segment in dropped]

    def purge(self, now: Millis) -> None:
        """Remove deleted files whose delay has passed."""
        self._now = now
        self._deleted.purge(now)

    def _removal_due(self) -> Millis:
        return self._now + self._tail.config.file_delete_delay_ms

    # -- compaction

    def find_cleanable(self, cleaned_to: Offset, high_watermark: Offset, wall: Millis) -> Cleanable:
        """What the cleaner may clean now, if an earlier pass ended at `cleaned_to`."""
        first_dirty = selection.first_dirty_offset(
            cleaned_to, self.log_start_offset, self.log_end_offset
        )
        limit = min(self.last_stable_offset(high_watermark), self.recovery_point)
        return selection.find_cleanable(
            self._tail.segments, self._tail.config, first_dirty, limit, wall
        )

    def begin_cleaning(
        self, cleanable: Cleanable, limits: CleanerLimits, wall: Millis
    ) -> CleaningPass:
        """Begin a pass of the cleaner. A truncation of the cleaned range cancels the pass."""
        assert cleanable.dirty_bytes
        if not self.was_cleaned:
            self._before_gap()
            self.was_cleaned = True
        place = (self._disk, self.directory, self._tail, self._deleted)
        cleaning = CleaningPass(*place, cleanable, limits, wall)
        self._cleaning = ref(cleaning)  # the cleaner owns the pass, and its memory
        return cleaning

    # -- flushing and closing

    @property
    def recovery_point(self) -> Offset:
        """The offset below which everything has been fsynced."""
        return self._flush.recovery_point

    def needs_flush(self, now: Millis) -> bool:
        """Whether flush.messages or flush.ms is reached, or a rolled segment is not fsynced."""
        active = self._tail.segments.active.base_offset
        return self._flush.is_due(self.log_end_offset, active, self._tail.config, now)

    def write_before_first_record(self, path: str, content: bytes) -> None:
        """Register a file to write before the first record and to fsync with the first flush."""
        self._tail.write_before_first_record(path, content)

    def begin_flush(self, now: Millis) -> tuple[tuple[File, ...], Offset]:
        """Return the files to fsync, and the offset to pass to `flushed` after the fsync."""
        up_to = self.log_end_offset
        files, self._tail.unsynced = self._tail.unsynced, []
        if up_to > self.recovery_point:
            *sealed, active = self._tail.segments.starting_from(self.recovery_point)
            for segment in sealed:
                files += segment.files()
            # After an unclean shutdown, loading rebuilds the active segment's indexes, so they
            # need no fsync.
            files.append(active.file)
        self._flush.begin(up_to, now)
        return tuple(files), up_to

    def flushed(self, up_to: Offset) -> None:
        """Advance the recovery point after the fsync for this offset has completed."""
        self._flush.ended(up_to)

    def next_deadline(self) -> Millis | None:
        """When to call `needs_flush` or `purge` next; None if nothing is left to flush or purge."""
        deadlines = (
            self._flush.deadline(self.log_end_offset, self._tail.config.flush_ms),
            self._deleted.next_due,
        )
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def close(self, *, is_synced_by_caller: bool = False) -> None:
        """Write indexes and producer state, and fsync all files. The next open needs no scan."""
        files = self._tail.close(self.recovery_point)
        if files and not is_synced_by_caller:
            for file in files:
                file.sync()
            self._disk.sync_directory(self.directory)
        self._flush.begin(self.log_end_offset, self._now)
        self._flush.ended(self.log_end_offset)
