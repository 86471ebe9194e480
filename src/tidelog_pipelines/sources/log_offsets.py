"""Gets the first and the last offsets of partitions, over a persistent connection."""

from collections.abc import Iterable
from contextlib import suppress

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # they have no __all__
    AdminClient,
    OffsetSpec,
)

from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.checkpoint import Ends
from tidelog_pipelines.sources.kafka import ANSWER_SECONDS, client_configuration


class LogOffsets:
    """Asks leaders for offsets. If a leader does not answer, its partitions are left out."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._admin = AdminClient(client_configuration(kafka))

    def ends(self, partitions: Iterable[TopicPartition]) -> Ends:
        """The offset after the last readable record of each partition."""
        return self._ask(partitions, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def first(self, topic: str, partitions: Iterable[int]) -> dict[int, int]:
        """The first offset that can still be read, for each of these partitions."""
        asked = [TopicPartition(topic, one) for one in partitions]
        return self._ask(asked, OffsetSpec.earliest()).get(topic, {})  # type: ignore[no-untyped-call]

    def _ask(self, partitions: Iterable[TopicPartition], which: OffsetSpec) -> Ends:
        found: Ends = {}
        asked = dict.fromkeys(partitions, which)
        if not asked:
            return found
        answers = self._admin.list_offsets(asked, request_timeout=ANSWER_SECONDS)
        for where, answer in answers.items():
            with suppress(KafkaException):
                found.setdefault(where.topic, {})[where.partition] = answer.result().offset
        return found
