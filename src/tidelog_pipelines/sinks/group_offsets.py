"""Commits what a query has read to a consumer group: its lag shows where people look for it.

Nothing is read back: the checkpoint alone says where to go on, so a failed commit costs nothing
but a stale figure until the next one.
"""

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.checkpoint import Ends
from tidelog_pipelines.sources.kafka import client_configuration


class GroupOffsets:
    """A group without members, whose offsets are set from outside."""

    def __init__(self, settings: KafkaSettings, group: str) -> None:
        configuration = {"group.id": group, "enable.auto.commit": False}
        self._consumer = Consumer({**client_configuration(settings), **configuration})
        self._group = group
        self._committed: Ends = {}

    def commit(self, ends: Ends) -> str | None:
        """Commit what differs from the last commit. -> one sentence if that was refused."""
        offsets = [
            TopicPartition(topic, partition, end)
            for topic, partitions in ends.items()
            for partition, end in partitions.items()
            if self._committed.get(topic, {}).get(partition) != end
        ]
        if not offsets:
            return None
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            return f"the offsets of group {self._group} are not updated: {error.args[0].str()}"
        self._committed = {topic: dict(partitions) for topic, partitions in ends.items()}
        return None

    def close(self) -> None:
        self._consumer.close()
