"""The audit finds and explains a real loss, caused by acks=1 and the kill of a leader."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipelines.recorded_events import recorded_events

from tidelog.client.client import Client
from tidelog.client.ledger import Ledger
from tidelog.client.producer import ACKS_ALL, Producer
from tidelog.model.ids import NodeId
from tidelog.protocol.records.records import Record
from tidelog.testing import Cluster
from tidelog_pipelines.jobs.audit import CLEAN, FAULTY, UNKNOWN, main
from tidelog_pipelines.transformations.events import TOPIC as EVENTS

SAFE, RISKED = 50, 7


@dataclass(frozen=True)
class Loss:
    topic: str
    ledger: Path
    cluster: Cluster
    leader: NodeId
    """The leader that was killed."""
    offsets: range
    """The offsets of the records that only the leader had."""


def send(producer: Producer, name: str, count: int = 1) -> None:
    records = [Record(b"%s-%d" % (name.encode(), n), b"value", 1) for n in range(count)]
    producer.send(records, 0)


@pytest.fixture(scope="module")
def loss(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Loss:
    topic, path = "loss", tmp_path_factory.mktemp("loss") / "ledger.jsonl"
    with Client(cluster.bootstrap) as client, Ledger(path) as ledger:
        cluster.create_topic(topic, 1, 3)
        # The first use creates the topic of events; wait for it before a broker is killed.
        cluster.wait_for_isr(EVENTS, size=3)

        def producer(acks: int) -> Producer:
            return Producer(client, topic, acks=acks, compression="none", ledger=ledger)

        send(producer(ACKS_ALL), "safe", SAFE)
        leader = cluster.leader_of(topic)
        followers = [node for node in cluster.nodes if node != leader]
        risky = producer(1)
        for node in followers:
            cluster.pause(node)
        # Each paused follower has a pending fetch, which gets this record but no later ones.
        send(risky, "bait")
        for number in range(RISKED):
            send(risky, f"risked-{number}")
        cluster.kill(leader)
        for node in followers:
            cluster.resume(node)
        cluster.wait_for(
            lambda: cluster.leader_of(topic) != leader or None, "a leader of those who are left"
        )
        send(producer(ACKS_ALL), "later", 2)
        cluster.start(leader)
        cluster.wait_for_isr(topic, size=3)
        cluster.wait_for(lambda: has_recorded(client, topic, leader), "the cut being recorded")
    first = SAFE + 1
    return Loss(topic, path, cluster, leader, range(first, first + RISKED))


def has_recorded(client: Client, topic: str, node: NodeId) -> bool | None:
    """Whether the old leader has recorded its truncation as an event."""
    return (
        any(
            (one["event"], one.get("topic"), one["node"]) == ("truncated", topic, node)
            for one in recorded_events(client)
        )
        or None
    )


def test_a_loss_is_found_through_the_cluster_and_explained(
    spark: SparkSession, loss: Loss, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--ledger", str(loss.ledger), "--bootstrap-server", loss.cluster.bootstrap]

    assert main([*arguments, "--out", str(tmp_path)]) == FAULTY

    lost = spark.read.parquet(str(tmp_path / "lost")).orderBy("offset").collect()
    assert set(loss.offsets) <= {row["offset"] for row in lost} <= {SAFE, *loss.offsets}
    assert {row["cause"] for row in lost} == {"election"}
    assert {row["leader_before"] for row in lost} == {loss.leader}
    assert f"broker {loss.leader} truncated its log from" in lost[-1]["explanation"]
    said = capsys.readouterr().out
    assert f"acknowledged {SAFE + 1 + RISKED + 2}, lost {len(lost)}, duplicated 0" in said


def test_the_replicas_files_tell_the_same_and_which_of_them_is_damaged(
    spark: SparkSession, loss: Loss, tmp_path: Path
) -> None:
    replicas = []
    for node in loss.cluster.nodes:
        copied = tmp_path / str(node)
        for name in (loss.topic, EVENTS):
            for partition in loss.cluster.data(node).glob(f"{name}-*"):
                shutil.copytree(partition, copied / partition.name)
        replicas += ["--replica", f"{node}={copied}"]
    damage(tmp_path / "1" / f"{loss.topic}-0" / f"{0:020}.log")

    arguments = ["--ledger", str(loss.ledger), *replicas, "--out", str(tmp_path / "out")]
    assert main(arguments) == FAULTY

    lost = spark.read.parquet(str(tmp_path / "out" / "lost")).collect()
    assert set(loss.offsets) <= {row["offset"] for row in lost}
    assert {row["leader_before"] for row in lost} == {loss.leader}
    (damaged,) = spark.read.parquet(str(tmp_path / "out" / "damaged")).collect()
    assert (damaged["replica"], damaged["offset"], damaged["last_offset"]) == (1, 0, SAFE - 1)
    (lacks,) = spark.read.parquet(str(tmp_path / "out" / "replicas")).collect()
    assert (lacks["replica"], lacks["kind"], lacks["records"]) == (1, "missing", SAFE)


def damage(segment: Path) -> None:
    """Flip a bit in the first batch."""
    raw = bytearray(segment.read_bytes())
    raw[100] ^= 1
    segment.write_bytes(raw)


def test_an_audit_that_cannot_be_made_is_no_verdict(
    spark: SparkSession, loss: Loss, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--ledger", str(loss.ledger), "--replica", f"1={tmp_path}"]) == UNKNOWN
    assert f"replica 1 has no segment of 'loss' in {tmp_path}" in capsys.readouterr().err
    assert main(["--ledger", str(loss.ledger), "--replica", f"one={tmp_path}"]) == UNKNOWN
    assert "--replica: 'one' is not a broker id." in capsys.readouterr().err
    assert main(["--ledger", "nowhere.jsonl"]) == UNKNOWN
    assert "nowhere.jsonl does not exist." in capsys.readouterr().err


def test_all_is_well_where_all_is_well(
    spark: SparkSession, loss: Loss, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ledger.jsonl"
    lines = loss.ledger.read_text().splitlines()
    path.write_text("\n".join(lines[:SAFE] + lines[-2:]) + '\n{"topic":"lo')

    arguments = ["--ledger", str(path), "--bootstrap-server", loss.cluster.bootstrap]
    assert main([*arguments, "--events", "none"]) == CLEAN
    assert f"acknowledged {SAFE + 2}, lost 0, duplicated 0" in capsys.readouterr().out
