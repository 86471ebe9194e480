"""kafka-python and librdkafka read the records that kafka-python has sent, unchanged."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import MessageSizeTooLargeError
from tests.clients import librdkafka
from tests.clients.librdkafka import create, read
from tests.clients.samples import CODECS, NULL_HEADER, SAMPLES, Sample, numbered
from tests.clients.systems import PATIENCE, Broker


@contextmanager
def producing(broker: Broker, **config: Any) -> Iterator[KafkaProducer]:
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, **config)) as producer:
        yield producer


def send(producer: KafkaProducer, topic: str, samples: list[Sample]) -> list[int]:
    futures = [
        producer.send(
            topic,
            sample.value,
            sample.key,
            headers=list(sample.headers),
            partition=0,
            timestamp_ms=sample.timestamp,
        )
        for sample in samples
    ]
    producer.flush(PATIENCE)
    return [future.get(PATIENCE).offset for future in futures]


def consume(broker: Broker, topic: str, count: int, offset: int = 0) -> list[Any]:
    consumer = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, consumer_timeout_ms=PATIENCE * 1000
    )
    with closing(consumer):
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek(partition, offset)
        return [record for _, record in zip(range(count), consumer, strict=False)]


def as_sample(record: Any) -> Sample:
    return Sample(record.key, record.value, tuple(record.headers), record.timestamp)


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(broker: Broker, topic: str, codec: str, idempotent: bool) -> None:
    create(broker, topic)
    compression = None if codec == "none" else codec
    with producing(
        broker, compression_type=compression, enable_idempotence=idempotent, linger_ms=20
    ) as producer:
        assert send(producer, topic, SAMPLES) == list(range(len(SAMPLES)))
    assert [as_sample(record) for record in consume(broker, topic, len(SAMPLES))] == SAMPLES
    assert read(broker, topic, len(SAMPLES)) == SAMPLES


def test_a_null_header_of_another_client(broker: Broker, topic: str) -> None:
    create(broker, topic)
    librdkafka.send(librdkafka.producer_of(broker), topic, [NULL_HEADER])
    assert [as_sample(record) for record in consume(broker, topic, 1)] == [NULL_HEADER]


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_acks(broker: Broker, topic: str, acks: int | str) -> None:
    create(broker, topic)
    with producing(broker, acks=acks, enable_idempotence=False) as producer:
        for value in numbered(500):
            producer.send(topic, value, partition=0)
        producer.flush(PATIENCE)
    assert [record.value for record in consume(broker, topic, 500)] == numbered(500)


def test_too_large(broker: Broker, topic: str) -> None:
    create(broker, topic, max_message_bytes=10_000)
    with producing(broker) as producer:
        producer.send(topic, b"x" * 9_000, partition=0).get(PATIENCE)
        with pytest.raises(MessageSizeTooLargeError):
            producer.send(topic, b"x" * 10_000, partition=0).get(PATIENCE)


def test_offsets(broker: Broker, topic: str) -> None:
    create(broker, topic)
    with producing(broker) as producer:
        send(producer, topic, [Sample(None, b"v", (), 1_700_000_000_000 + n) for n in range(10)])
    partition = TopicPartition(topic, 0)
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 10}
        found = consumer.offsets_for_times({partition: 1_700_000_000_004})[partition]
        assert (found.offset, found.timestamp) == (4, 1_700_000_000_004)
        assert consumer.offsets_for_times({partition: 1_800_000_000_000}) == {partition: None}
        assert consumer.partitions_for_topic(topic) == {0}
    assert [record.offset for record in consume(broker, topic, 4, offset=6)] == [6, 7, 8, 9]


def test_administration(broker: Broker, topic: str) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
        admin.create_topics([NewTopic(topic, 2, 1)])
        assert topic in admin.list_topics()
        admin.delete_topics([topic])
        with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
            assert topic not in consumer.topics()
