"""One log directory: its partitions, its checkpoints and its clean-shutdown mark.

Invariant: a partition is opened at most once. Until a partition is opened, only its name is in
memory, so a node with ten thousand partitions starts fast.
"""

from collections.abc import Mapping
from functools import partial
from heapq import heappop, heappush

from tidelog.log import names
from tidelog.log.checkpoints import checkpoints, partition_metadata
from tidelog.log.checkpoints.clean_shutdown import NO_BROKER_EPOCH, CleanShutdownMark
from tidelog.log.checkpoints.last_stop import BootMark, LastStop
from tidelog.log.checkpoints.partition_metadata import Belonging
from tidelog.log.checkpoints.root_checkpoints import RootCheckpoints
from tidelog.log.config import LogConfig
from tidelog.log.partition import PartitionLog
from tidelog.log.recovery import wrong_file_types
from tidelog.log.recovery.steps import OpeningSteps, all_at_once
from tidelog.model.dice import Dice
from tidelog.model.disk import Disk
from tidelog.model.ids import (
    METADATA_TOPIC,
    BrokerEpoch,
    Millis,
    Offset,
    TopicId,
    TopicPartition,
)

MANY = 100
"""Above this number of logs, one sync of the whole volume is cheaper than an fsync per file."""

DEFAULT_DELETE_DELAY_MS: Millis = 60_000


