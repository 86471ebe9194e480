"""Groups partitions by topic, as most requests need them."""

from collections.abc import Iterable
from itertools import groupby

from tidelog.model.ids import TopicPartition


def by_topic(
    partitions: Iterable[TopicPartition],
) -> Iterable[tuple[str, Iterable[TopicPartition]]]:
    """The partitions of each topic, in order."""
    return groupby(sorted(partitions), key=lambda partition: partition.topic)
