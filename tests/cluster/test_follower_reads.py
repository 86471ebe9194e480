"""Consumers that set librdkafka's client.rack read from a follower in their rack (KIP-392)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.clients.librdkafka import QUIET, producer_of, send_values
from tests.clients.samples import numbered
from tests.clients.systems import PATIENCE
from tests.cluster.creations import assign_topic
from tests.cluster.foreground import await_seen

from tidelog.model.ids import NodeId
from tidelog.testing import Cluster

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
BATCHES = 20


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(
        directory=tmp_path,
        racks=["a", "b", "c"],
        properties={"replica.selector.class": RACK_AWARE},
    ) as cluster:
        yield cluster


class RackConsumer:
    """Reads one partition, and counts the fetches to each broker from librdkafka's statistics."""

    def __init__(self, cluster: Cluster, topic: str, rack: str) -> None:
        self._statistics: dict[NodeId, int] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": f"of-{rack}",
                "client.rack": rack,
                "enable.auto.commit": False,
                "statistics.interval.ms": 50,
                "stats_cb": self._count_fetches,
                "fetch.wait.max.ms": 100,
                **QUIET,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def read(self, count: int) -> list[bytes]:
        values: list[bytes] = []
        while len(values) < count:
            message = self._consumer.poll(PATIENCE)
            assert message is not None, f"{len(values)} of {count} records came"
            assert message.error() is None
            values.append(message.value() or b"")
        return values

    def fetches(self) -> dict[NodeId, int]:
        """The number of fetches to each broker, from the latest statistics."""
        self._consumer.poll(0.1)
        return dict(self._statistics)

    def close(self) -> None:
        self._consumer.close()

    def _count_fetches(self, statistics: str) -> None:
        for broker in json.loads(statistics)["brokers"].values():
            self._statistics[broker["nodeid"]] = broker.get("req", {}).get("Fetch", 0)


def test_a_consumer_reads_from_the_follower_in_its_rack(cluster: Cluster) -> None:
    assign_topic(cluster, "near", [1, 2, 3])
    cluster.wait_for_isr("near", 0, {1, 2, 3})
    producer = producer_of(cluster, enable_idempotence=True)
    consumer = RackConsumer(cluster, "near", "c")
    try:
        for turn in range(BATCHES):
            send_values(producer, "near", numbered(50), 0)
            assert consumer.read(50) == numbered(50), turn
        # The counts arrive late and keep growing, so only their ratio can be checked.
        await_seen(
            consumer.fetches, lambda fetches: fetches.get(3, 0) > 3 * max(1, fetches.get(1, 0))
        )
    finally:
        consumer.close()


def test_a_consumer_at_a_follower_reads_on_when_that_dies(cluster: Cluster) -> None:
    assign_topic(cluster, "near", [1, 2, 3])
    cluster.wait_for_isr("near", 0, {1, 2, 3})
    producer = producer_of(cluster, enable_idempotence=True)
    consumer = RackConsumer(cluster, "near", "b")
    try:
        send_values(producer, "near", numbered(100), 0)
        assert consumer.read(100) == numbered(100)
        cluster.kill(2)
        send_values(producer, "near", numbered(100), 0)
        assert consumer.read(100) == numbered(100)
        cluster.start(2)
        cluster.wait_for_isr("near", 0, {1, 2, 3})
        cluster.kill(1)
        send_values(producer, "near", numbered(100), 0)
        assert consumer.read(100) == numbered(100)
    finally:
        consumer.close()