class LogDirectory:
    """The logs of all partitions in one directory of `log.dirs`, the root of `disk`."""

    def __init__(
        self, disk: Disk, dice: Dice, delete_delay_ms: Millis = DEFAULT_DELETE_DELAY_MS
    ) -> None:
        """List the partitions, and read the checkpoints and the clean-shutdown mark."""
        self.notes: list[str] = []
        """Problems found in the files of this log directory, one sentence each."""
        self._disk = disk
        self._dice = dice
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._deleted: list[tuple[Millis, str]] = []
        self._leftovers: list[str] = []
        """Directories that an earlier process marked for deletion; `purge` starts their delay."""
        self._delete_delay_ms = delete_delay_ms
        self.strays: list[str] = []
        """Partition directories that this run or an earlier run has set aside. They are kept."""
        self._present: dict[TopicPartition, None] = {}
        self._topic_ids: dict[TopicPartition, TopicId] = {}
        self._misplaced: set[TopicPartition] = set()
        """Partitions whose partition.metadata names another partition of the same topic."""
        self._left: set[TopicPartition] = set()
        """Partitions that were removed but are still listed in the checkpoints on disk."""
        self.notes += wrong_file_types.clear(disk)
        for name in disk.list_directories(""):
            partition = names.partition_of(name)
            if names.is_deleted_directory(name):
                self._leftovers.append(name)
            elif names.is_stray_directory(name):
                self.strays.append(name)
            elif names.is_future_directory(name):
                # Delete the copy of an interrupted move. A new request starts the move again.
                heappush(self._deleted, (0, name))
            elif partition is not None:
                self._present[partition] = None
        self.clean_mark = CleanShutdownMark(disk)
        self.clean_shutdown = self.clean_mark.found.was_clean
        """Whether the last process closed every log of this directory before it ended."""
        self._boot_mark = BootMark(disk)
        self._last_stop = LastStop.KILLED if self._boot_mark.is_current else LastStop.UNKNOWN
        if self.clean_shutdown:
            self._last_stop = LastStop.CLEAN
            self._boot_mark.set()
        self.checkpoints = RootCheckpoints(disk, self._present, was_clean=self.clean_shutdown)
        self.notes += self.checkpoints.notes
        self.previous_broker_epoch = self.clean_mark.found.broker_epoch
        """The broker epoch of the last clean shutdown; -1 when it is unknown."""

    @property
    def meta(self) -> checkpoints.MetaProperties | None:
        """The node that owns this directory; None if the directory is not formatted."""
        return checkpoints.read_meta_properties(self._disk)

    def space(self) -> tuple[int, int]:
        """Total and available bytes of the volume."""
        return self._disk.space()

    def partitions(self) -> list[TopicPartition]:
        """All partitions on disk, opened or not, except partitions that are being deleted."""
        return list(self._present)

    def topic_id(self, partition: TopicPartition) -> TopicId | None:
        """The topic id in partition.metadata; None when the file is absent or damaged."""
        known = self._topic_ids.get(partition)
        if known is None:
            found = partition_metadata.read(self._disk, str(partition))
            known = found.topic_id
            if known is not None:
                self._topic_ids[partition] = known
                if not found.is_in_place(partition.partition):
                    self._misplaced.add(partition)
                elif found.needs_repair:
                    self.write_topic_id(partition, known)
                    self.notes.append(
                        f"{partition}/{names.PARTITION_METADATA} was damaged; its copy of the "
                        "topic id is intact, and the file is rewritten"
                    )
        return known

    def belongs_to(
        self, partition: TopicPartition, topic_id: TopicId, *, had_namesake: bool = False
    ) -> Belonging:
        """Whether the partition's directory on disk belongs to the topic with this id.

        partition.metadata is written with the first record and synced with the first flush. After
        power loss, a directory may therefore hold records without this file. If its records were
        never flushed and no earlier topic had the same name, it still belongs to this topic.
        """
        if (known := self.topic_id(partition)) is not None and known != topic_id:
            return Belonging.NO
        if known is not None:
            return Belonging.MISPLACED if self._is_misplaced(partition) else Belonging.YES
        found = partition_metadata.read(self._disk, str(partition))
        if found.is_held:
            return Belonging.HELD
        if not found.is_restored:
            if not self._has_records(partition):
                if not found.is_absent:
                    self.notes.append(f"{partition}/{names.PARTITION_METADATA} was damaged")
                return Belonging.YES
            if had_namesake or self.checkpoints.recovery_points.get(partition, 0) > 0:
                return Belonging.UNKNOWN
        self.write_topic_id(partition, topic_id)
        self.notes.append(
            f"{partition}/{names.PARTITION_METADATA} is rewritten: "
            + ("the operator restored it" if found.is_restored else "it was never synced")
        )
        return Belonging.YES

    def _is_misplaced(self, partition: TopicPartition) -> bool:
        """Whether the directory holds records that may belong to another partition."""
        if partition not in self._misplaced:
            return False
        if self._has_records(partition):
            return True
        self.notes.append(f"{partition}/{names.PARTITION_METADATA} named another partition")
        self.write_topic_id(partition, self._topic_ids[partition])
        return False

    def _has_records(self, partition: TopicPartition) -> bool:
        return self.held(partition)[1] > 0

    def held(self, partition: TopicPartition) -> tuple[Offset, int]:
        """The recovery point of the partition, and the total size of its log files in bytes."""
        found = {*self._disk.list(str(partition))} - {*self._disk.list_directories(str(partition))}
        logs = (f"{partition}/{name}" for name in found if name.endswith(names.LOG))
        return self.recovery_point(partition), sum(map(self._disk.size, logs))

    def hold(self, partition: TopicPartition) -> None:
        """Mark a directory as held, so that it is out of use until an operator has checked it."""
        path = partition_metadata.path_in(str(partition))
        self._disk.write_file(path, partition_metadata.HELD)

    def write_topic_id(self, partition: TopicPartition, topic_id: TopicId) -> None:
        path = partition_metadata.path_in(str(partition))
        self._disk.write_file(path, partition_metadata.encode(topic_id, partition.partition))
        self._topic_ids[partition] = topic_id
        self._misplaced.discard(partition)

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """The last checkpointed high watermark; 0 when there is none."""
        return self.checkpoints.high_watermarks.get(partition, 0)

    def recovery_point(self, partition: TopicPartition) -> Offset:
        return self.checkpoints.recovery_points.get(partition, 0)

    def forget(self, partition: TopicPartition) -> None:
        """Drop the checkpointed offsets of a partition whose files were renamed."""
        self._detach(partition, None)

    def log(self, partition: TopicPartition) -> PartitionLog | None:
        """The partition's log; None if it has not been opened."""
        return self._logs.get(partition)

    def open(
        self, partition: TopicPartition, topic_id: TopicId, config: LogConfig, now: Millis
    ) -> PartitionLog:
        """Return the partition's log, after loading, recovering or creating it if necessary."""
        return all_at_once(self.opening(partition, topic_id, config, now))

    def opening(
        self, partition: TopicPartition, topic_id: TopicId, config: LogConfig, now: Millis
    ) -> OpeningSteps[PartitionLog]:
        """The steps of `open`. After a clean shutdown, there is only one step."""
        log = self._logs.get(partition)
        if log is not None:
            return log
        directory = str(partition)
        is_known = partition in self._present
        is_data = partition.topic != METADATA_TOPIC
        if partition in self._left:
            # Remove the offsets of the deleted partition, so that no later start uses them.
            self.write_checkpoints({}, durable=True)
        steps = PartitionLog.opening(
            self._disk,
            directory,
            config,
            now,
            last_stop=self._last_stop if is_known and is_data else LastStop.UNKNOWN,
            recovery_point=self.checkpoints.recovery_point(
                partition, is_present=is_known, after_clean_shutdown=self.clean_shutdown
            ),
            log_start_offset=self.checkpoints.log_starts.get(partition, 0),
            lower_recovery_point=partial(self.checkpoints.lower_recovery_point, partition),
            before_change=self.clean_mark.withdraw if is_data else lambda: None,
            before_gap=partial(self.checkpoints.note_cleaned, partition),
            was_cleaned=self.checkpoints.was_cleaned(partition, is_compacted=config.is_compacted),
        )
        # `close` may set the clean-shutdown mark again, and must not do so between two steps.
        log = all_at_once(steps) if self.clean_shutdown else (yield from steps)
        if not is_known or self.topic_id(partition) is None:
            # partition.metadata is written with the first record, because writing it here would
            # slow down a node that creates very many partitions.
            encoded = partition_metadata.encode(topic_id, partition.partition)
            log.write_before_first_record(partition_metadata.path_in(directory), encoded)
            self._topic_ids[partition] = topic_id
        self._logs[partition] = log
        self._present[partition] = None
        return log

    def opened_all(self) -> None:
        """Drop the offsets of missing directories, because every assigned partition is now open."""
        self.checkpoints.forget_missing()
        if self._has_opened_all:
            self._boot_mark.set()

    # -- moving between directories

    def open_future(
        self, partition: TopicPartition, config: LogConfig, start: Offset, now: Millis
    ) -> PartitionLog:
        """Create an empty log, into which the partition is copied from another log directory."""
        unique = self._dice.uuid()
        directory = names.renamed_directory(partition, unique, names.FUTURE_DIRECTORY)
        return PartitionLog.open(
            self._disk,
            directory,
            config,
            now,
            last_stop=LastStop.UNKNOWN,
            log_start_offset=start,
            before_change=self.clean_mark.withdraw,
        )

    def adopt(
        self, partition: TopicPartition, future: PartitionLog, topic_id: TopicId, now: Millis
    ) -> PartitionLog:
        """Rename a log from `open_future` durably, so that it becomes the log of the partition."""
        self.clean_mark.withdraw()
        path = partition_metadata.path_in(future.directory)
        self._disk.write_file(path, partition_metadata.encode(topic_id, partition.partition))
        future.close()
        self.checkpoints.adopt(partition, future)
        self._disk.rename(future.directory, str(partition))
        self._disk.sync_directory("")
        self._present[partition] = None
        self._left.discard(partition)
        log = self._logs[partition] = PartitionLog.open(
            self._disk,
            str(partition),
            future.config,
            now,
            last_stop=LastStop.CLEAN,
            recovery_point=future.log_end_offset,
            log_start_offset=future.log_start_offset,
            lower_recovery_point=partial(self.checkpoints.lower_recovery_point, partition),
            before_change=self.clean_mark.withdraw,
            before_gap=partial(self.checkpoints.note_cleaned, partition),
            was_cleaned=future.was_cleaned,
        )
        return log

    def drop_future(self, future: PartitionLog) -> None:
        self._disk.remove_tree(future.directory)

    # -- deleting and setting aside

    def delete(self, partition: TopicPartition, now: Millis, delay_ms: Millis) -> None:
        """Rename the directory to `<topic>-<n>.<uuid>-delete`; `purge` removes it later."""
        name = names.renamed_directory(partition, self._dice.uuid(), names.DELETE_DIRECTORY)
        if self._detach(partition, name):
            heappush(self._deleted, (now + delay_ms, name))

    def set_aside(self, partition: TopicPartition) -> str:
        """Rename the directory to `<topic>-<n>.<uuid>-stray` and keep it; returns the new name."""
        name = names.renamed_directory(partition, self._dice.uuid(), names.STRAY_DIRECTORY)
        if self._detach(partition, name):
            self._disk.sync_directory("")
            self.strays.append(name)
        return name

    def restore(self, name: str) -> TopicPartition | None:
        """Give a stray directory back to the topic in its name, even if its topic id differs.

        An operator calls this while no node uses the directory. The clean-shutdown mark is removed,
        so at the next start the partition is scanned in full and does not count as in sync. Returns
        None if the stray directory is missing, or if the partition has another directory with
        records.
        """
        partition = names.stray_partition(name) or names.partition_of(name)
        if partition is None or not self._disk.list(name):
            return None
        self.clean_mark.withdraw()
        if name != str(partition):
            if partition in self._present and self._has_records(partition):
                return None
            if partition in self._present:
                self.set_aside(partition)
            self._disk.rename(name, str(partition))
            self.strays.remove(name)
        self._detach(partition, None)
        path = partition_metadata.path_in(str(partition))
        self._disk.write_file(path, partition_metadata.RESTORED)
        self._disk.sync_directory("")
        self.write_checkpoints({}, durable=True)
        return partition

    def _detach(self, partition: TopicPartition, new_name: str | None) -> bool:
        self.checkpoints.forget(partition)
        self._logs.pop(partition, None)
        self._topic_ids.pop(partition, None)
        self._misplaced.discard(partition)
        self._left.add(partition)
        if partition not in self._present or new_name is None:
            return False
        self.clean_mark.withdraw()
        del self._present[partition]
        self._disk.rename(str(partition), new_name)
        return True

    def purge(self, now: Millis) -> None:
        """Remove deleted directories whose delay has passed."""
        for name in self._leftovers:
            heappush(self._deleted, (now + self._delete_delay_ms, name))
        self._leftovers.clear()
        while self._deleted and self._deleted[0][0] <= now:
            self._disk.remove_tree(self._deleted[0][1])
            heappop(self._deleted)

    def next_deadline(self) -> Millis | None:
        """When to call `purge` next; None if no directory waits for its removal."""
        return self._deleted[0][0] if self._deleted else None

    # -- checkpoints and closing

    def write_checkpoints(
        self, high_watermarks: Mapping[TopicPartition, Offset], *, durable: bool = False
    ) -> None:
        """Write recovery points, log start offsets and high watermarks of all partitions."""
        self.checkpoints.write(
            self._logs.items(),
            high_watermarks,
            durable=durable,
            is_beside_mark=self.clean_mark.is_there,
        )
        self._left.clear()

    def close(
        self,
        high_watermarks: Mapping[TopicPartition, Offset],
        broker_epoch: BrokerEpoch = NO_BROKER_EPOCH,
    ) -> None:
        """Close all logs, write the checkpoints and set the clean-shutdown mark.

        If this process never registered as a broker, an existing mark remains unchanged.
        """
        are_many = len(self._logs) > MANY
        for log in self._logs.values():
            log.close(is_synced_by_caller=are_many)
        if are_many:
            self._disk.sync_all()
        self.write_checkpoints(high_watermarks, durable=True)
        if broker_epoch == NO_BROKER_EPOCH and self.clean_mark.is_there:
            return
        if self.clean_shutdown or self._has_opened_all:
            self.clean_mark.set(broker_epoch)

    @property
    def _has_opened_all(self) -> bool:
        """Whether this process has opened, and thereby checked, every log of the directory."""
        return self._present.keys() <= self._logs.keys()
