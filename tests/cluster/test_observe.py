"""`tidelog observe` on a real cluster: the events that it derives, and where it writes them.

The command is meant for Apache Kafka, so --system kafka runs these tests on an Apache Kafka
cluster.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
from tests.cluster.apache import KafkaCluster

from tidelog.cli.observe import look_at
from tidelog.client import admin
from tidelog.client.client import Client
from tidelog.client.producer import ACKS_ALL, Producer
from tidelog.insight.observation import ClusterObserver
from tidelog.model.ids import TopicPartition
from tidelog.model.replication_events import (
    BrokerFenced,
    IsrExpanded,
    IsrShrunk,
    LeaderElected,
    ReplicaState,
    ReplicationEvent,
)
from tidelog.model.user_error import UserError
from tidelog.protocol.records.records import Record
from tidelog.testing import Cluster

TOPIC = "orders"
WHERE = TopicPartition(TOPIC, 0)
E = TypeVar("E")


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("observed")
    is_kafka = request.config.getoption("--system") == "kafka"
    with (
        KafkaCluster(request.getfixturevalue("kafka_libs"), directory=directory)
        if is_kafka
        else Cluster(directory=directory, network_faults=False) as running
    ):
        with Client(running.bootstrap) as client:
            admin.create_topic(
                client,
                TOPIC,
                partitions=1,
                replication_factor=3,
                assignment=(),
                configs={"min.insync.replicas": "2"},
            )
            producer = Producer(client, TOPIC, acks=ACKS_ALL, compression="none")
            producer.send([Record(None, b"value", 1)] * 10, None)
        yield running


class Watch:
    """An observer that keeps polling, and the events that it has derived."""

    def __init__(self, cluster: Cluster, client: Client) -> None:
        self._cluster, self._client = cluster, client
        self._observer = ClusterObserver()
        self.seen: list[ReplicationEvent] = []

    def until(self, *kinds: type[object]) -> None:
        """Poll until each of these kinds was seen; brokers may learn of a change with a delay."""

        def are_seen() -> bool | None:
            with suppress(UserError):  # `tidelog observe` also continues after an error
                self.seen += self._observer.note(look_at(self._client, TOPIC))
            return True if all(self.of(kind) for kind in kinds) else None

        names = [kind.__name__ for kind in kinds]
        self._cluster.wait_for(are_seen, lambda: f"{names}; seen: {self.seen}")

    def of(self, kind: type[E]) -> list[E]:
        return [one for one in self.seen if isinstance(one, kind)]


def test_the_death_and_return_of_a_leader_are_seen(cluster: Cluster) -> None:
    with Client(cluster.bootstrap) as client:
        cluster.wait_for_isr(TOPIC, size=3)
        watch = Watch(cluster, client)
        watch.until(ReplicaState)
        (state,) = watch.of(ReplicaState)
        assert (state.partition, state.end_offset, state.min_isr) == (WHERE, 10, 2)
        assert [one.lag for one in state.followers] == [0, 0]

        leader = cluster.leader_of(TOPIC)
        cluster.kill(leader)
        watch.until(BrokerFenced, LeaderElected, IsrShrunk)
        assert [one.broker for one in watch.of(BrokerFenced)] == [leader]
        (elected,) = watch.of(LeaderElected)
        assert (elected.leader_before, elected.reason, elected.clean) == (leader, "dead", True)
        (shrunk,) = watch.of(IsrShrunk)
        assert [(one.broker, one.reason) for one in shrunk.left] == [(leader, "dead")]

        cluster.start(leader)
        watch.until(IsrExpanded)
        assert [one.joined for one in watch.of(IsrExpanded)] == [(leader,)]


def observe(cluster: Cluster, *arguments: str) -> str:
    command = [sys.executable, "-m", "tidelog.cli.main", "observe", *arguments]
    command += ["--bootstrap-server", cluster.bootstrap, "--looks", "2", "--interval", "0.1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_events_are_lines_of_a_file_or_of_the_output(cluster: Cluster, tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"

    assert observe(cluster, "--topic", TOPIC, "--out", str(path)) == ""
    printed = observe(cluster, "--topic", TOPIC).splitlines()

    for lines in (path.read_text().splitlines(), printed):
        events = [json.loads(line) for line in lines]
        # On a slow machine there may be events of other changes, too.
        assert ("replica_state", TOPIC) in [(one["event"], one.get("topic")) for one in events]


def test_events_are_records_of_a_topic(cluster: Cluster) -> None:
    assert observe(cluster, "--topic", TOPIC, "--events-topic", "watched") == ""

    found = subprocess.run(
        [
            *(sys.executable, "-m", "tidelog.cli.main", "consume", "--topic", "watched"),
            *("--bootstrap-server", cluster.bootstrap, "--from-beginning", "--max-messages", "1"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [json.loads(line)["topic"] for line in found.stdout.splitlines()] == [TOPIC]
