"""Tidelog's commands print what Kafka's tools print, on one cluster.

With `--system kafka` the cluster is Apache Kafka, so the commands work there, too.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from tests.cluster.apache import STEADY, KafkaCluster
from tests.cluster.side_by_side import OURS, THEIRS, SideBySide

from tidelog.testing import Cluster

GROUPS = "kafka-consumer-groups"
READ = "read"
"""A topic with 3 partitions of 10 records each."""
SINCE, BEFORE = "2020-01-01T00:00:00.000", "2050-01-01T00:00:00.000+01:00"


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    is_kafka = request.config.getoption("--system") == "kafka"
    with (
        KafkaCluster(kafka_libs, directory=directory)
        if is_kafka
        else Cluster(directory=directory, properties=STEADY, network_faults=False) as cluster
    ):
        cluster.create_topic(READ, partitions=3, replication_factor=3)
        producer = Producer({"bootstrap.servers": cluster.bootstrap})
        for number in range(30):
            producer.produce(READ, b"%d" % number, partition=number % 3)
        assert producer.flush(120) == 0
        yield cluster


@pytest.fixture
def both(cluster: Cluster, kafka_libs: Path, tmp_path: Path) -> SideBySide:
    return SideBySide(kafka_libs, cluster, tmp_path)


def commit(cluster: Cluster, group: str, *offsets: int) -> None:
    """Commit an offset for each of the first partitions of READ."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    positions = [Position(READ, number, offset) for number, offset in enumerate(offsets)]
    consumer.commit(offsets=positions, asynchronous=False)
    consumer.close()


@pytest.fixture(scope="module")
def member(cluster: Cluster) -> Iterator[Consumer]:
    """A static member of the group `busy`, which has all partitions of READ."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "busy",
            "client.id": "reader",
            "group.instance.id": "first",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([READ])
    while not consumer.assignment():
        consumer.poll(0.2)
    consumer.commit(offsets=[Position(READ, 1, 4)], asynchronous=False)
    yield consumer
    consumer.close()


@pytest.mark.usefixtures("member")
def test_groups_are_listed_and_described(both: SideBySide, cluster: Cluster) -> None:
    commit(cluster, "idle", 4, 10)
    assert "idle" in both.same(GROUPS, "--list", any_order=True).split()
    listed = both.same(GROUPS, "--list", "--state", "empty,stable", "--type", any_order=True)
    assert "Classic              Stable" in listed
    assert "busy" not in both.same(GROUPS, "--list", "--state", "EMPTY", any_order=True)
    both.same(GROUPS, "--list", "--type", "classic", any_order=True)
    for what in ((), ("--offsets",), ("--members",), ("--state",)):
        for verbose in ((), ("--verbose",)):
            for group in ("idle", "busy"):
                both.same(GROUPS, "--describe", "--group", group, *what, *verbose)
    lag = both.same(GROUPS, "--describe", "--all-groups")
    assert all(name in lag for name in ("LAG", "busy", "idle"))
    missing = both.same(GROUPS, "--describe", "--group", "missing")
    assert "GroupIdNotFoundException: Group missing not found." in missing


@pytest.mark.parametrize(
    "scenario",
    [
        ["--to-earliest"],
        ["--to-latest"],
        ["--to-offset", "7"],
        ["--to-offset", "99"],
        ["--shift-by", "-3"],
        ["--to-current"],
        ["--to-datetime", SINCE],
        ["--to-datetime", BEFORE],
        ["--by-duration", "P1DT1H"],
    ],
    ids=" ".join,
)
def test_offsets_are_reset(both: SideBySide, cluster: Cluster, scenario: list[str]) -> None:
    for group in (THEIRS, OURS):
        commit(cluster, group, 6, 6)
    reset = ("--reset-offsets", "--group", THEIRS, "--topic", f"{READ}:0,1", *scenario)
    both.same(GROUPS, *reset, "--dry-run", any_order=True)
    both.same(GROUPS, *reset, "--execute", any_order=True)
    described = both.same(GROUPS, "--describe", "--group", THEIRS)
    assert described.count(READ) == 2


@pytest.mark.usefixtures("member")
def test_resets_of_several_topics_and_groups(both: SideBySide, cluster: Cluster) -> None:
    for group in (THEIRS, OURS):
        commit(cluster, group, 6, 6)
    all_topics = ("--reset-offsets", "--group", THEIRS, "--all-topics")
    exported = both.same(
        GROUPS, *all_topics, "--shift-by", "2", "--dry-run", "--export", any_order=True
    )
    plan = both.file("plan.csv", exported.strip() + "\n")
    from_file = ("--reset-offsets", "--group", THEIRS, "--from-file", plan)
    both.same(GROUPS, *from_file, "--execute", any_order=True)
    assert "   8   " in both.same(GROUPS, "--describe", "--group", THEIRS)
    both.same(GROUPS, *all_topics, "--to-earliest", any_order=True)  # warns: nothing is executed
    both.same(
        GROUPS, "--reset-offsets", "--group", "new", "--topic", READ, "--to-latest", "--dry-run",
        any_order=True,
    )  # fmt: skip
    busy = ("--reset-offsets", "--group", "busy", "--topic", READ, "--to-earliest", "--execute")
    assert "the current state is Stable" in both.same(GROUPS, *busy)
    nowhere = ("--reset-offsets", "--group", THEIRS, "--topic", f"{READ}:7", "--to-latest")
    assert "do not exist" in both.same(GROUPS, *nowhere, "--dry-run")


@pytest.mark.usefixtures("member")
def test_groups_and_offsets_are_deleted(both: SideBySide, cluster: Cluster) -> None:
    for group in (THEIRS, OURS):
        commit(cluster, group, 6, 6, 6)
    some = ("--delete-offsets", "--group", THEIRS, "--topic", f"{READ}:0,9", "--topic", "missing")
    assert "Successful" in both.same(GROUPS, *some)
    assert "Request succeeded" in both.same(
        GROUPS, "--delete-offsets", "--group", THEIRS, "--topic", f"{READ}:1"
    )
    both.same(GROUPS, "--delete-offsets", "--group", "busy", "--topic", READ)
    both.same(GROUPS, "--delete-offsets", "--group", "missing", "--topic", READ)
    both.same(GROUPS, "--delete", "--group", "busy", "--group", THEIRS)
    both.same(GROUPS, "--delete", "--group", THEIRS)
    for group in (THEIRS, OURS):
        commit(cluster, group, 6)
    assert "was successful" in both.same(GROUPS, "--delete", "--group", THEIRS)
