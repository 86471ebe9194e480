"""Short functions for confluent-kafka (librdkafka), the client that most tests use."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic
from tests.clients.samples import Sample
from tests.clients.systems import PATIENCE, Broker

QUIET = {"log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200}


def admin_of(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap, **QUIET})


def create(broker: Broker, topic: str, partitions: int = 1, **config: object) -> None:
    """Create a topic; `_` in the name of a configuration stands for `.`."""
    settings = {key.replace("_", "."): str(value) for key, value in config.items()}
    new = NewTopic(topic, partitions, 1, config=settings)
    admin = admin_of(broker)  # the client must outlive its futures
    admin.create_topics([new], request_timeout=30)[topic].result(PATIENCE)


def producer_of(broker: Broker, **config: Any) -> Producer:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return Producer({"bootstrap.servers": broker.bootstrap, **QUIET, **settings})


def send(
    producer: Producer, topic: str, samples: Iterable[Sample], partition: int = 0
) -> list[int]:
    """Produce these records and return their offsets; fail if one is not acknowledged."""
    offsets: list[int] = []
    problems: list[KafkaError] = []

    def delivered(problem: KafkaError | None, message: Message) -> None:
        if problem is not None:
            problems.append(problem)
        else:
            offset = message.offset()
            offsets.append(-1 if offset is None else offset)  # acks=0 gives no offset

    for sample in samples:
        producer.produce(
            topic,
            sample.value,
            sample.key,
            partition,
            on_delivery=delivered,
            timestamp=sample.timestamp,
            headers=list(sample.headers),
        )
    left = producer.flush(PATIENCE)
    assert left == 0, f"{left} not delivered"
    assert not problems, problems
    return offsets


def send_values(
    producer: Producer, topic: str, values: Iterable[bytes], partition: int = 0
) -> list[int]:
    return send(producer, topic, (Sample(None, value, (), 0) for value in values), partition)


@contextmanager
def consumer_of(broker: Broker, group: str = "reader", **config: Any) -> Iterator[Consumer]:
    settings = {key.replace("_", "."): value for key, value in config.items()}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
            **settings,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def poll(consumer: Consumer, count: int) -> list[Message]:
    """The next `count` records."""
    messages: list[Message] = []
    deadline = time.monotonic() + PATIENCE
    while len(messages) < count:
        assert time.monotonic() < deadline, f"{len(messages)} of {count} records came, then none"
        for message in consumer.consume(min(count - len(messages), 10_000), 0.2):
            problem = message.error()
            if problem is not None:
                assert problem.retriable() or problem.code() == KafkaError._PARTITION_EOF, problem
            else:
                messages.append(message)
                deadline = time.monotonic() + PATIENCE
    return messages


def read_messages(
    broker: Broker, topic: str, count: int, partition: int = 0, offset: int = 0, **config: Any
) -> list[Message]:
    with consumer_of(broker, **config) as consumer:
        consumer.assign([TopicPartition(topic, partition, offset)])
        return poll(consumer, count)


def read(
    broker: Broker, topic: str, count: int, partition: int = 0, offset: int = 0
) -> list[Sample]:
    return [
        as_sample(message) for message in read_messages(broker, topic, count, partition, offset)
    ]


def as_sample(message: Message) -> Sample:
    kind, timestamp = message.timestamp()
    assert kind != TIMESTAMP_NOT_AVAILABLE
    return Sample(message.key(), message.value(), tuple(message.headers() or ()), timestamp)


def watermarks(broker: Broker, topic: str, partition: int = 0) -> tuple[int, int]:
    with consumer_of(broker) as consumer:
        found = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=PATIENCE)
    assert found is not None
    return found
