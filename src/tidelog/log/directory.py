"""One log directory: which partitions lie in it, its checkpoints, its clean-shutdown mark.

Invariant: a partition is opened at most once, and a log that was not opened costs nothing but its
name, so that a node with ten thousand partitions starts at once.
"""

from collections.abc import Mapping
from uuid import UUID

from tidelog.log.config import LogConfig
from tidelog.log.partition import PartitionLog
from tidelog.model.dice import Dice
from tidelog.model.disk import Disk
from tidelog.model.ids import BrokerEpoch, Millis, Offset, TopicId, TopicPartition


class LogDirectory:
    """All partition logs of one `log.dirs` entry. Its `disk` is rooted there."""

    clean_shutdown: bool
    """The last owner of this directory closed every log before it ended."""
    notes: list[str]
    """What was odd about the files in the root, one sentence each."""

    def __init__(self, disk: Disk, dice: Dice) -> None:
        """List the partitions, read the checkpoints, take the clean-shutdown mark away."""
        raise NotImplementedError

    def partitions(self) -> list[TopicPartition]:
        """All partitions on disk, opened or not, without those being deleted."""
        raise NotImplementedError

    def topic_id(self, partition: TopicPartition) -> TopicId | None:
        """From partition.metadata; None when it is absent or bad."""
        raise NotImplementedError

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """From replication-offset-checkpoint; 0 when absent."""
        raise NotImplementedError

    def log(self, partition: TopicPartition) -> PartitionLog | None:
        """The log if it has been opened."""
        raise NotImplementedError

    def open(
        self, partition: TopicPartition, topic_id: TopicId, config: LogConfig, now: Millis
    ) -> PartitionLog:
        """The log, loaded (and recovered after an unclean shutdown) or created on first use."""
        raise NotImplementedError

    def delete(self, partition: TopicPartition, now: Millis, delay_ms: Millis) -> None:
        """Rename to `<topic>-<n>.<uuid>-delete` at once; `purge` removes it after the delay."""
        raise NotImplementedError

    def set_aside(self, partition: TopicPartition) -> None:
        """Rename a partition that the cluster no longer places here to `...-stray`, keeping it."""
        raise NotImplementedError

    def purge(self, now: Millis) -> None:
        """Remove what was deleted long enough ago."""
        raise NotImplementedError

    def next_deadline(self) -> Millis | None:
        """When `purge` is next worth a call."""
        raise NotImplementedError

    def write_checkpoints(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Recovery points, log start offsets, high watermarks of the opened logs (and of the others as read)."""
        raise NotImplementedError

    def close(
        self, high_watermarks: Mapping[TopicPartition, Offset], broker_epoch: BrokerEpoch = -1
    ) -> None:
        """Close all logs, write the checkpoints, leave the clean-shutdown mark."""
        raise NotImplementedError


def delete_directory_name(partition: TopicPartition, unique: UUID) -> str:
    raise NotImplementedError
