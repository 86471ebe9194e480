"""The checkpoints in the root of a log directory, with offsets of all its partitions.

Invariant: a clean shutdown writes the offsets of all partitions. If a log has no valid recovery
point after a clean shutdown, the log may be incomplete (F54, F59). The files are fsynced only on
request, because an fsync can block the node for a long time. If power loss leaves an old file, the
scan of a log at the next start takes longer. If power loss leaves a torn file, every log is scanned
in full.
"""

from collections.abc import Collection, Iterable, Mapping

from tidelog.log import names
from tidelog.log.checkpoints import checkpoints
from tidelog.log.partition import PartitionLog
from tidelog.model.disk import Disk
from tidelog.model.ids import Offset, TopicPartition

Offsets = dict[TopicPartition, Offset]

_WRITTEN_AT_A_STOP = (
    names.RECOVERY_POINT_CHECKPOINT,
    names.LOG_START_CHECKPOINT,
    names.HIGH_WATERMARK_CHECKPOINT,
)


class RootCheckpoints:
    def __init__(self, disk: Disk, present: Collection[TopicPartition], *, was_clean: bool) -> None:
        """`present` lists the partitions that have a directory.

        If at least one partition has a directory, every checkpoint must exist after a clean
        shutdown.
        """
        self._disk = disk
        self._written: dict[str, bytes] = {}
        self.notes: list[str] = []
        """Problems found in the files, one sentence each."""
        self.recovery_points = self._read(names.RECOVERY_POINT_CHECKPOINT)
        self._has_valid_recovery_points = not self.notes
        self.cleaned = self._read(names.CLEANER_CHECKPOINT)
        """Partitions from which compaction has removed records, with the cleaner's offset."""
        self._knows_cleaned = len(self.notes) == (not self._has_valid_recovery_points)
        self.log_starts = self._read(names.LOG_START_CHECKPOINT)
        self.high_watermarks = self._read(names.HIGH_WATERMARK_CHECKPOINT)
        if was_clean and present:
            self._check_presence()
        gone = [one for one in self.recovery_points if one not in present]
        self._missing: Offsets = {one: self.recovery_points.pop(one) for one in gone}
        """Recovery points of partitions whose directory is missing."""

    def _check_presence(self) -> None:
        for path in _WRITTEN_AT_A_STOP:
            if not self._disk.exists(path):
                self.notes.append(f"{path} is missing")

    def recovery_point(
        self, partition: TopicPartition, *, is_present: bool, after_clean_shutdown: bool
    ) -> Offset | None:
        """The checkpointed recovery point of a log; None when it is unknown.

        If the partition's directory is missing, all records below this offset are lost, although
        they were fsynced.
        """
        if not is_present:
            return self._missing.pop(partition, 0)
        if after_clean_shutdown and not self._has_valid_recovery_points:
            return None
        return self.recovery_points.get(partition)

    def was_cleaned(self, partition: TopicPartition, *, is_compacted: bool) -> bool:
        """Whether compaction may have removed records from the partition."""
        return partition in self.cleaned or (is_compacted and not self._knows_cleaned)

    def note_cleaned(self, partition: TopicPartition) -> None:
        """Record durably that compaction has left gaps in this log.

        The log calls this before it gets its first gap.
        """
        self.cleaned.setdefault(partition, 0)
        self._write(names.CLEANER_CHECKPOINT, self.cleaned, durable=True)

    def cleaned_to(self, partition: TopicPartition) -> Offset:
        """Where the last pass of the cleaner ended; 0 if there was none."""
        return self.cleaned.get(partition, 0)

    def note_cleaned_to(self, partition: TopicPartition, offset: Offset) -> None:
        """Record where a pass of the cleaner has ended, after its segments were synced."""
        self.cleaned[partition] = offset
        self._write(names.CLEANER_CHECKPOINT, self.cleaned, durable=False)

    def adopt(self, partition: TopicPartition, log: PartitionLog) -> None:
        """Take over the offsets of a log that moves into this directory.

        If the log has gaps, this must be durable before the log has the name of the partition.
        """
        self.recovery_points[partition] = log.log_end_offset
        self.log_starts[partition] = log.log_start_offset
        if log.was_cleaned:
            self.note_cleaned(partition)

    def forget(self, partition: TopicPartition) -> None:
        for state in (
            self.recovery_points,
            self.log_starts,
            self.high_watermarks,
            self.cleaned,
            self._missing,
        ):
            state.pop(partition, None)

    def forget_missing(self) -> None:
        self._missing = {}

    def lower_recovery_point(self, partition: TopicPartition, offset: Offset) -> None:
        """Checkpoint a lower recovery point.

        The log calls this before it truncates itself to that offset.
        """
        if self.cleaned.get(partition, 0) > offset:
            # Records that replace the truncated ones are dirty. If they counted as clean, a later
            # pass could drop one of their tombstones before the records that it deletes.
            self.cleaned[partition] = offset
            self._write(names.CLEANER_CHECKPOINT, self.cleaned, durable=True)
        if self.recovery_points.get(partition, 0) > offset:
            self.recovery_points[partition] = offset
            self._write(names.RECOVERY_POINT_CHECKPOINT, self._all_recovery_points, durable=True)

    def write(
        self,
        logs: Iterable[tuple[TopicPartition, PartitionLog]],
        high_watermarks: Mapping[TopicPartition, Offset],
        *,
        durable: bool,
        is_beside_mark: bool,
    ) -> None:
        """Write recovery points, log start offsets and high watermarks of opened and unopened logs.

        While the clean-shutdown mark exists, changed recovery points and log start offsets are
        fsynced, because a torn checkpoint would make the mark useless.
        """
        for partition, log in logs:
            self.recovery_points[partition] = log.recovery_point
            if log.log_start_offset > log.first_segment_offset:
                self.log_starts[partition] = log.log_start_offset
            else:
                self.log_starts.pop(partition, None)
            if log.was_cleaned:
                self.cleaned.setdefault(partition, 0)
        self.high_watermarks.update(high_watermarks)
        if self.cleaned:
            self._write(names.CLEANER_CHECKPOINT, self.cleaned, durable)
        self._write(
            names.RECOVERY_POINT_CHECKPOINT, self._all_recovery_points, durable, is_beside_mark
        )
        self._write(names.LOG_START_CHECKPOINT, self.log_starts, durable, is_beside_mark)
        self._write(names.HIGH_WATERMARK_CHECKPOINT, self.high_watermarks, durable)

    @property
    def _all_recovery_points(self) -> Offsets:
        return {**self.recovery_points, **self._missing}

    def _write(
        self, path: str, offsets: Offsets, durable: bool, is_synced_if_new: bool = False
    ) -> None:
        content = checkpoints.encode_offsets(offsets)
        is_new = self._written.get(path) != content
        if durable or is_new:
            self._disk.write_file(path, content, durable=durable or is_synced_if_new)
            self._written[path] = content

    def _read(self, path: str) -> Offsets:
        offsets, was_sound = checkpoints.read_offsets(self._disk, path)
        if not was_sound:
            self.notes.append(f"{path} was torn or corrupt: {len(offsets)} of its lines are used")
        elif offsets:
            # Remember the content. An unchanged file is not rewritten, because power loss during a
            # write could tear it.
            self._written[path] = checkpoints.encode_offsets(offsets)
        return offsets
