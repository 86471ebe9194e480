"""Reads a topic as a consumer with isolation.level=read_committed does."""

import time

from confluent_kafka import Consumer, KafkaError, TopicPartition
from tests.pipelines import records

PATIENCE_SECONDS = 120.0


def committed(bootstrap: str, topic: str) -> list[bytes]:
    """The values of all committed records."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **records.QUIET,
        }
    )
    found: list[bytes] = []
    try:
        partitions = list(consumer.list_topics(topic, timeout=30).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, one, 0) for one in partitions])
        at_end: set[int | None] = set()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(at_end) < len(partitions):
            assert time.monotonic() < deadline, f"the end is not reached: {at_end}"
            for message in consumer.consume(10_000, timeout=1.0):
                problem = message.error()
                if problem is None:
                    value = message.value()
                    assert value is not None
                    found.append(value)
                elif problem.code() == KafkaError._PARTITION_EOF:
                    at_end.add(message.partition())
                else:
                    raise AssertionError(problem.str())
    finally:
        consumer.close()
    return found
