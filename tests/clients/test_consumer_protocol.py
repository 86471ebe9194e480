"""confluent-kafka with `group.protocol=consumer` and with the classic protocol, in one group.

The broker is killed with -9 in the middle, and the members go on with the same partitions.
"""

import time
from collections.abc import Callable, Sequence

from confluent_kafka import Consumer, TopicPartition
from tests.clients.conftest import StartBroker
from tests.clients.librdkafka import QUIET, create, producer_of, send_values
from tests.clients.samples import numbered
from tests.clients.systems import PATIENCE, Broker

GROUP = "readers"
PARTITIONS = 4
COUNT = 200


class Member:
    """A consumer that counts how often it has received each record."""

    def __init__(self, broker: Broker, name: str, protocol: str) -> None:
        settings: dict[str, object] = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": GROUP,
            "client.id": name,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
        if protocol == "classic":
            settings["partition.assignment.strategy"] = "cooperative-sticky"
        self.consumer = Consumer(settings)
        self.values: list[bytes] = []

    def poll(self) -> None:
        message = self.consumer.poll(0.05)
        if message is not None and message.error() is None:
            value = message.value()
            assert isinstance(value, bytes)
            self.values.append(value)
            self.consumer.commit(message, asynchronous=True)

    @property
    def partitions(self) -> set[int]:
        assigned: list[TopicPartition] = self.consumer.assignment()
        return {one.partition for one in assigned}


def until(ready: Callable[[], bool], *members: Member) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < deadline, [member.partitions for member in members]
        for member in members:
            member.poll()


def send_to_all(broker: Broker, topic: str, values: Sequence[bytes]) -> None:
    producer = producer_of(broker)
    for partition in range(PARTITIONS):
        send_values(producer, topic, values[partition::PARTITIONS], partition)


def test_members_of_both_protocols_share_a_group_through_a_kill(start_broker: StartBroker) -> None:
    broker = start_broker(
        {"offsets.topic.num.partitions": 1, "group.initial.rebalance.delay.ms": 0}
    )
    topic = "shared"
    create(broker, topic, PARTITIONS)
    values = numbered(COUNT)
    send_to_all(broker, topic, values[: COUNT // 2])

    old = Member(broker, "old", "classic")
    old.consumer.subscribe([topic])
    until(lambda: len(old.values) == COUNT // 2, old)
    new = Member(broker, "new", "consumer")
    new.consumer.subscribe([topic])
    until(lambda: len(old.partitions) == len(new.partitions) == PARTITIONS // 2, old, new)
    assert old.partitions.isdisjoint(new.partitions)

    before = (old.partitions, new.partitions)
    broker.kill()
    broker.start()
    send_to_all(broker, topic, values[COUNT // 2 :])
    until(lambda: len({*old.values, *new.values}) == COUNT, old, new)
    assert (old.partitions, new.partitions) == before

    old.consumer.close()
    until(lambda: len(new.partitions) == PARTITIONS, new)
    new.consumer.close()
