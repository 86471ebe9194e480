"""The offsets of open transactions, which a commit makes visible and an abort drops (F76).

A pending offset is superseded when a newer record of the same partition takes effect first. Its
transaction then changes nothing, because compaction may already have removed the older record, and
a committed offset would go back (F66).
"""

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.coordination.records import OffsetCommitKey, OffsetCommitValue
from tidelog.model.ids import Offset, ProducerId


class PendingOffset(NamedTuple):
    value: OffsetCommitValue
    position: Offset
    """Where the record is in the log."""
    is_superseded: bool = False


class PendingOffsets:
    def __init__(self) -> None:
        self._by_producer: dict[ProducerId, dict[OffsetCommitKey, PendingOffset]] = {}
        self._producers: dict[str, dict[OffsetCommitKey, dict[ProducerId, None]]] = {}
        """The producers that have a pending offset of each partition, by group."""

    def add(
        self,
        producer_id: ProducerId,
        key: OffsetCommitKey,
        value: OffsetCommitValue,
        position: Offset,
    ) -> None:
        pending = self._by_producer.setdefault(producer_id, {})
        pending[key] = PendingOffset(value, position)
        self._producers.setdefault(key.group, {}).setdefault(key, {})[producer_id] = None

    def end(self, producer_id: ProducerId) -> dict[OffsetCommitKey, PendingOffset]:
        """Remove the pending offsets of a producer, and return those that are not superseded."""
        ended = self._by_producer.pop(producer_id, {})
        for key in ended:
            self._unlist(key, producer_id)
        return {key: one for key, one in ended.items() if not one.is_superseded}

    def supersede(self, key: OffsetCommitKey, position: Offset) -> None:
        """A record at this position takes effect: older pending offsets must not replace it."""
        for producer_id in self._producers_of(key):
            pending = self._by_producer[producer_id]
            if pending[key].position < position:
                pending[key] = pending[key]._replace(is_superseded=True)

    def discard(
        self, key: OffsetCommitKey, producer_ids: Iterable[ProducerId] | None = None
    ) -> None:
        """Forget the pending offsets of a partition, of these producers or of all."""
        for producer_id in list(self._producers_of(key) if producer_ids is None else producer_ids):
            pending = self._by_producer.get(producer_id, {})
            if pending.pop(key, None) is not None:
                self._unlist(key, producer_id)
            if not pending:
                self._by_producer.pop(producer_id, None)

    def __contains__(self, key: OffsetCommitKey) -> bool:
        return bool(self._producers_of(key))

    def of_group(self, group_id: str) -> dict[OffsetCommitKey, None]:
        """The partitions of a group that have pending offsets."""
        return dict.fromkeys(self._producers.get(group_id, ()))

    def _producers_of(self, key: OffsetCommitKey) -> dict[ProducerId, None]:
        return self._producers.get(key.group, {}).get(key, {})

    def _unlist(self, key: OffsetCommitKey, producer_id: ProducerId) -> None:
        of_group = self._producers[key.group]
        del of_group[key][producer_id]
        if not of_group[key]:
            del of_group[key]
        if not of_group:
            del self._producers[key.group]
