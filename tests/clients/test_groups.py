"""Classic consumer groups with real clients: assignment, rebalances, commits, resuming."""

import asyncio
import time
from collections.abc import Callable
from contextlib import closing

from aiokafka import AIOKafkaConsumer
from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from kafka import KafkaConsumer
from tests.clients.librdkafka import (
    admin_of,
    consumer_of,
    create,
    poll,
    producer_of,
    send_values,
)
from tests.clients.samples import numbered
from tests.clients.systems import PATIENCE, Broker

STARTING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
QUICK = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 200}


def until(ready: Callable[[], bool], consumers: list[Consumer]) -> None:
    """Poll these members until the condition holds. Unpolled members would leave the group."""
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline, [c.assignment() for c in consumers]
        for consumer in consumers:
            consumer.poll(0.05)


def committed(consumer: Consumer, wanted: list[TopicPartition]) -> list[int]:
    """The committed offsets of the group. Retries while the coordinator starts."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return [found.offset for found in consumer.committed(wanted, timeout=PATIENCE)]
        except KafkaException as problem:
            if problem.args[0].code() not in STARTING or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def owned(consumer: Consumer) -> set[int]:
    return {found.partition for found in consumer.assignment()}


def test_two_members_share_and_the_rest_goes_to_who_stays(broker: Broker, topic: str) -> None:
    create(broker, topic, 4)
    with consumer_of(broker, topic, **QUICK) as one:
        one.subscribe([topic])
        until(lambda: owned(one) == {0, 1, 2, 3}, [one])
        with consumer_of(broker, topic, **QUICK) as two:
            two.subscribe([topic])
            until(lambda: len(owned(one)) == 2 and len(owned(two)) == 2, [one, two])
            assert owned(one) | owned(two) == {0, 1, 2, 3}
        until(lambda: owned(one) == {0, 1, 2, 3}, [one])


def test_cooperative_rebalance(broker: Broker, topic: str) -> None:
    create(broker, topic, 4)
    sticky = {**QUICK, "partition_assignment_strategy": "cooperative-sticky"}
    with consumer_of(broker, topic, **sticky) as one, consumer_of(broker, topic, **sticky) as two:
        one.subscribe([topic])
        until(lambda: owned(one) == {0, 1, 2, 3}, [one])
        two.subscribe([topic])
        until(lambda: len(owned(one)) == 2 and len(owned(two)) == 2, [one, two])
        assert owned(one) | owned(two) == {0, 1, 2, 3}


def test_a_member_that_dies_is_replaced_after_its_session(broker: Broker, topic: str) -> None:
    create(broker, topic, 2)
    limits = {
        "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 500,
        "max_poll_interval_ms": 6000,
    }
    with (
        consumer_of(broker, topic, **limits) as silent,
        consumer_of(broker, topic, **limits) as other,
    ):
        silent.subscribe([topic])
        until(lambda: owned(silent) == {0, 1}, [silent])
        other.subscribe([topic])
        until(lambda: owned(other) == {0, 1}, [other])  # the first member is no longer polled


def test_commit_and_resume(broker: Broker, topic: str) -> None:
    create(broker, topic)
    send_values(producer_of(broker), topic, numbered(100))
    with consumer_of(broker, topic) as consumer:
        consumer.subscribe([topic])
        assert len(poll(consumer, 40)) == 40
        consumer.commit(offsets=[TopicPartition(topic, 0, 40)], asynchronous=False)
    with consumer_of(broker, topic) as consumer:
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE)
        assert found.offset == 40
        consumer.subscribe([topic])
        assert [message.offset() for message in poll(consumer, 60)] == list(range(40, 100))


def test_commit_metadata_and_epoch(broker: Broker, topic: str) -> None:
    create(broker, topic)
    send_values(producer_of(broker), topic, numbered(10))
    with consumer_of(broker, topic) as consumer:
        consumer.subscribe([topic])
        poll(consumer, 10)
        offset = TopicPartition(topic, 0, 5, metadata="where I was")
        consumer.commit(offsets=[offset], asynchronous=False)
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=PATIENCE)
    assert (found.offset, found.metadata) == (5, "where I was")


def test_committed_offsets_and_topics_survive_a_restart(
    start_broker: Callable[[], Broker], topic: str
) -> None:
    broker = start_broker()
    create(broker, topic, 3)
    for partition in range(3):
        send_values(producer_of(broker), topic, numbered(50), partition)
    with consumer_of(broker, "survivor") as consumer:
        consumer.subscribe([topic])
        poll(consumer, 150)
        consumer.commit(
            offsets=[TopicPartition(topic, p, 10 * (p + 1)) for p in range(3)], asynchronous=False
        )
    for again in (broker.stop, broker.kill):
        again()
        broker.start()
        with consumer_of(broker, "survivor") as consumer:
            wanted = [TopicPartition(topic, p) for p in range(3)]
            assert committed(consumer, wanted) == [10, 20, 30]
            consumer.subscribe([topic])
            messages = poll(consumer, 90)
            for partition in range(3):
                own = [m.offset() for m in messages if m.partition() == partition]
                assert own == list(range(10 * (partition + 1), 50))


def test_kafka_python_groups(broker: Broker, topic: str) -> None:
    create(broker, topic, 2)
    send_values(producer_of(broker), topic, numbered(20))

    def member() -> KafkaConsumer:
        return KafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=PATIENCE * 1000,
        )

    with closing(member()) as consumer:
        first = [next(consumer) for _ in range(10)]
        consumer.commit()
    with closing(member()) as consumer:
        second = [next(consumer) for _ in range(10)]
    assert [record.offset for record in first + second] == list(range(20))


def test_aiokafka_groups(broker: Broker, topic: str) -> None:
    create(broker, topic, 2)
    send_values(producer_of(broker), topic, numbered(20))

    async def take(count: int) -> list[int]:
        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=broker.bootstrap,
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        async with consumer, asyncio.timeout(PATIENCE):
            offsets = [(await consumer.getone()).offset for _ in range(count)]
            await consumer.commit()
            return offsets

    async def both() -> list[int]:
        return await take(10) + await take(10)

    assert asyncio.run(both()) == list(range(20))


def test_groups_seen_by_an_administrator(broker: Broker, topic: str) -> None:
    create(broker, topic)
    send_values(producer_of(broker), topic, numbered(10))
    admin = admin_of(broker)
    with consumer_of(broker, topic) as consumer:
        consumer.subscribe([topic])
        poll(consumer, 10)
        consumer.commit(asynchronous=False)
        listed = admin.list_consumer_groups(request_timeout=PATIENCE).result()
        assert topic in [group.group_id for group in listed.valid]
        described = admin.describe_consumer_groups([topic], request_timeout=PATIENCE)[
            topic
        ].result()
        assert described.state.name == "STABLE"
        assert len(described.members) == 1
    offsets = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(topic)])[
        topic
    ].result()
    assert [(o.topic, o.partition, o.offset) for o in offsets.topic_partitions] == [(topic, 0, 10)]
    reset = ConsumerGroupTopicPartitions(topic, [TopicPartition(topic, 0, 3)])
    admin.alter_consumer_group_offsets([reset])[topic].result()
    with consumer_of(broker, topic) as consumer:
        consumer.subscribe([topic])
        assert poll(consumer, 1)[0].offset() == 3
    admin.delete_consumer_groups([topic], request_timeout=PATIENCE)[topic].result()
    listed = admin.list_consumer_groups(request_timeout=PATIENCE).result()
    assert topic not in [group.group_id for group in listed.valid]
