"""Kafka's Java share consumers while brokers are killed with -9.

Each record is accepted exactly once. If a broker dies before it confirms an acceptance, the member
does not know the outcome; such a record is accepted at most once more.
"""

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.clients.java import JVM, QUIET
from tests.clients.systems import PATIENCE

from tidelog.testing import Cluster

PROGRAM = Path(__file__).with_name("ShareConsumers.java")
TOPIC = "work"
RECORDS = 1_500
MEMBERS = 20


class Members:
    """The members of a share group in one JVM, and what they have reported."""

    def __init__(self, bootstrap: str, libs: Path) -> None:
        command = ["java", *JVM, *QUIET, "-cp", f"{libs}/*", str(PROGRAM)]
        self._process = subprocess.Popen(
            [*command, bootstrap, TOPIC, str(MEMBERS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.accepted: Counter[str] = Counter()
        self.unknown: set[str] = set()
        self.failures: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, value = line.strip().partition(" ")
            if word == "accepted":
                self.accepted[value] += 1
            elif word == "unknown":
                self.unknown.add(value)
            elif word == "failed":
                self.failures.append(value)

    def await_settled(self, count: int, seconds: float = 8 * PATIENCE) -> None:
        deadline = time.monotonic() + seconds
        while len(self.unknown | self.accepted.keys()) < count:
            assert not self.failures, self.failures
            assert self._process.poll() is None, "the members have ended"
            settled = len(self.unknown | self.accepted.keys())
            assert time.monotonic() < deadline, f"{settled} of {count} records are settled"
            time.sleep(0.1)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._reader.join()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(directory=tmp_path, network_faults=False) as cluster:
        yield cluster


def produce(cluster: Cluster, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 5})
    for number in range(first, first + count):
        producer.produce(TOPIC, str(number).encode())
    assert producer.flush(4 * PATIENCE) == 0


def test_f70_each_record_is_accepted_once_while_brokers_are_killed(
    cluster: Cluster, kafka_libs: Path
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    created = admin.create_topics([NewTopic(TOPIC, num_partitions=3, replication_factor=3)])
    created[TOPIC].result(PATIENCE)
    produce(cluster, 0, RECORDS // 3)
    members = Members(cluster.bootstrap, kafka_libs)
    try:
        members.await_settled(100)
        for turn, topic in enumerate((TOPIC, "__share_group_state")):
            produce(cluster, RECORDS // 3 * (turn + 1), RECORDS // 3)
            killed = cluster.leader_of(topic)
            cluster.kill(killed)
            members.await_settled(RECORDS // 3 * (turn + 1))
            cluster.start(killed)
        members.await_settled(RECORDS)
    finally:
        members.end()
    numbers = {str(number) for number in range(RECORDS)}
    assert members.unknown | members.accepted.keys() == numbers
    twice = {value: count for value, count in members.accepted.items() if count > 1}
    assert not twice, f"accepted more than once: {twice}"
