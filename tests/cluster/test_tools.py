"""Kafka's administration tools print the same output for three Tidelog nodes as for Apache Kafka.

Kafka's output is in golden/, recorded with `--system kafka --record-golden`.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.apache import chosen_cluster
from tests.cluster.foreground import await_seen
from tests.cluster.tools import Tools

from tidelog.testing import Cluster

GOLDEN = Path(__file__).parent / "golden"
SPREAD = ("--replica-assignment", "1:2:3,2:3:1,3:1:2")


@pytest.fixture(scope="module")
def cluster(
    request: pytest.FixtureRequest, kafka_libs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    with chosen_cluster(request, kafka_libs, tmp_path_factory) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def java(cluster: Cluster, kafka_libs: Path) -> Tools:
    return Tools(kafka_libs, cluster)


@pytest.fixture
def tools(java: Tools, request: pytest.FixtureRequest) -> Iterator[Tools]:
    """The tools; after the test their transcript is compared with Apache Kafka's transcript."""
    golden = GOLDEN / f"{request.node.name.removeprefix('test_')}.txt"
    is_new = request.config.getoption("--record-golden")
    java.transcript.clear()
    java.expected = [] if is_new else re.split(r"(?m)\n^(?=\$ )", golden.read_text())
    yield java
    said = "\n".join(java.transcript)
    if is_new:
        GOLDEN.mkdir(exist_ok=True)
        golden.write_text(said)
    assert said == golden.read_text()


def test_topics(tools: Tools, cluster: Cluster) -> None:
    topics = "kafka-topics"
    tools.note(topics, "--create", "--topic", "spread", *SPREAD)
    tools.note(topics, "--create", "--topic", "spread", *SPREAD)
    tools.note(topics, "--create", "--topic", "spread", "--if-not-exists")
    tools.note(topics, "--list")
    tools.note(topics, "--describe", "--topic", "spread")
    tools.note(topics, "--create", "--topic", "wide", "--replication-factor", "4")
    tools.note(topics, "--create", "--topic", "odd name")
    tools.note(topics, "--create", "--topic", "strange", "--config", "retention.ms=soon")
    tools.note(topics, "--create", "--topic", "nowhere", "--replica-assignment", "1:9")
    more = f"{SPREAD[1]},1:3:2"
    tools.note(
        topics, "--alter", "--topic", "spread", "--partitions", "4", "--replica-assignment", more
    )
    tools.note(topics, "--alter", "--topic", "spread", "--partitions", "2")
    tools.note(topics, "--describe", "--topic", "spread")
    for which in ("--under-replicated-partitions", "--unavailable-partitions",
                  "--under-min-isr-partitions", "--at-min-isr-partitions"):  # fmt: skip
        tools.note(topics, "--describe", which)
    tools.note(topics, "--describe", "--topic", "missing")
    tools.note(topics, "--delete", "--topic", "missing")
    tools.note(topics, "--delete", "--topic", "spread")
    tools.note(topics, "--list")


def test_topics_of_a_broker_that_is_down(tools: Tools, cluster: Cluster) -> None:
    tools.run("kafka-topics", "--create", "--topic", "down", *SPREAD)
    for partition in range(3):
        cluster.wait_for_isr("down", partition, {1, 2, 3})
    cluster.kill(3)
    for partition in range(3):
        cluster.wait_for_isr("down", partition, {1, 2})
    tools.note("kafka-topics", "--describe", "--topic", "down")
    tools.note("kafka-topics", "--describe", "--topic", "down", "--under-replicated-partitions")
    tools.note("kafka-topics", "--describe", "--topic", "down", "--at-min-isr-partitions")
    tools.note("kafka-topics", "--describe", "--topic", "down", "--unavailable-partitions")
    cluster.start(3)
    for partition in range(3):
        cluster.wait_for_isr("down", partition, {1, 2, 3})
    tools.run("kafka-topics", "--delete", "--topic", "down")


