"""The coordinators on this node, for each internal topic in which coordinators keep their state."""

from collections.abc import Iterable
from typing import Any

from tidelog.api.handler import Request
from tidelog.coordination.runtime.decision import ProducerIdAndEpoch
from tidelog.model.effects import Coordinate, CoordinateAll
from tidelog.model.ids import Offset, TopicPartition
from tidelog.node.coordinators.shards import CoordinatorShards
from tidelog.node.metadata.current_image import ImageChange
from tidelog.node.partitions.replica import Replica
from tidelog.node.requests.parking import Parked, Resume


class Coordinators:
    """Passes each call to the shards of its topic. Other topics have no coordinators."""

    def __init__(self, shards: Iterable[CoordinatorShards]) -> None:
        self._by_topic = {one.topic: one for one in shards}

    # -- leadership and metadata -------------------------------------------------------------------

    def lead(self, replica: Replica) -> None:
        if (shards := self._by_topic.get(replica.partition.topic)) is not None:
            shards.lead(replica)

    def resign(self, partition: TopicPartition) -> None:
        if (shards := self._by_topic.get(partition.topic)) is not None:
            shards.resign(partition.partition)

    def resign_all(self) -> None:
        for shards in self._by_topic.values():
            shards.resign_all()

    def image_changed(self, change: ImageChange) -> None:
        for shards in self._by_topic.values():
            shards.image_changed(change)

    # -- effects of handlers -----------------------------------------------------------------------

    def coordinate(self, effect: Coordinate, resume: Resume, request: Request) -> Any | Parked:
        shards = self._by_topic[effect.topic]
        return shards.coordinate(effect.key, effect.request, resume, request)

    def coordinate_all(
        self, effect: CoordinateAll, resume: Resume, request: Request
    ) -> list[Any] | Parked:
        return self._by_topic[effect.topic].coordinate_all(effect.request, resume, request)

    # -- transactions ------------------------------------------------------------------------------

    def is_loading(self, partition: TopicPartition) -> bool:
        shards = self._by_topic.get(partition.topic)
        return shards is not None and shards.is_loading(partition)

    def transaction_ended(
        self,
        partition: TopicPartition,
        producer: ProducerIdAndEpoch,
        end: Offset,
        *,
        committed: bool,
    ) -> None:
        """A marker was appended to a partition, with `end` as the offset after it."""
        if (shards := self._by_topic.get(partition.topic)) is not None:
            shards.transaction_ended(partition, producer, end, committed=committed)
