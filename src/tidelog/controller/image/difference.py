"""The difference between two images, which shows a node the partitions to lead and to follow.

Images share their unchanged parts, so maps and topics that are the same object are skipped. Finding
a small change in a cluster of ten thousand partitions is therefore cheap.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tidelog.controller.image.image import ClusterImage, PartitionImage, TopicImage
from tidelog.model.ids import NodeId, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionDifference:
    topic: TopicImage
    index: int
    old: PartitionImage | None
    """The partition in the old image; None if the partition is new."""
    new: PartitionImage

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic.name, self.index)


@dataclass(frozen=True, slots=True)
class ImageDifference:
    created: tuple[TopicImage, ...] = ()
    deleted: tuple[TopicImage, ...] = ()
    """The deleted topics. A topic that was created again is also in `created`, with its new id."""
    partitions: tuple[PartitionDifference, ...] = ()
    """New and changed partitions; partitions of deleted topics are not listed."""
    configs: tuple[tuple[int, str], ...] = ()
    """Resources whose configuration changed."""
    brokers: tuple[NodeId, ...] = ()
    """Brokers that were added, removed or changed."""
    features: bool = False

    @property
    def is_empty(self) -> bool:
        return self == ImageDifference()


def diff(old: ClusterImage, new: ClusterImage) -> ImageDifference:
    """Compare two images; the order of the result does not depend on hashing."""
    created, deleted = _topics(old, new)
    return ImageDifference(
        created=created,
        deleted=deleted,
        partitions=tuple(changed_partitions(old, new)),
        configs=tuple(_configs(old, new)),
        brokers=tuple(changed_brokers(old, new)),
        features=old.features is not new.features and old.features != new.features,
    )


def _topics(
    old: ClusterImage, new: ClusterImage
) -> tuple[tuple[TopicImage, ...], tuple[TopicImage, ...]]:
    if old.topic_names is new.topic_names:
        return (), ()
    created = (
        new.topics[name] for id_, name in new.topic_names.items() if id_ not in old.topic_names
    )
    deleted = (
        old.topics[name] for id_, name in old.topic_names.items() if id_ not in new.topic_names
    )
    return tuple(created), tuple(deleted)


def changed_partitions(old: ClusterImage, new: ClusterImage) -> Iterator[PartitionDifference]:
    """New and changed partitions, one by one."""
    if old.topics is new.topics:
        return
    for name, topic in new.topics.items():
        before = old.topics.get(name)
        if before is topic:
            continue
        same_topic = before is not None and before.topic_id == topic.topic_id
        had = before.partitions if before is not None and same_topic else {}
        for index, partition in topic.partitions.items():
            earlier = had.get(index)
            if earlier is not partition and earlier != partition:
                yield PartitionDifference(topic, index, earlier, partition)


def _configs(old: ClusterImage, new: ClusterImage) -> Iterator[tuple[int, str]]:
    if old.configs is new.configs:
        return
    for resource, values in new.configs.items():
        before = old.configs.get(resource)
        if before is not values and before != values:
            yield resource
    yield from (resource for resource in old.configs if resource not in new.configs)


def changed_brokers(old: ClusterImage, new: ClusterImage) -> Iterator[NodeId]:
    """Brokers that were added, removed or changed, in order of id."""
    if old.brokers is new.brokers:
        return
    for broker in sorted({**old.brokers, **new.brokers}):
        if old.brokers.get(broker) != new.brokers.get(broker):
            yield broker