def test_leader_election(tools: Tools, cluster: Cluster, tmp_path: Path) -> None:
    election = "kafka-leader-election"
    tools.run("kafka-topics", "--create", "--topic", "led", "--replica-assignment", "2:1,1:2")
    for partition in range(2):
        cluster.wait_for_isr("led", partition, {1, 2})
    cluster.kill(2)
    cluster.wait_for_isr("led", 0, {1})
    one = ("--topic", "led", "--partition", "0")
    tools.note(election, "--election-type", "preferred", *one)
    tools.note(election, "--election-type", "unclean", *one)
    cluster.start(2)
    cluster.wait_for_isr("led", 0, {1, 2})
    cluster.wait_for(lambda: cluster.leader_of("led") == 1 or None, "1 to lead on")
    tools.note(election, "--election-type", "preferred", *one)
    tools.note(election, "--election-type", "preferred", *one)
    tools.note(election, "--election-type", "preferred", "--topic", "missing", "--partition", "0")
    plan = tmp_path / "partitions.json"
    plan.write_text(json.dumps({"partitions": [{"topic": "led", "partition": 1}]}))
    tools.note(election, "--election-type", "preferred", "--path-to-json-file", str(plan))
    tools.note("kafka-topics", "--describe", "--topic", "led")
    tools.run("kafka-topics", "--delete", "--topic", "led")


def test_unclean_leader_election(tools: Tools, cluster: Cluster) -> None:
    keep_one = ("--config", "min.insync.replicas=1")
    tools.run(
        "kafka-topics", "--create", "--topic", "lost", "--replica-assignment", "1:2", *keep_one
    )
    cluster.wait_for_isr("lost", 0, {1, 2})
    cluster.kill(2)
    cluster.wait_for_isr("lost", 0, {1})
    cluster.kill(1)
    cluster.start(2)
    cluster.wait_for_no_leader("lost", 0)
    tools.note("kafka-topics", "--describe", "--topic", "lost", "--unavailable-partitions")
    one = ("--topic", "lost", "--partition", "0")
    tools.note("kafka-leader-election", "--election-type", "unclean", *one)
    cluster.wait_for(lambda: cluster.leader_of("lost") == 2 or None, "2 to lead")
    tools.note("kafka-topics", "--describe", "--topic", "lost")
    cluster.start(1)
    cluster.wait_for_isr("lost", 0, {1, 2})
    tools.run("kafka-topics", "--delete", "--topic", "lost")


def test_reassignment(tools: Tools, cluster: Cluster, tmp_path: Path) -> None:
    tools.run("kafka-topics", "--create", "--topic", "moved", "--replica-assignment", "1:2")
    cluster.wait_for_isr("moved", 0, {1, 2})
    # Replace a replica, add one, change the leader, remove one.
    for number, replicas in enumerate(([1, 3], [1, 3, 2], [2, 3, 1], [2, 3])):
        plan = _plan(tmp_path / f"plan-{number}.json", replicas)
        tools.note("kafka-reassign-partitions", "--execute", *plan)
        cluster.wait_for_replicas("moved", 0, replicas)
        cluster.wait_for_isr("moved", 0, replicas)
        tools.note("kafka-reassign-partitions", "--verify", *plan)
        tools.note("kafka-reassign-partitions", "--list")
        tools.note("kafka-reassign-partitions", "--cancel", *plan)
        placed = f"Replicas: {','.join(map(str, replicas))}\t"
        await_seen(
            lambda: tools.run("kafka-topics", "--describe", "--topic", "moved"),
            lambda said, placed=placed: placed in said,
        )
    tools.note("kafka-reassign-partitions", "--execute", *_plan(tmp_path / "away.json", [1, 9]))
    tools.note("kafka-reassign-partitions", "--verify", *_plan(tmp_path / "other.json", [1, 2]))
    tools.run("kafka-topics", "--delete", "--topic", "moved")


def _plan(path: Path, replicas: list[int]) -> tuple[str, str]:
    moved = {"topic": "moved", "partition": 0, "replicas": replicas}
    path.write_text(json.dumps({"version": 1, "partitions": [moved]}))
    return "--reassignment-json-file", str(path)


