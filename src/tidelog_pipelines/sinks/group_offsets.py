"""Commits the offsets of a query to a consumer group, so that the usual tools show its lag.

The job never reads these offsets. Only the checkpoint determines where a query continues. If a
commit fails, tools show an old offset until the next commit succeeds.
"""

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.checkpoint import Ends
from tidelog_pipelines.sources.kafka import client_configuration


class GroupOffsets:
    """A consumer group without members, for which the job commits offsets."""

    def __init__(self, settings: KafkaSettings, group: str) -> None:
        configuration = {"group.id": group, "enable.auto.commit": False}
        self._consumer = Consumer({**client_configuration(settings), **configuration})
        self._group = group
        self._committed: Ends = {}

    def commit(self, ends: Ends) -> str | None:
        """Commit offsets that changed since the last commit. Returns one sentence on failure."""
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
