"""Applies new topic configurations to the replicas of this node, some replicas per turn (F63)."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from tidelog.controller.image.image import PartitionImage
from tidelog.model.ids import TopicPartition
from tidelog.node.clock import Clock
from tidelog.node.partitions.partitions import Partitions
from tidelog.node.partitions.replica import Replica
from tidelog.node.partitions.topic_config import TopicConfig, TopicConfigs
from tidelog.node.timers import Timer

CONFIGURED_PER_TURN = 250
"""How many replicas to reconfigure before other events are handled."""

Configure: TypeAlias = Callable[[Replica, PartitionImage, TopicConfig], None]


class Reconfiguring:
    def __init__(
        self, clock: Clock, partitions: Partitions, configs: TopicConfigs, configure: Configure
    ) -> None:
        self._clock = clock
        self._partitions = partitions
        self._configs = configs
        self._configure = configure
        self._waiting: dict[TopicPartition, None] = {}
        """Replicas whose topic has a new configuration, in order."""
        self._next_turn: Timer | None = None

    def changed(self, names: Iterable[str]) -> None:
        """Configure the replicas of these topics anew."""
        topics = self._partitions.current.image.topics
        for name in names:
            indexes = topics[name].partitions if name in topics else ()
            self._waiting.update(
                (partition, None)
                for partition in (TopicPartition(name, index) for index in indexes)
                if partition in self._partitions
            )
        if self._next_turn is None:
            self._configure_some()

    def _configure_some(self) -> None:
        """Configure some replicas, so that requests are served between turns."""
        self._next_turn = None
        image, configs = self._partitions.current.image, dict[str, TopicConfig]()
        for _ in range(min(len(self._waiting), CONFIGURED_PER_TURN)):
            partition = next(iter(self._waiting))
            del self._waiting[partition]
            topic = partition.topic
            if topic not in configs:
                configs[topic] = self._configs.of(image, topic)
            replica, placed = self._partitions.get(partition), image.partition(partition)
            if replica is not None and placed is not None:
                self._configure(replica, placed, configs[topic])
        if self._waiting:
            self._next_turn = self._clock.timers.at(self._clock.now + 1, self._configure_some)
