"""One log directory: the partitions in it, its checkpoints, its clean-shutdown mark.

Invariant: a partition is opened at most once, and a log that was not opened costs nothing but
its name, so that a node with ten thousand partitions starts at once.
"""

from collections.abc import Mapping
from functools import partial
from heapq import heappop, heappush

from tidelog.log import names
from tidelog.log.checkpoints import checkpoints, partition_metadata
from tidelog.log.checkpoints.clean_shutdown import NO_BROKER_EPOCH, CleanShutdownMark
from tidelog.log.checkpoints.partition_metadata import Belonging
from tidelog.log.checkpoints.root_checkpoints import RootCheckpoints
from tidelog.log.config import LogConfig
from tidelog.log.partition import PartitionLog
from tidelog.log.recovery import misfits
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
"""So many logs are cheaper to bring to the disk all at once than file by file."""


DEFAULT_DELETE_DELAY_MS: Millis = 60_000


class LogDirectory:
    """All partition logs of one `log.dirs` entry. Its disk is rooted there."""

    def __init__(
        self, disk: Disk, dice: Dice, delete_delay_ms: Millis = DEFAULT_DELETE_DELAY_MS
    ) -> None:
        """List the partitions, read the checkpoints and the clean-shutdown mark."""
        self.notes: list[str] = []
        """What was odd about the files in the root, one sentence each."""
        self._disk = disk
        self._dice = dice
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._deleted: list[tuple[Millis, str]] = []
        self._leftovers: list[str] = []
        """Directories whose deletion an earlier process began; the first `purge` sets their time.
        """
        self._delete_delay_ms = delete_delay_ms
        self.strays: list[str] = []
        """Directories that were set aside, in this run or an earlier one, and are kept."""
        self._present: dict[TopicPartition, None] = {}
        self._topic_ids: dict[TopicPartition, TopicId] = {}
        self._misplaced: set[TopicPartition] = set()
        """Directories whose partition.metadata names another partition of the topic."""
        self._left: set[TopicPartition] = set()
        """Partitions that are gone, but not yet from the checkpoints on disk."""
        self.notes += misfits.clear(disk)
        for name in disk.list_directories(""):
            partition = names.partition_of(name)
            if names.is_deleted_directory(name):
                self._leftovers.append(name)
            elif names.is_stray_directory(name):
                self.strays.append(name)
            elif names.is_future_directory(name):
                # A move between directories that was cut off begins anew when it is asked for.
                heappush(self._deleted, (0, name))
            elif partition is not None:
                self._present[partition] = None
        self.clean_mark = CleanShutdownMark(disk)
        self.clean_shutdown = self.clean_mark.found.was_clean
        """The last owner of this directory closed every log before it ended."""
        self._checkpoints = RootCheckpoints(disk, self._present, was_clean=self.clean_shutdown)
        self.notes += self._checkpoints.notes
        self.previous_broker_epoch = self.clean_mark.found.broker_epoch
        """The epoch in which it ended so; -1 when unknown."""

    @property
    def meta(self) -> checkpoints.MetaProperties | None:
        """Whose directory this is; None when it has not been formatted."""
        return checkpoints.read_meta_properties(self._disk)

    def space(self) -> tuple[int, int]:
        """Bytes in all of the volume, and bytes still to be had of it."""
        return self._disk.space()

    def partitions(self) -> list[TopicPartition]:
        """All partitions on disk, opened or not, without those being deleted."""
        return list(self._present)

    def topic_id(self, partition: TopicPartition) -> TopicId | None:
        """From partition.metadata; None when it is absent or bad."""
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
                        "topic id is sound, and the file is written anew"
                    )
        return known

    def belongs_to(
        self, partition: TopicPartition, topic_id: TopicId, *, had_namesake: bool = False
    ) -> Belonging:
        """Whether the directory on disk is the one of this topic.

        partition.metadata is written with the first record and synced with the first flush: power
        loss may take it before that, and leave records. Then the directory is the topic's, unless
        there was another topic of this name that it could be of.
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
            if had_namesake or self._checkpoints.recovery_points.get(partition, 0) > 0:
                return Belonging.UNKNOWN
        self.write_topic_id(partition, topic_id)
        self.notes.append(
            f"{partition}/{names.PARTITION_METADATA} is written anew: "
            + ("the operator restored it" if found.is_restored else "it was never synced")
        )
        return Belonging.YES

    def _is_misplaced(self, partition: TopicPartition) -> bool:
        """Whether it holds records that may be those of another partition."""
        if partition not in self._misplaced:
            return False
        if self._has_records(partition):
            return True
        self.notes.append(f"{partition}/{names.PARTITION_METADATA} was that of another partition")
        self.write_topic_id(partition, self._topic_ids[partition])
        return False

    def _has_records(self, partition: TopicPartition) -> bool:
        return self.held(partition)[1] > 0

    def held(self, partition: TopicPartition) -> tuple[Offset, int]:
        """How far its log is known to have been durable, and the bytes in it."""
        found = {*self._disk.list(str(partition))} - {*self._disk.list_directories(str(partition))}
        logs = (f"{partition}/{name}" for name in found if name.endswith(names.LOG))
        return self.recovery_point(partition), sum(map(self._disk.size, logs))

    def hold(self, partition: TopicPartition) -> None:
        """Remember that the directory could be of another topic, until an operator restores it."""
        path = partition_metadata.path_in(str(partition))
        self._disk.write_file(path, partition_metadata.HELD)

    def write_topic_id(self, partition: TopicPartition, topic_id: TopicId) -> None:
        path = partition_metadata.path_in(str(partition))
        self._disk.write_file(path, partition_metadata.encode(topic_id, partition.partition))
        self._topic_ids[partition] = topic_id
        self._misplaced.discard(partition)

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """As it was checkpointed last, as all of these; 0 when absent."""
        return self._checkpoints.high_watermarks.get(partition, 0)

    def recovery_point(self, partition: TopicPartition) -> Offset:
        return self._checkpoints.recovery_points.get(partition, 0)

    def forget(self, partition: TopicPartition) -> None:
        """Its files were renamed: the checkpoints do not speak of what is opened next."""
        self._leave(partition, None)

    def log(self, partition: TopicPartition) -> PartitionLog | None:
        """The log if it has been opened."""
        return self._logs.get(partition)

    def open(
        self, partition: TopicPartition, topic_id: TopicId, config: LogConfig, now: Millis
    ) -> PartitionLog:
        """The log, loaded (and recovered after an unclean shutdown) or created on first use."""
        log = self._logs.get(partition)
        if log is not None:
            return log
        directory = str(partition)
        is_known = partition in self._present
        is_data = partition.topic != METADATA_TOPIC
        if partition in self._left:
            # The offsets of its namesake must not be taken for its own after a crash.
            self.write_checkpoints({}, durable=True)
        log = PartitionLog.open(
            self._disk,
            directory,
            config,
            now,
            clean_shutdown=self.clean_shutdown and is_known and is_data,
            recovery_point=self._checkpoints.recovery_point(
                partition, is_present=is_known, after_clean_shutdown=self.clean_shutdown
            ),
            log_start_offset=self._checkpoints.log_starts.get(partition, 0),
            lower_recovery_point=partial(self._checkpoints.lower_recovery_point, partition),
            before_change=self.clean_mark.withdraw if is_data else _do_nothing,
            before_gap=partial(self._checkpoints.note_cleaned, partition),
            was_cleaned=self._checkpoints.was_cleaned(partition, is_compacted=config.is_compacted),
        )
        if not is_known or self.topic_id(partition) is None:
            # Not written here, where it would hold up a node that makes very many.
            path = partition_metadata.path_in(directory)
            log.write_before_first_record(
                path, partition_metadata.encode(topic_id, partition.partition)
            )
            self._topic_ids[partition] = topic_id
        self._logs[partition] = log
        self._present[partition] = None
        return log

    def forget_missing(self) -> None:
        """All that was here and still belongs here has been opened: the rest was deleted."""
        self._checkpoints.forget_missing()

    # -- moving between directories

    def open_future(
        self, partition: TopicPartition, config: LogConfig, start: Offset, now: Millis
    ) -> PartitionLog:
        """An empty log beside that of another directory, which it is to replace."""
        unique = self._dice.uuid()
        directory = names.renamed_directory(partition, unique, names.FUTURE_DIRECTORY)
        return PartitionLog.open(
            self._disk,
            directory,
            config,
            now,
            clean_shutdown=False,
            log_start_offset=start,
            before_change=self.clean_mark.withdraw,
        )

    def adopt(
        self, partition: TopicPartition, future: PartitionLog, topic_id: TopicId, now: Millis
    ) -> PartitionLog:
        """The future log is the partition's own from now on, under its name and for good."""
        self.clean_mark.withdraw()
        path = partition_metadata.path_in(future.directory)
        self._disk.write_file(path, partition_metadata.encode(topic_id, partition.partition))
        future.close()
        self._disk.rename(future.directory, str(partition))
        self._disk.sync_directory("")
        self._checkpoints.recovery_points[partition] = future.log_end_offset
        self._checkpoints.log_starts[partition] = future.log_start_offset
        self._present[partition] = None
        self._left.discard(partition)
        log = self._logs[partition] = PartitionLog.open(
            self._disk,
            str(partition),
            future.config,
            now,
            clean_shutdown=True,
            recovery_point=future.log_end_offset,
            log_start_offset=future.log_start_offset,
            lower_recovery_point=partial(self._checkpoints.lower_recovery_point, partition),
            before_change=self.clean_mark.withdraw,
            before_gap=partial(self._checkpoints.note_cleaned, partition),
            was_cleaned=future.was_cleaned,
        )
        return log

    def drop_future(self, future: PartitionLog) -> None:
        self._disk.remove_tree(future.directory)

    # -- deleting

    def delete(self, partition: TopicPartition, now: Millis, delay_ms: Millis) -> None:
        """Rename to `<topic>-<n>.<uuid>-delete` at once; `purge` removes it after the delay."""
        name = names.renamed_directory(partition, self._dice.uuid(), names.DELETE_DIRECTORY)
        if self._leave(partition, name):
            heappush(self._deleted, (now + delay_ms, name))

    def set_aside(self, partition: TopicPartition) -> str:
        """Rename it to `<topic>-<n>.<uuid>-stray` and keep it. -> the new name."""
        name = names.renamed_directory(partition, self._dice.uuid(), names.STRAY_DIRECTORY)
        if self._leave(partition, name):
            self._disk.sync_directory("")
            self.strays.append(name)
        return name

    def restore(self, name: str) -> TopicPartition | None:
        """Have a directory opened as that of the topic of its name, whatever its id says.

        For an operator, while no node uses the directory. The partition is read in full and is not
        trusted to be in sync, since the mark of a clean shutdown goes. -> None when there is no
        such directory, or when another one with records has its place.
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
        self._leave(partition, None)
        path = partition_metadata.path_in(str(partition))
        self._disk.write_file(path, partition_metadata.RESTORED)
        self._disk.sync_directory("")
        self.write_checkpoints({}, durable=True)
        return partition

    def _leave(self, partition: TopicPartition, new_name: str | None) -> bool:
        self._checkpoints.forget(partition)
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
        """Remove directories that were deleted long enough ago."""
        for name in self._leftovers:
            heappush(self._deleted, (now + self._delete_delay_ms, name))
        self._leftovers.clear()
        while self._deleted and self._deleted[0][0] <= now:
            self._disk.remove_tree(self._deleted[0][1])
            heappop(self._deleted)

    def next_deadline(self) -> Millis | None:
        """When `purge` is next worth a call."""
        return self._deleted[0][0] if self._deleted else None

    # -- checkpoints

    def write_checkpoints(
        self, high_watermarks: Mapping[TopicPartition, Offset], *, durable: bool = False
    ) -> None:
        """Recovery points, log starts and high watermarks; of logs not opened as they were read."""
        self._checkpoints.write(
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
        """Close all logs, write the checkpoints, leave the clean-shutdown mark.

        A run that was not registered leaves a mark that is still there as it is.
        """
        # One fsync after another would take minutes where there are very many.
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
        """Whether no log is left that an unclean end may have damaged and nobody has checked."""
        return all(partition in self._logs for partition in self._present)


def _do_nothing() -> None:
    """The metadata log changes from the first moment on: no mark speaks of it."""
