"""Creates topics for the pipeline's tests, and writes records whose acknowledgements are kept."""

import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.metadata.v12.response import MetadataResponseTopic

from tidelog.client.client import Client
from tidelog.model.errors import ErrorCode

QUIET = {"log_level": 0}
PATIENCE_SECONDS = 120.0


class Ack(NamedTuple):
    partition: int
    offset: int
    value: bytes | None
    key: bytes | None = None


class Sent(NamedTuple):
    """A record to write; the key selects its partition."""

    key: str | None
    value: bytes | str | None
    timestamp: int


def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, **QUIET})


def create(bootstrap: str, topic: str, partitions: int = 2, copies: int = 3) -> None:
    """Create a topic, and wait until every broker knows it, because a job may ask any broker."""
    new = NewTopic(topic, partitions, copies, config={"min.insync.replicas": str(min(2, copies))})
    client = admin(bootstrap)
    for done in client.create_topics([new]).values():
        done.result(PATIENCE_SECONDS)
    await_everywhere(bootstrap, topic, is_led)


def await_everywhere(
    bootstrap: str, topic: str, is_so: Callable[[MetadataResponseTopic], bool]
) -> None:
    for server in bootstrap.split(","):
        with Client(server) as one:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not is_so(one.metadata((topic,)).topics[0]):
                assert time.monotonic() < deadline, f"{server} never hears of {topic}"
                time.sleep(0.02)


def is_led(topic: MetadataResponseTopic) -> bool:
    return bool(topic.partitions) and all(one.leader_id >= 0 for one in topic.partitions)


def is_gone(topic: MetadataResponseTopic) -> bool:
    return topic.error_code is ErrorCode.unknown_topic_or_partition


def delete(bootstrap: str, topic: str) -> None:
    """Delete a topic, and wait until no broker knows it, so that the name can be used again."""
    client = admin(bootstrap)
    for done in client.delete_topics([topic]).values():
        done.result(PATIENCE_SECONDS)
    await_everywhere(bootstrap, topic, is_gone)


def produce(
    bootstrap: str,
    topic: str,
    values: Iterable[bytes | str | None],
    key: str | bytes | None = None,
    timestamp: int = 1_700_000_000_000,
    headers: dict[str, bytes] | None = None,
) -> list[Ack]:
    """Write these values, and wait until each is acknowledged by all in-sync replicas."""
    return _written(bootstrap, topic, ((key, value, timestamp) for value in values), headers or {})


def produce_keyed(bootstrap: str, topic: str, messages: Iterable[Sent]) -> list[Ack]:
    """Write these records in this order, and wait as `produce` does."""
    return _written(bootstrap, topic, messages, {})


def _written(
    bootstrap: str,
    topic: str,
    messages: Iterable[tuple[str | bytes | None, bytes | str | None, int]],
    headers: dict[str, bytes],
) -> list[Ack]:
    acks: list[Ack] = []

    def delivered(problem: KafkaError | None, message: Message) -> None:
        assert problem is None, problem
        offset, partition = message.offset(), message.partition()
        assert offset is not None
        assert partition is not None
        key = message.key()
        assert not isinstance(key, str)
        acks.append(Ack(partition, offset, message.value(), key))

    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5, **QUIET})
    for key, value, timestamp in messages:
        while True:
            try:
                producer.produce(
                    topic,
                    value,
                    key,
                    timestamp=timestamp,
                    headers=headers,
                    on_delivery=delivered,
                )
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(PATIENCE_SECONDS) == 0
    return acks
