"""The end of a log, where batches are appended.

Invariant: the bytes, indexes, epochs, producers and log end offset change together. If the disk
refuses an append, all of them stay unchanged.
"""

from tidelog.log.config import LogConfig
from tidelog.log.producers.markers import read_marker
from tidelog.log.recovery import replay
from tidelog.log.recovery.loading import LoadedLog
from tidelog.log.results import Appended, AppendOrigin, AppendRefused
from tidelog.log.segments.rolling import RollPolicy
from tidelog.log.segments.segment import Segment
from tidelog.log.validation.validation import check_whole
from tidelog.model.disk import Disk, File
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_TIMESTAMP, LeaderEpoch, Millis, Offset
from tidelog.protocol.records.batch import (
    LOG_OVERHEAD,
    BatchHeader,
    patch,
    read_header,
    stamp_append_time,
)


class LogTail:
    """The state that an append reads and changes."""

    __slots__ = (
        "_before_change",
        "_directory",
        "_disk",
        "_metadata",
        "_rolling",
        "config",
        "end_offset",
        "epochs",
        "is_modified",
        "producers",
        "segments",
        "snapshots",
        "unsynced",
    )

    def __init__(self, disk: Disk, directory: str, config: LogConfig, loaded: LoadedLog) -> None:
        self._disk = disk
        self._before_change = loaded.before_change
        self._directory = directory
        self.configure(config)
        self.segments = loaded.segments
        self.epochs = loaded.epochs
        self.producers = loaded.producers
        self.snapshots = loaded.snapshots
        self.end_offset: Offset = loaded.log_end_offset
        self.is_modified = loaded.is_modified
        """Whether the files have changed since a clean shutdown."""
        self.unsynced: list[File] = []
        """Files to fsync with the next flush, in addition to the segments."""
        self._metadata: tuple[str, bytes] | None = None

    def begin_change(self) -> None:
        """Call `before_change` before the first change of the files since a clean shutdown."""
        if not self.is_modified:
            self._before_change()
            self.is_modified = True

    def write_before_first_record(self, path: str, content: bytes) -> None:
        """Register a file to write before the first record; an empty log does not need the file."""
        self._metadata = path, content

    def write_pending_files(self) -> None:
        """Write the files registered for the first record; the first flush fsyncs them."""
        if self._metadata is not None:
            path, content = self._metadata
            self._disk.write_file(path, content, durable=False)
            self.unsynced.append(self._disk.open(path))
            self._metadata = None

    def configure(self, config: LogConfig) -> None:
        self.config = config
        self._rolling = RollPolicy(config)

    def append_one(
        self,
        batch: memoryview,
        header: BatchHeader,
        leader_epoch: LeaderEpoch,
        now: Millis,
        wall: Millis,
    ) -> Appended:
        """Assign offsets to one batch and append it. This hot path makes one write and no copy."""
        if not self.is_modified:
            self.begin_change()
        base_offset, size = self.end_offset, len(batch)
        last_offset = base_offset + header.last_offset_delta
        timestamp, append_time = header.max_timestamp, NO_TIMESTAMP
        if self.config.stamps_append_time:
            timestamp = append_time = wall
            stamp_append_time(batch, 0, header, wall)
        segment = self.segments.active
        if self._rolling.is_due(segment, 0, size, last_offset, timestamp, now):
            segment = self.roll(base_offset, now)
        if self._metadata is not None:
            self.write_pending_files()
        if leader_epoch > self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        elif not self.epochs.is_written:
            self.epochs.write()
        patch(batch, 0, base_offset, leader_epoch)
        position = segment.append(batch)
        self.end_offset = last_offset + 1
        interval = self.config.index_interval_bytes
        segment.note(base_offset, last_offset, timestamp, position, size, interval)
        producers = self.producers
        if header.producer_id >= 0:
            producers.appended(header, base_offset, timestamp)
        producers.end_offset = last_offset + 1
        return Appended(base_offset, last_offset, append_time)

    def append_internal(
        self, batches: memoryview, leader_epoch: LeaderEpoch, origin: AppendOrigin, now: Millis
    ) -> Appended | AppendRefused:
        """Assign offsets to batches that this broker created, and append them.

        Control records are allowed.
        """
        checked = check_whole(batches)
        if isinstance(checked, AppendRefused):
            return checked
        base_offset = end = self.end_offset
        found = []
        is_checked = origin is not AppendOrigin.RAFT_LEADER
        for position, header in checked:
            if is_checked and header.size > self.config.largest_batch:
                return AppendRefused(
                    ErrorCode.message_too_large,
                    f"The record batch size is {header.size} bytes, "
                    f"which exceeds the maximum of {self.config.largest_batch}",
                )
            if is_checked and header.producer_id >= 0:
                batch = batches[position : position + header.size]
                refused = self._refusal(header, batch, origin)
                if refused is not None:
                    return refused
            patch(batches, position, end, leader_epoch)
            found.append((position, read_header(batches, position)))
            end += header.last_offset_delta + 1
        self.append_all(batches, found, now)
        return Appended(base_offset, end - 1, NO_TIMESTAMP)

    def _refusal(
        self, header: BatchHeader, batch: memoryview, origin: AppendOrigin
    ) -> AppendRefused | None:
        """The refusal of a coordinator's batch; None if it is valid.

        Producer and coordinator epochs are checked, but sequence numbers are not.
        """
        if not header.is_control:
            return self.producers.refusal(header, check_sequence=False)
        marker = read_marker(batch)
        if marker is None:
            return None
        raises_epoch = origin is AppendOrigin.EPOCH_MARKER
        return self.producers.marker_refusal(header, marker, raises_epoch=raises_epoch)

    def append_all(
        self, batches: memoryview, found: list[tuple[int, BatchHeader]], now: Millis
    ) -> None:
        """Append batches whose offsets are final, with one write per segment."""
        if not self.is_modified:
            self.begin_change()
        start = end = 0
        run: list[tuple[int, BatchHeader]] = []
        for position, header in found:
            size = LOG_OVERHEAD + header.length
            last_offset = header.base_offset + header.last_offset_delta
            if self._rolling.is_due(
                self.segments.active, end - start, size, last_offset, header.max_timestamp, now
            ):
                self._append_run(batches[start:end], start, run)
                self.roll(header.base_offset, now)
                run, start = [], position
            run.append((position, header))
            end = position + size
        self._append_run(batches[start:end], start, run)

    def _append_run(
        self, batches: memoryview, start: int, run: list[tuple[int, BatchHeader]]
    ) -> None:
        if not run:
            return
        segment, epochs, producers = self.segments.active, self.epochs, self.producers
        if self._metadata is not None:
            self.write_pending_files()
        for _, header in run:
            if header.leader_epoch == epochs.latest:
                continue
            if header.leader_epoch < epochs.latest:
                # The latest known epoch has no records, because the log continues in an earlier
                # epoch.
                epochs.truncate_from_end(header.base_offset)
            if header.leader_epoch > epochs.latest:
                epochs.assign(header.leader_epoch, header.base_offset)
        if not epochs.is_written:
            epochs.write()
        shift = segment.append(batches) - start
        interval = self.config.index_interval_bytes
        for position, header in run:
            base_offset, size = header.base_offset, LOG_OVERHEAD + header.length
            last_offset = base_offset + header.last_offset_delta
            segment.note(
                base_offset, last_offset, header.max_timestamp, position + shift, size, interval
            )
            if header.producer_id >= 0:
                at = position - start
                aborted = replay.apply(producers, header, batches[at : at + size])
                if aborted is not None:
                    segment.transaction_index.add(aborted)
            producers.end_offset = self.end_offset = last_offset + 1

    def roll(self, base_offset: Offset, now: Millis) -> Segment:
        """Start a new active segment.

        Steps that can fail for lack of space are done before the list of segments changes.
        """
        fresh = Segment(self._disk, self._directory, base_offset, now)
        fresh.start()
        former = self.segments.active
        if former.size == 0:
            self.segments.replace_active(fresh)
            former.remove_files()
            return fresh
        former.seal()
        self.snapshots.write(base_offset, self.producers.entries)
        self.segments.add(fresh)
        return fresh

    def close(self, recovery_point: Offset) -> list[File]:
        """Write indexes, epochs and producers, if anything changed; returns the files to fsync."""
        self.write_pending_files()
        if not self.is_modified:
            return []
        self.is_modified = False
        self.segments.active.seal()
        self.snapshots.write(self.end_offset, self.producers.entries)
        files = [*self.unsynced, self.epochs.close(self.end_offset)]
        for segment in self.segments.starting_from(recovery_point):
            files += segment.files()
        return files
