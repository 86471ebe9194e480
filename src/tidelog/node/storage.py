"""The log directories of this node, seen as one: which directory holds which partition."""

from collections.abc import Iterable, Iterator, Sequence

from tidelog.log.config import LogConfig
from tidelog.log.directory import LogDirectory
from tidelog.log.partition import PartitionLog
from tidelog.model.ids import METADATA_TOPIC, BrokerEpoch, Millis, Offset, TopicId, TopicPartition
from tidelog.node.replica import Replica


class Storage:
    def __init__(self, directories: Sequence[LogDirectory]) -> None:
        assert directories
        self.directories = directories
        self._holder = {
            partition: directory
            for directory in directories
            for partition in directory.partitions()
        }

    @property
    def previous_broker_epoch(self) -> BrokerEpoch:
        """The epoch in which this broker shut down cleanly; -1 if any directory cannot say."""
        epochs = {directory.previous_broker_epoch for directory in self.directories}
        return epochs.pop() if len(epochs) == 1 else -1

    def partitions(self) -> Iterator[tuple[TopicPartition, TopicId | None]]:
        """Every partition on disk but the metadata log, with the topic id that it was made for."""
        for partition, directory in list(self._holder.items()):
            if partition.topic != METADATA_TOPIC:
                yield partition, directory.topic_id(partition)

    def open(
        self, partition: TopicPartition, topic_id: TopicId, config: LogConfig, now: Millis
    ) -> PartitionLog:
        """Open the partition where it lies; a new one goes where the fewest are."""
        holder = self._holder.get(partition)
        if holder is not None and holder.topic_id(partition) not in (None, topic_id):
            # Its topic was deleted and made again while this node was down (F30).
            self.delete(partition, now, 0)
            holder = None
        if holder is None:
            holder = min(self.directories, key=lambda directory: len(directory.partitions()))
            self._holder[partition] = holder
        return holder.open(partition, topic_id, config, now)

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """As it was checkpointed last; 0 for a partition that is new here."""
        holder = self._holder.get(partition)
        return 0 if holder is None else holder.high_watermark(partition)

    def delete(self, partition: TopicPartition, now: Millis, delay_ms: Millis) -> None:
        holder = self._holder.pop(partition, None)
        if holder is not None:
            holder.delete(partition, now, delay_ms)

    def place_of(self, partition: TopicPartition) -> int:
        """The position in log.dirs of the directory that holds the partition."""
        return self.directories.index(self._holder[partition])

    def purge(self, now: Millis) -> None:
        for directory in self.directories:
            directory.purge(now)

    def write_checkpoints(self, replicas: Iterable[Replica]) -> None:
        watermarks = self._watermarks(replicas)
        for directory in self.directories:
            directory.write_checkpoints(watermarks)

    def close(self, replicas: Iterable[Replica], broker_epoch: BrokerEpoch) -> None:
        """Clean shutdown: the next start may trust what it finds."""
        watermarks = self._watermarks(replicas)
        for directory in self.directories:
            directory.close(watermarks, broker_epoch)

    def _watermarks(self, replicas: Iterable[Replica]) -> dict[TopicPartition, Offset]:
        return {replica.partition: replica.high_watermark for replica in replicas}
