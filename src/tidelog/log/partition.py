"""One partition's log: append, read, truncate, delete, on Kafka's files.

Invariant: offsets in [log_start_offset, log_end_offset) are on disk in order, everything below
the recovery point survives power loss, and no state (index, epoch, producer) speaks of an offset
at or past the log end.
"""

from tidelog.log import deletions, reading, replay, timestamps
from tidelog.log.config import LogConfig
from tidelog.log.deletions import DeletedFiles
from tidelog.log.flushing import FlushProgress
from tidelog.log.loading import LoadedLog, LogLoader
from tidelog.log.markers import read_marker
from tidelog.log.producers import ProducerStates
from tidelog.log.results import (
    AbortedTxn,
    Appended,
    AppendOrigin,
    AppendRefused,
    ReadResult,
    TimestampOffset,
)
from tidelog.log.rolling import RollPolicy
from tidelog.log.scan import BrokenChainError
from tidelog.log.segment import Segment
from tidelog.log.validation import check_produced, check_replicated
from tidelog.model.disk import Disk, File
from tidelog.model.effects import EpochEnd
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_TIMESTAMP, LeaderEpoch, Millis, Offset
from tidelog.protocol.batch import BatchHeader, patch, read_header, stamp_append_time


class PartitionLog:
    """Bytes at rest of one replica of one partition. Not thread-safe: the node's thread owns it."""

    __slots__ = (
        "_config",
        "_deleted",
        "_disk",
        "_epochs",
        "_flush",
        "_is_modified",
        "_now",
        "_producers",
        "_rolling",
        "_segments",
        "_snapshots",
        "_unsynced",
        "directory",
        "log_end_offset",
        "log_start_offset",
        "recovery",
    )

    def __init__(
        self, disk: Disk, directory: str, config: LogConfig, now: Millis, loaded: LoadedLog
    ) -> None:
        self._disk = disk
        self._config = config
        self._rolling = RollPolicy(config)
        self._now = now
        self._segments = loaded.segments
        self._epochs = loaded.epochs
        self._producers = loaded.producers
        self._snapshots = loaded.snapshots
        self._deleted = DeletedFiles(disk)
        self._flush = FlushProgress(loaded.log_end_offset, now)
        self._unsynced: list[File] = []
        self._is_modified = loaded.is_modified
        self.directory = directory
        self.log_start_offset: Offset = loaded.log_start_offset
        self.log_end_offset: Offset = loaded.log_end_offset
        self.recovery = loaded.recovery
        """What opening the log found out."""

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

        After an unclean shutdown the tail from the recovery point on is scanned, cut at the last
        whole valid batch, and fsynced: nobody reads what power loss could still take.
        """
        loader = LogLoader(disk, directory, config, now, recovery_point, log_start_offset)
        return cls(disk, directory, config, now, loader.load(clean_shutdown=clean_shutdown))

    @property
    def config(self) -> LogConfig:
        return self._config

    def update_config(self, config: LogConfig) -> None:
        self._config = config
        self._rolling = RollPolicy(config)

    @property
    def size(self) -> int:
        """Bytes in all segments."""
        return self._segments.size

    @property
    def first_segment_offset(self) -> Offset:
        """Where the oldest segment begins, at or before the log start offset."""
        return self._segments.first.base_offset

    # -- writing

    def append_as_leader(
        self,
        batches: memoryview,
        leader_epoch: LeaderEpoch,
        now: Millis,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> Appended | AppendRefused:
        """Check, assign offsets in place, write. Raises OSError with the log as it was."""
        self._now = now
        if origin is not AppendOrigin.CLIENT:
            return self._append_internal(batches, leader_epoch, origin)
        header = check_produced(batches, self._config, now)
        if not isinstance(header, BatchHeader):
            return header
        if header.producer_id >= 0:
            duplicate = self._producers.duplicate_of(header)
            if duplicate is not None:
                stamped = self._config.stamps_append_time
                time = duplicate.timestamp if stamped else NO_TIMESTAMP
                return Appended(duplicate.first_offset, duplicate.last_offset, time, duplicate=True)
            refused = self._producers.refusal(header, check_sequence=True)
            if refused is not None:
                return refused
        return self._append_one(batches, header, leader_epoch)

    def _append_one(
        self, batch: memoryview, header: BatchHeader, leader_epoch: LeaderEpoch
    ) -> Appended:
        """One batch of records at the log end. This is the hot path: no copy, one write."""
        base_offset, size = self.log_end_offset, len(batch)
        last_offset = base_offset + header.last_offset_delta
        timestamp, append_time = header.max_timestamp, NO_TIMESTAMP
        if self._config.stamps_append_time:
            timestamp = append_time = self._now
            stamp_append_time(batch, 0, header, self._now)
        segment = self._segments.active
        if self._rolling.is_due(segment, 0, size, last_offset, timestamp, self._now):
            segment = self._roll(base_offset)
        if leader_epoch > self._epochs.latest:
            self._epochs.assign(leader_epoch, base_offset)
        patch(batch, 0, base_offset, leader_epoch)
        position = segment.append(batch)
        self._is_modified = True
        self.log_end_offset = last_offset + 1
        interval = self._config.index_interval_bytes
        segment.note(base_offset, last_offset, timestamp, position, size, interval)
        if header.producer_id >= 0:
            self._producers.appended(header, base_offset, last_offset, timestamp)
        self._producers.end_offset = last_offset + 1
        return Appended(base_offset, last_offset, append_time)

    def _append_internal(
        self, batches: memoryview, leader_epoch: LeaderEpoch, origin: AppendOrigin
    ) -> Appended | AppendRefused:
        """Batches of our own making: offsets are assigned, control records are welcome."""
        checked = check_replicated(batches)
        if isinstance(checked, AppendRefused):
            return checked
        end = self.log_end_offset
        found = []
        for position, header in checked:
            if origin is AppendOrigin.COORDINATOR:
                refused = self._refusal_of_internal(header, batches, position)
                if refused is not None:
                    return refused
            patch(batches, position, end, leader_epoch)
            found.append((position, read_header(batches, position)))
            end += header.last_offset_delta + 1
        base_offset = self.log_end_offset
        self._append_runs(batches, found)
        return Appended(base_offset, end - 1, NO_TIMESTAMP)

    def _refusal_of_internal(
        self, header: BatchHeader, batches: memoryview, position: int
    ) -> AppendRefused | None:
        if header.producer_id < 0:
            return None
        if header.is_control:
            marker = read_marker(batches[position : position + header.size])
            return self._producers.marker_refusal(header, marker) if marker is not None else None
        return self._producers.refusal(header, check_sequence=False)

    def append_as_follower(self, batches: memoryview) -> Appended | AppendRefused:
        """Write what a leader assigned, byte for byte; a batch cut short at the end is left out."""
        found = check_replicated(batches)
        if isinstance(found, AppendRefused):
            return found
        if not found:
            return Appended(self.log_end_offset, self.log_end_offset - 1, NO_TIMESTAMP)
        first = found[0][1]
        if first.base_offset < self.log_end_offset and not self._begin_inside(first):
            return AppendRefused(
                ErrorCode.offset_out_of_range,
                f"Offset {first.base_offset} is before the log end offset {self.log_end_offset}",
            )
        self._append_runs(batches, found)
        return Appended(first.base_offset, self.log_end_offset - 1, NO_TIMESTAMP)

    def _begin_inside(self, first: BatchHeader) -> bool:
        """An empty log whose start lies inside the leader's batch takes that batch whole."""
        start = self.log_start_offset
        if start != self.log_end_offset or first.last_offset < start:
            return False
        self.truncate_fully_and_start_at(first.base_offset, self._now)
        self.log_start_offset = start
        return True

    def _append_runs(self, batches: memoryview, found: list[tuple[int, BatchHeader]]) -> None:
        """Write batches whose offsets are final, with one write per segment that they enter."""
        start = end = 0
        run: list[tuple[int, BatchHeader]] = []
        for position, header in found:
            if self._rolling.is_due(
                self._segments.active,
                end - start,
                header.size,
                header.last_offset,
                header.max_timestamp,
                self._now,
            ):
                self._append_run(batches[start:end], start, run)
                self._roll(header.base_offset)
                run, start = [], position
            run.append((position, header))
            end = position + header.size
        self._append_run(batches[start:end], start, run)

    def _append_run(
        self, batches: memoryview, start: int, run: list[tuple[int, BatchHeader]]
    ) -> None:
        if not run:
            return
        segment = self._segments.active
        for _, header in run:
            if header.leader_epoch > self._epochs.latest:
                self._epochs.assign(header.leader_epoch, header.base_offset)
        shift = segment.append(batches) - start
        self._is_modified = True
        for position, header in run:
            segment.note(
                header.base_offset,
                header.last_offset,
                header.max_timestamp,
                position + shift,
                header.size,
                self._config.index_interval_bytes,
            )
            batch = batches[position - start : position - start + header.size]
            aborted = replay.apply(self._producers, header, batch)
            if aborted is not None:
                segment.transaction_index.add(aborted)
            self.log_end_offset = header.next_offset

    def _roll(self, base_offset: Offset) -> Segment:
        """A new active segment; everything that can fail for want of space comes first."""
        fresh = Segment(self._disk, self.directory, base_offset, self._now)
        former = self._segments.active
        if former.size == 0:
            self._deleted.add(self._segments.replace_active(fresh), self._now)
            fresh.start()
            return fresh
        fresh.start()
        former.seal()
        self._snapshots.write(base_offset, self._producers.entries)
        self._segments.add(fresh)
        return fresh

    # -- reading

    def read(
        self, offset: Offset, max_bytes: int, limit: Offset, *, at_least_one: bool
    ) -> ReadResult | ErrorCode:
        """Where the batches from `offset` on lie, within one segment, below `limit`."""
        end = self.log_end_offset
        if offset < self.log_start_offset or offset > end:
            return ErrorCode.offset_out_of_range
        limit = min(limit, end)
        if offset >= limit:
            return ReadResult(None, offset)
        try:
            return reading.read(
                self._segments, offset, max_bytes, limit, end, at_least_one=at_least_one
            )
        except BrokenChainError:
            return ErrorCode.corrupt_message

    def offset_for_timestamp(
        self, timestamp: Millis, limit: Offset
    ) -> TimestampOffset | ErrorCode | None:
        """The first record below `limit` that is not older than `timestamp`."""
        try:
            return timestamps.first_not_older(
                self._segments, timestamp, self.log_start_offset, limit
            )
        except BrokenChainError:
            return ErrorCode.corrupt_message

    def max_timestamp_offset(self, limit: Offset) -> TimestampOffset | ErrorCode | None:
        """The first record with the largest timestamp below `limit`."""
        try:
            return timestamps.newest(
                self._segments, self.log_start_offset, self.log_end_offset, limit
            )
        except BrokenChainError:
            return ErrorCode.corrupt_message

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """What a read_committed consumer may see, given the high watermark."""
        return max(self._producers.last_stable_offset(high_watermark), self.log_start_offset)

    def aborted_transactions(self, start: Offset, end: Offset) -> tuple[AbortedTxn, ...]:
        """Aborted transactions that overlap [start, end)."""
        found = []
        for segment in self._segments.starting_from(start):
            for aborted in segment.transaction_index:
                if aborted.last_offset >= start and aborted.first_offset < end:
                    found.append(aborted)
                if aborted.last_stable_offset >= end:
                    return tuple(found)
        return tuple(found)

    # -- epochs

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """The newest leader epoch known to this log; -1 when there is none."""
        return self._epochs.latest

    def epoch_end(self, requested: LeaderEpoch) -> EpochEnd:
        """The largest epoch not above `requested` and where it ends; -1, -1 when unknown."""
        return self._epochs.end(requested, self.log_end_offset)

    def epoch_at(self, offset: Offset) -> LeaderEpoch:
        """The epoch of the record at `offset`; -1 when unknown."""
        return self._epochs.at(offset)

    def assign_epoch(self, epoch: LeaderEpoch, start_offset: Offset) -> None:
        """A leader epoch begins at this offset, whether or not it will have records."""
        self._epochs.assign(epoch, start_offset)

    # -- cutting

    def truncate_to(self, offset: Offset, now: Millis) -> None:
        """Drop every record at or past `offset`."""
        self._now = now
        if offset >= self.log_end_offset:
            return
        if offset <= self._segments.first.base_offset:
            self.truncate_fully_and_start_at(offset, now)
            return
        self._is_modified = True
        keep = self._segments.index_of(offset)
        if self._segments[keep].base_offset == offset:
            keep -= 1
        self._deleted.add(self._segments.drop_from(keep + 1), self._removal_due())
        end = self._segments.active.truncate(offset)
        self._end_at(end)
        self._producers = replay.rebuild_producers(
            self._segments, self._snapshots, self.log_start_offset, end
        )

    def truncate_fully_and_start_at(self, offset: Offset, now: Millis) -> None:
        """Drop every record; the next one is `offset`."""
        self._now = now
        self._is_modified = True
        dropped = list(self._segments)
        self._deleted.add(dropped, self._removal_due())
        fresh = Segment(self._disk, self.directory, offset, now)
        fresh.start()
        self._segments.start_over(fresh)
        self.log_start_offset = offset
        self._end_at(offset)
        self._flush.restart(offset)
        self._producers = ProducerStates(offset)
        # The recovery point is ahead of the old segments: they must not come back (rare, so sync).
        self._disk.sync_directory(self.directory)

    def _end_at(self, offset: Offset) -> None:
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self._flush.truncated(offset)
        self._epochs.truncate_from_end(offset)
        self._snapshots.keep_only(self.log_start_offset, offset)

    def advance_log_start(self, offset: Offset) -> None:
        """Records below are gone for readers; their segments go with the next retention run."""
        assert offset <= self.log_end_offset
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self._epochs.truncate_from_start(offset)

    def apply_retention(self, now: Millis, high_watermark: Offset) -> list[Offset]:
        """Delete what time, size or the log start allow; the base offsets of what was deleted."""
        self._now = now
        count = deletions.count_deletable(
            self._segments,
            self._config,
            now,
            self.log_start_offset,
            self.log_end_offset,
            high_watermark,
        )
        if not count:
            return []
        if count == len(self._segments):
            self._roll(self.log_end_offset)
        dropped = self._segments.drop_first(count)
        self._deleted.add(dropped, self._removal_due())
        self.advance_log_start(max(self._segments.first.base_offset, self.log_start_offset))
        self._snapshots.keep_only(self._segments.first.base_offset, self.log_end_offset)
        return [segment.base_offset for segment in dropped]

    def purge(self, now: Millis) -> None:
        """Remove deleted files whose time has come; forget producers that have been idle."""
        self._now = now
        self._deleted.purge(now)
        self._producers.expire(now, self._config.producer_id_expiration_ms)

    def _removal_due(self) -> Millis:
        return self._now + self._config.file_delete_delay_ms

    # -- durability

    @property
    def recovery_point(self) -> Offset:
        """Everything below has been fsynced."""
        return self._flush.recovery_point

    def needs_flush(self, now: Millis) -> bool:
        """flush.messages or flush.ms is reached, or a rolled segment awaits its fsync."""
        active = self._segments.active.base_offset
        return self._flush.is_due(self.log_end_offset, active, self._config, now)

    def flush_too(self, path: str) -> None:
        """Sync this file with the next flush."""
        self._unsynced.append(self._disk.open(path))

    def begin_flush(self, now: Millis) -> tuple[tuple[File, ...], Offset]:
        """The files to fsync; once that is done, report `flushed` with the offset returned here."""
        up_to = self.log_end_offset
        files, self._unsynced = self._unsynced, []
        if up_to > self.recovery_point:
            *sealed, active = self._segments.starting_from(self.recovery_point)
            for segment in sealed:
                files += segment.files()
            # The indexes of the active segment are built anew after an unclean end.
            files.append(active.file)
        self._flush.begin(up_to, now)
        return tuple(files), up_to

    def flushed(self, up_to: Offset) -> None:
        """The fsync begun for this offset has ended: the recovery point moves."""
        self._flush.ended(up_to)

    def next_deadline(self) -> Millis | None:
        """When `needs_flush` or `purge` is next worth a call."""
        deadlines = (
            self._flush.deadline(self.log_end_offset, self._config.flush_ms),
            self._deleted.next_due,
        )
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def close(self) -> None:
        """Write out indexes and producer state and fsync all: the next open may skip the scan."""
        if self._is_modified:
            self._segments.active.seal()
            self._snapshots.write(self.log_end_offset, self._producers.entries)
            self._epochs.write(durable=True)
            for segment in self._segments.starting_from(self.recovery_point):
                self._unsynced += segment.files()
            for file in self._unsynced:
                file.sync()
        up_to = self.log_end_offset
        self._flush.begin(up_to, self._now)
        self._flush.ended(up_to)
        self._is_modified = False