def test_configs(tools: Tools) -> None:
    configs = "kafka-configs"
    tools.run("kafka-topics", "--create", "--topic", "tuned", *SPREAD)
    topic = ("--entity-type", "topics", "--entity-name", "tuned")
    tools.note(configs, "--alter", *topic, "--add-config", "retention.ms=4242")
    tools.note(configs, "--describe", *topic)
    tools.note(configs, "--alter", *topic, "--add-config", "no.such.thing=1")
    tools.note(configs, "--alter", *topic, "--delete-config", "retention.ms")
    tools.note(configs, "--describe", *topic)
    broker = ("--entity-type", "brokers", "--entity-name", "2")
    tools.note(configs, "--describe", *broker)
    tools.note(configs, "--alter", *broker, "--add-config", "message.max.bytes=2000000")
    tools.note(configs, "--describe", *broker)
    tools.note(configs, "--alter", *broker, "--add-config", "node.id=7")
    tools.note(configs, "--alter", *broker, "--delete-config", "message.max.bytes")
    tools.note(configs, "--describe", *broker)
    everyone = ("--entity-type", "brokers", "--entity-default")
    tools.note(configs, "--alter", *everyone, "--add-config", "log.retention.ms=888888")
    tools.note(configs, "--describe", *everyone)
    tools.note(configs, "--describe", *topic)
    tools.note(configs, "--alter", *everyone, "--delete-config", "log.retention.ms")
    tools.note(configs, "--describe", *everyone)
    tools.run("kafka-topics", "--delete", "--topic", "tuned")


def test_metadata_quorum(tools: Tools, cluster: Cluster) -> None:
    cluster.controller()
    tools.note("kafka-metadata-quorum", "describe", "--status")
    tools.note("kafka-metadata-quorum", "describe", "--replication")
    tools.note("kafka-metadata-quorum", "describe")
    tools.note("kafka-metadata-quorum", "describe", "--status", controllers=True)
    tools.note("kafka-metadata-quorum", "describe", "--replication", controllers=True)
    tools.transcript[:] = [_settled_quorum(said) for said in tools.transcript]


def _settled_quorum(said: str) -> str:
    """The output without the leader and the offsets, which differ from run to run."""
    said = re.sub(
        r"(?m)^(LeaderId|LeaderEpoch|HighWatermark|MaxFollowerLag\w*): .*$", r"\1: N", said
    )
    rows = re.findall(r"(?m)^\d+ *\t.*$", said)
    for row in rows:
        columns = [column.strip() for column in row.split("\t")]
        settled = ["N", *columns[1:2], "N", "N", *columns[4:]]
        said = said.replace(row, "\t".join(settled))
    return said


def test_features(tools: Tools) -> None:
    features = "kafka-features"
    ours = re.compile(r"^Feature: (metadata|kraft|group|eligible\.leader\.replicas)\.version .*")
    shown = [line for line in tools.run(features, "describe").splitlines() if ours.match(line)]
    assert len(shown) == 4
    # The newest supported level differs between releases.
    tools.transcript.append(re.sub(r": [\d.]+(-IV\d)?(?=\s|$)", ": N", "\n".join(shown)) + "\n")
    tools.note(features, "downgrade", "--feature", "eligible.leader.replicas.version=0")
    tools.note(features, "upgrade", "--feature", "eligible.leader.replicas.version=1")
    tools.note(features, "upgrade", "--feature", "eligible.leader.replicas.version=1")
    tools.note(features, "upgrade", "--feature", "no.such.feature=1")
    tools.transcript[-1] = re.sub(r"controller \d", "controller N", tools.transcript[-1])
    tools.note(features, "upgrade", "--metadata", "3.0-IV0")


def test_the_cluster_itself(tools: Tools, cluster: Cluster) -> None:
    tools.note("kafka-cluster", "cluster-id")
    tools.note("kafka-cluster", "unregister", "--id", "9")
