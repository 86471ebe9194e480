"""aiokafka and librdkafka read the records that aiokafka has sent, unchanged."""

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import MessageSizeTooLargeError
from tests.clients.librdkafka import create, read
from tests.clients.samples import BASE_TIME, CODECS, SAMPLES, Sample, numbered
from tests.clients.systems import PATIENCE, Broker

# aiokafka reads null headers but cannot write them, so only other clients send NULL_HEADER.


async def send(broker: Broker, topic: str, samples: list[Sample], **config: Any) -> list[int]:
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, **config) as producer:
        waiting = [
            await producer.send(
                topic,
                sample.value,
                sample.key,
                partition=0,
                timestamp_ms=sample.timestamp,
                headers=list(sample.headers),
            )
            for sample in samples
        ]
        return [(await future).offset for future in waiting]


async def consume(broker: Broker, topic: str, count: int) -> list[Sample]:
    partition = TopicPartition(topic, 0)
    found: list[Sample] = []
    async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 0)
        async with asyncio.timeout(PATIENCE):
            while len(found) < count:
                record = await consumer.getone()
                headers = tuple((name, value) for name, value in record.headers)
                found.append(Sample(record.key, record.value, headers, record.timestamp))
    return found


@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("codec", CODECS)
def test_round_trip(broker: Broker, topic: str, codec: str, idempotent: bool) -> None:
    create(broker, topic)
    config = {
        "compression_type": None if codec == "none" else codec,
        "enable_idempotence": idempotent,
        "linger_ms": 20,
    }
    assert asyncio.run(send(broker, topic, SAMPLES, **config)) == list(range(len(SAMPLES)))
    assert asyncio.run(consume(broker, topic, len(SAMPLES))) == SAMPLES
    assert read(broker, topic, len(SAMPLES)) == SAMPLES


@pytest.mark.parametrize("acks", [1, "all"])
def test_acks(broker: Broker, topic: str, acks: int | str) -> None:
    create(broker, topic)
    sent = [Sample(None, value, (), BASE_TIME) for value in numbered(500)]
    asyncio.run(send(broker, topic, sent, acks=acks))
    assert asyncio.run(consume(broker, topic, 500)) == sent


def test_too_large(broker: Broker, topic: str) -> None:
    create(broker, topic, max_message_bytes=10_000)
    with pytest.raises(MessageSizeTooLargeError):
        asyncio.run(send(broker, topic, [Sample(None, b"x" * 10_000, (), BASE_TIME)]))


def test_offsets(broker: Broker, topic: str) -> None:
    create(broker, topic)
    asyncio.run(send(broker, topic, [Sample(None, b"v", (), BASE_TIME + n) for n in range(10)]))

    async def look() -> None:
        partition = TopicPartition(topic, 0)
        async with AIOKafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
            assert await consumer.beginning_offsets([partition]) == {partition: 0}
            assert await consumer.end_offsets([partition]) == {partition: 10}
            found = (await consumer.offsets_for_times({partition: BASE_TIME + 4}))[partition]
            assert found is not None
            assert (found.offset, found.timestamp) == (4, BASE_TIME + 4)

    asyncio.run(look())
