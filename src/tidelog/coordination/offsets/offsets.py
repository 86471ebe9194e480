"""The committed offsets of all groups of one partition of `__consumer_offsets`.

Offsets that belong to an open transaction are pending (F76).
"""

from collections.abc import Iterable, Iterator

from tidelog.coordination.offsets.pending import PendingOffsets
from tidelog.coordination.records import OffsetCommitKey, OffsetCommitValue
from tidelog.coordination.runtime.decision import ProducerIdAndEpoch
from tidelog.model.ids import Offset


class OffsetStore:
    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, OffsetCommitValue]]] = {}
        self.pending = PendingOffsets()

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommitValue | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def has_group(self, group_id: str) -> bool:
        return group_id in self._groups

    def apply(
        self, key: OffsetCommitKey, value: OffsetCommitValue | None, position: Offset
    ) -> None:
        """Apply the record at this position of the log: a new offset, or a tombstone."""
        if value is not None:
            self.pending.supersede(key, position)
            topics = self._groups.get(key.group)
            if topics is None:
                topics = self._groups[key.group] = {}
            partitions = topics.get(key.topic)
            if partitions is None:
                partitions = topics[key.topic] = {}
            partitions[key.partition] = value
            return
        self.pending.discard(key)
        topics = self._groups.get(key.group, {})
        partitions = topics.get(key.topic, {})
        partitions.pop(key.partition, None)
        if not partitions:
            topics.pop(key.topic, None)
        if not topics:
            self._groups.pop(key.group, None)

    def of_group(self, group_id: str) -> Iterator[tuple[OffsetCommitKey, OffsetCommitValue]]:
        """The offsets of a group, in order of topic and partition."""
        for topic, partitions in sorted(self._groups.get(group_id, {}).items()):
            for partition, value in sorted(partitions.items()):
                yield OffsetCommitKey(group_id, topic, partition), value

    def of_topics(self, group_id: str, topics: Iterable[str]) -> Iterator[OffsetCommitKey]:
        """The partitions of these topics for which the group has committed offsets."""
        of_group = self._groups.get(group_id, {})
        for topic in topics:
            for partition in sorted(of_group.get(topic, ())):
                yield OffsetCommitKey(group_id, topic, partition)

    def group_ids(self) -> list[str]:
        return list(self._groups)

    # -- Offsets of open transactions --------------------------------------------------------------

    def add_pending(
        self,
        producer: ProducerIdAndEpoch,
        key: OffsetCommitKey,
        value: OffsetCommitValue | None,
        position: Offset,
    ) -> None:
        if value is None:
            self.pending.discard(key, (producer.producer_id,))
        else:
            self.pending.add(producer.producer_id, key, value, position)

    def end_transaction(
        self, producer: ProducerIdAndEpoch, *, committed: bool
    ) -> list[OffsetCommitKey]:
        """Make the pending offsets of a producer visible, or drop them; returns their keys."""
        ended = self.pending.end(producer.producer_id)
        if not committed:
            return []
        for key, one in ended.items():
            self.apply(key, one.value, one.position)
        return list(ended)
