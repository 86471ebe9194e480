"""Tidelog's commands print what Kafka's tools print, on one cluster.

With `--system kafka` the cluster is Apache Kafka, so the commands work there, too.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from tests.cluster.apache import chosen_cluster
from tests.cluster.side_by_side import OURS, THEIRS, SideBySide, run_command

from tidelog.testing import Cluster

GROUPS = "kafka-consumer-groups"
REASSIGN = "kafka-reassign-partitions"
ELECT = "kafka-leader-election"
DELETE_RECORDS = "kafka-delete-records"
LOG_DIRS = "kafka-log-dirs"
OFFSETS = "kafka-get-offsets"
FEATURES = "kafka-features"
READ = "read"
"""A topic with 3 partitions of 10 records each."""
SINCE, BEFORE = "2020-01-01T00:00:00.000", "2050-01-01T00:00:00.000+01:00"


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    with chosen_cluster(request, kafka_libs, tmp_path_factory) as cluster:
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
            "max.poll.interval.ms": 86_400_000,  # the member does not poll during the tests
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


def test_a_group_is_described_after_its_coordinator_died(
    both: SideBySide, cluster: Cluster
) -> None:
    commit(cluster, "orphan", 4)
    groups = ("--describe", "--group", "orphan", "--timeout", "120000")
    found = re.search(r"\((\d)\)", both.same(GROUPS, *groups, "--state"))
    assert found is not None
    coordinator = int(found[1])
    cluster.kill(coordinator)
    try:
        _, said = both.tidelog(GROUPS, *groups)  # waits for the next coordinator
        agreed = both.same(GROUPS, *groups)
        assert "orphan" in agreed
        assert agreed.splitlines()[-1] in said
    finally:
        cluster.start(coordinator)
        for partition in range(3):
            cluster.wait_for_isr(READ, partition, {1, 2, 3})


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


def as_file(both: SideBySide, name: str, **content: Any) -> str:
    return both.file(f"{name}.json", json.dumps(content))


def place(partition: int, *replicas: int, **more: Any) -> dict[str, Any]:
    return {"topic": THEIRS, "partition": partition, "replicas": replicas, **more}


@pytest.fixture
def two_topics(cluster: Cluster) -> Iterator[None]:
    """A topic for each of the tools, with equal replicas."""
    for topic in (THEIRS, OURS):
        status, said = run_command(
            *("topics", "--bootstrap-server", cluster.bootstrap, "--create", "--topic", topic),
            *("--replica-assignment", "1:2,2:1"),
        )
        assert status == 0, said
        for partition in range(2):
            cluster.wait_for_isr(topic, partition, {1, 2})
    yield
    for topic in (THEIRS, OURS):
        run_command("topics", "--bootstrap-server", cluster.bootstrap, "--delete", "--topic", topic)


def test_offsets_are_printed(both: SideBySide) -> None:
    assert both.same(OFFSETS, "--topic", READ).splitlines() == [f"{READ}:{n}:10" for n in range(3)]
    both.same(OFFSETS, "--topic", "re.*", "--partitions", "0,2", "--exclude-internal-topics")
    both.same(OFFSETS, "--topic-partitions", f"{READ}:1-,__consumer.*:-3")
    both.same(OFFSETS, "--topic-partitions", f"{READ}:2,:0-1", "--exclude-internal-topics")
    for time in (
        "earliest",
        "-1",
        "max-timestamp",
        "-4",
        "latest-tiered",
        "-6",
        "0",
        "9999999999999",
    ):
        both.same(OFFSETS, "--topic", READ, "--time", time)
    both.same(OFFSETS, "--topic", "missing")
    both.same(OFFSETS, "--topic", READ, "--time", "soon")
    both.same(OFFSETS, "--topic", READ, "--partitions", "x")
    both.same(OFFSETS, "--topic", READ, "--topic-partitions", READ)


def test_log_directories_are_described(both: SideBySide) -> None:
    for which in ((), ("--topic-list", READ), ("--broker-list", "2", "--topic-list", "missing")):
        (_, theirs), (_, ours) = (
            run(LOG_DIRS, "--describe", *which) for run in (both.kafka, both.tidelog)
        )
        *their_lines, their_json = theirs.rstrip().splitlines()
        *our_lines, our_json = ours.rstrip().splitlines()
        assert our_lines == their_lines
        assert _sorted(json.loads(our_json)) == _sorted(json.loads(their_json))
    assert "do not exist" in both.same(LOG_DIRS, "--describe", "--broker-list", "1,9")


def _sorted(described: dict[str, Any]) -> dict[str, Any]:
    for broker in described["brokers"]:
        for directory in broker["logDirs"]:
            directory["partitions"].sort(key=lambda one: one["partition"])
            for one in directory["partitions"]:
                if one["partition"].startswith("__"):
                    one["size"] = 0  # internal topics grow between the two calls
    return described


def test_features_are_described_and_checked(both: SideBySide) -> None:
    both.same(FEATURES, "describe")
    elr = "eligible.leader.replicas.version"
    both.same(FEATURES, "upgrade", "--feature", f"{elr}=1")
    both.same(FEATURES, "upgrade", "--feature", f"{elr}=1", "--feature", "no.such=1")
    both.same(FEATURES, "upgrade", "--metadata", "3.9", "--dry-run")
    both.same(FEATURES, "downgrade", "--metadata", "4.0-IV1", "--dry-run")
    both.same(FEATURES, "upgrade", "--release-version", "9.9", "--dry-run")
    both.same(FEATURES, "disable", "--feature", elr, "--dry-run")
    for wrong in (("a=b",), ("a",), ("a=1", "a=2"), ("metadata.version=99",), ()):
        words = [word for one in wrong for word in ("--feature", one)]
        both.same(FEATURES, "upgrade", *words)
    both.same(FEATURES, "upgrade", "--metadata", "9.9")
    both.same(FEATURES, "upgrade", "--release-version", "4.0", "--feature", "group.version=1")
    for version in ("3.3-IV3", "3.9", "4.0.1", "4.1-IV0", "4.2", "4.3"):
        both.same(FEATURES, "version-mapping", "--release-version", version)


@pytest.mark.usefixtures("two_topics")
def test_records_are_deleted(both: SideBySide, cluster: Cluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap})
    for topic in (THEIRS, OURS):
        for number in range(20):
            producer.produce(topic, b"%d" % number, partition=number % 2)
    assert producer.flush(120) == 0
    wanted = [
        {"topic": THEIRS, "partition": 0, "offset": 3},
        {"topic": THEIRS, "partition": 1, "offset": -1},
    ]
    plan = as_file(both, "offsets", partitions=wanted, version=1)
    deleted = both.same(DELETE_RECORDS, "--offset-json-file", plan, any_order=True)
    assert "low_watermark: 10" in deleted
    nowhere = as_file(both, "nowhere", partitions=[{"topic": "x", "partition": 0, "offset": 1}])
    _, said = both.tidelog(DELETE_RECORDS, "--offset-json-file", nowhere)
    assert "partition: x-0\terror: org.apache.kafka.common.errors.UnknownTopicOrPartition" in said
    for name, content in {
        "version": {"version": 2},
        "nothing": {},
        "lacking": {"partitions": [{"topic": THEIRS, "partition": 0}]},
        "twice": {"partitions": wanted[:1] * 2},
    }.items():
        both.same(DELETE_RECORDS, "--offset-json-file", as_file(both, name, **content))
    both.same(DELETE_RECORDS, "--offset-json-file", both.file("bad.json", "{"))
    both.same(DELETE_RECORDS, "--offset-json-file", "/nowhere/offsets.json")


def await_move(cluster: Cluster, topic: str) -> None:
    cluster.wait_for_replicas(topic, 1, [1, 3])
    cluster.wait_for_isr(topic, 1, {1, 3})


@pytest.mark.usefixtures("two_topics")
def test_partitions_are_moved_and_leaders_elected(both: SideBySide, cluster: Cluster) -> None:
    topics = as_file(both, "topics", topics=[{"topic": READ}], version=1)
    generate = ("--generate", "--broker-list", "1,2,3", "--topics-to-move-json-file", topics)
    current, proposed = (
        [run(REASSIGN, *generate)[1].splitlines()[line] for run in (both.kafka, both.tidelog)]
        for line in (1, 4)
    )
    assert current[0] == current[1]
    replicas = [one["replicas"] for one in json.loads(proposed[1])["partitions"]]
    assert all(sorted(one) == [1, 2, 3] for one in replicas)
    assert {one[0] for one in replicas} == {1, 2, 3}, "each broker leads one partition"

    plan = as_file(both, "plan", version=1, partitions=[place(0, 2, 1), place(1, 1, 3)])
    file = ("--reassignment-json-file", plan)
    throttled = ("--execute", *file, "--throttle", "1000000")
    both.same(REASSIGN, *throttled, between=lambda: await_move(cluster, THEIRS))
    await_move(cluster, OURS)
    both.same(REASSIGN, "--list")
    both.same(REASSIGN, "--verify", *file, "--preserve-throttles")
    configs = ("configs", "--bootstrap-server", cluster.bootstrap, "--describe", "--topic")
    said = [run_command(*configs, topic)[1].replace(OURS, THEIRS) for topic in (THEIRS, OURS)]
    assert said[0] == said[1]
    assert "leader.replication.throttled.replicas=0:1,0:2,1:1,1:2" in said[1]
    both.same(REASSIGN, "--verify", *file)
    assert "throttled" not in run_command(*configs, OURS)[1]
    both.same(REASSIGN, "--cancel", *file)

    one = ("--topic", THEIRS, "--partition", "0")
    assert "Successfully completed" in both.same(ELECT, "--election-type", "preferred", *one)
    both.same(ELECT, "--election-type", "PREFERRED", *one)
    both.same(ELECT, "--election-type", "unclean", "--topic", "missing", "--partition", "0")
    both.same(ELECT, "--election-type", "unclean", "--all-topic-partitions")
    for name, content in {
        "three": {"partitions": [{"topic": THEIRS, "partition": n} for n in (0, 7)]},
        "double": {"partitions": [{"topic": THEIRS, "partition": 0}] * 2},
        "no-field": {},
    }.items():
        path = as_file(both, name, **content)
        both.same(ELECT, "--election-type", "preferred", "--path-to-json-file", path)


@pytest.mark.usefixtures("two_topics")
def test_replicas_move_between_log_directories(both: SideBySide, cluster: Cluster) -> None:
    here = str(cluster.data(2))
    for name, wrong in {
        "version": {"version": 3},
        "empty": {"partitions": []},
        "no-replica": {"partitions": [place(0)]},
        "twice": {"partitions": [place(0, 1), place(0, 2)]},
        "same-broker": {"partitions": [place(0, 1, 1)]},
        "no-partition": {"partitions": [place(9, 1)]},
        "sizes": {"partitions": [place(0, 1, 2, log_dirs=["any"])]},
        "lacking": {"partitions": [{"topic": THEIRS}]},
        "no-directory": {"partitions": [place(0, 1, 2, log_dirs=["any", "/nowhere"])]},
        "directory": {"partitions": [place(0, 1, 2, log_dirs=["any", here])]},
    }.items():
        path = ("--reassignment-json-file", as_file(both, name, **wrong))
        both.same(REASSIGN, "--execute", *path)
        both.same(REASSIGN, "--verify", *path)
    both.same(REASSIGN, "--cancel", *path)
    unknown = as_file(both, "unknown-broker", partitions=[place(0, 1, 9)])
    both.same(REASSIGN, "--execute", "--reassignment-json-file", unknown)
    both.same(REASSIGN, "--execute", "--reassignment-json-file", "/nowhere/plan.json")


@pytest.mark.usefixtures("two_topics")
def test_producing_and_consuming_is_measured(both: SideBySide) -> None:
    def shapes(tool: str, *args: str) -> list[str]:
        """The output of both tools, without numbers."""
        ours = [arg.replace(THEIRS, OURS) for arg in args]
        said = [both.kafka(tool, *args)[1], both.tidelog(tool, *ours)[1].rstrip()]
        return [re.sub(r"\d+", "N", one) for one in said]

    sizes = ("--num-records", "3000", "--record-size", "50", "--throughput", "-1")
    props = ("--command-property", "acks=all", "compression.type=zstd")
    produced = shapes("kafka-producer-perf-test", "--topic", THEIRS, *sizes, *props)
    assert produced[0] == produced[1]
    warm = ("--warmup-records", "1000", "--throughput", "20000")
    steady = shapes("kafka-producer-perf-test", "--topic", THEIRS, *sizes[:4], *warm, *props)
    assert steady[0] == steady[1]
    assert "N steady state records sent" in steady[1]
    read = ("--topic", THEIRS, "--num-records", "6000", "--timeout", "120000")
    consumed = shapes("kafka-consumer-perf-test", *read)
    assert consumed[0] == consumed[1]
    (values,) = consumed[1].splitlines()[1:]
    assert len(values.split(", ")) == 10
