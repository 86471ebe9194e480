"""`ingest --once` finds out without Spark that there is nothing to read."""

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import NewPartitions
from pyspark.sql import SparkSession
from tests.pipelines import records
from tests.pipelines.single_ingest import lose_the_last_commit, settings

from tidelog.testing import Cluster
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.jobs.caught_up import FEW, UNKNOWN, Backlog, backlog, digest
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.kafka import Subscription

NOTHING = Backlog(is_nothing=True, records=0)


def left(chosen: ingest.IngestSettings) -> Backlog:
    return backlog(chosen, chosen.subscription, chosen.checkpoint_path, digest(chosen))


def test_a_run_without_new_records_ends_without_spark(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    records.produce(cluster.bootstrap, topic, ["1", "2"])
    chosen = settings(cluster, tmp_path, topics=topic, value_format="raw")
    assert left(chosen) == Backlog(is_nothing=False, records=2)
    ingest.run(spark, chosen)
    assert left(chosen) == NOTHING
    other = settings(cluster, tmp_path, topics=topic, value_format="raw", partition_by="date")
    assert left(other) == Backlog(is_nothing=False, records=0), "with other options Spark must look"

    summary = tmp_path / "summary.json"
    where = ["--bootstrap-server", cluster.bootstrap, "--out", str(tmp_path)]
    what = ["--topics", topic, "--value-format", "raw", "--once", "--summary", str(summary)]
    assert ingest.main([*where, *what]) == 0
    assert spark.range(1).count() == 1, "the job has not used, and so not stopped, the session"
    found = json.loads(summary.read_text())
    assert (found["batches"], found["records"], found["exit"]) == (0, 0, "complete")
    assert found["offsets"] == {topic: {"0": 2}}

    lose_the_last_commit(tmp_path)
    assert not left(chosen).is_nothing, "a planned batch is not complete"
    ingest.run(spark, chosen)
    assert left(chosen) == NOTHING
    records.produce(cluster.bootstrap, topic, ["3"])
    assert left(chosen) == Backlog(is_nothing=False, records=1)

    # A new topic of the same name, with the same offsets.
    records.delete(cluster.bootstrap, topic)
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    records.produce(cluster.bootstrap, topic, ["one", "two"])
    assert left(chosen) == Backlog(is_nothing=False, records=0)
    client = records.admin(cluster.bootstrap)
    for done in client.create_partitions([NewPartitions(topic, 2)]).values():
        done.result(records.PATIENCE_SECONDS)
    records.await_everywhere(cluster.bootstrap, topic, lambda one: len(one.partitions) == 2)
    assert not left(chosen).is_nothing


@pytest.mark.parametrize(
    ("checkpoint", "more"),
    [
        ("s3a://bucket/c", {}),
        ("/c", {"remote": "sc://host"}),
        ("/c", {"master": "yarn"}),
    ],
)
def test_only_a_local_checkpoint_is_read_without_spark(
    checkpoint: str, more: dict[str, str]
) -> None:
    kafka = KafkaSettings(bootstrap_server="127.0.0.1:1", **more)
    assert backlog(kafka, Subscription(("t",)), checkpoint, "") == UNKNOWN
    assert not UNKNOWN.is_short


def test_a_run_with_few_records_is_short() -> None:
    assert Backlog(records=FEW).is_short
    assert not Backlog(records=FEW + 1).is_short
