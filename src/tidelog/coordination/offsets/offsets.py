"""The committed offsets of all groups of one partition of `__consumer_offsets`.

Offsets that belong to an open transaction are pending. A commit of the transaction makes them
visible, and an abort drops them (F76).
"""

from collections.abc import Iterator

from tidelog.coordination.records import OffsetCommitKey, OffsetCommitValue
from tidelog.coordination.runtime.decision import ProducerIdAndEpoch
from tidelog.model.ids import ProducerId


class OffsetStore:
    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, OffsetCommitValue]]] = {}
        self._pending: dict[ProducerId, dict[OffsetCommitKey, OffsetCommitValue]] = {}

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommitValue | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def has_group(self, group_id: str) -> bool:
        return group_id in self._groups

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        """Apply a record: a new offset, or a tombstone."""
        if value is not None:
            topics = self._groups.get(key.group)
            if topics is None:
                topics = self._groups[key.group] = {}
            partitions = topics.get(key.topic)
            if partitions is None:
                partitions = topics[key.topic] = {}
            partitions[key.partition] = value
            return
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

    def group_ids(self) -> list[str]:
        return list(self._groups)

    # -- Offsets of open transactions --------------------------------------------------------------

    def add_pending(
        self, producer: ProducerIdAndEpoch, key: OffsetCommitKey, value: OffsetCommitValue | None
    ) -> None:
        pending = self._pending.setdefault(producer.producer_id, {})
        if value is None:
            pending.pop(key, None)
        else:
            pending[key] = value

    def end_transaction(
        self, producer: ProducerIdAndEpoch
    ) -> dict[OffsetCommitKey, OffsetCommitValue]:
        """Remove and return the pending offsets of a producer."""
        return self._pending.pop(producer.producer_id, {})

    def drop_pending(self, key: OffsetCommitKey) -> None:
        """Forget the pending offsets of a partition that is deleted."""
        for producer_id, pending in list(self._pending.items()):
            pending.pop(key, None)
            if not pending:
                del self._pending[producer_id]

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        key = OffsetCommitKey(group_id, topic, partition)
        return any(key in pending for pending in self._pending.values())

    def pending_of(self, group_id: str) -> dict[OffsetCommitKey, None]:
        """The partitions of a group that have pending offsets."""
        return {
            key: None
            for pending in self._pending.values()
            for key in pending
            if key.group == group_id
        }
