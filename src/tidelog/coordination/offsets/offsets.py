"""The committed offsets of all groups of one partition of `__consumer_offsets`.

The store holds only durable offsets. A commit in flight is added when its write succeeds.
"""

from collections.abc import Iterator

from tidelog.coordination.records import OffsetCommitKey, OffsetCommitValue


class OffsetStore:
    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, OffsetCommitValue]]] = {}

    def get(self, group_id: str, topic: str, partition: int) -> OffsetCommitValue | None:
        return self._groups.get(group_id, {}).get(topic, {}).get(partition)

    def has_group(self, group_id: str) -> bool:
        return group_id in self._groups

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        """Apply a record: a new offset, or a tombstone."""
        if value is not None:
            topics = self._groups.setdefault(key.group, {})
            topics.setdefault(key.topic, {})[key.partition] = value
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
