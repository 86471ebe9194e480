"""`ingest` on a real cluster writes each record to its table once."""

import os
import shutil
import signal
import threading
import time
from decimal import Decimal
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import Row, SparkSession
from tests.pipelines import records
from tests.pipelines.single_ingest import lose_the_last_commit, rows, settings

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest
from tidelog_pipelines.sinks.identities import TopicReplaced

RUNS = 5


def committed(cluster: Cluster, group: str, topic: str, partition: int = 0) -> int:
    consumer = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": group, **records.QUIET}
    )
    (found,) = consumer.committed([TopicPartition(topic, partition)], timeout=30)
    consumer.close()
    return found.offset


def await_committed(
    spark: SparkSession, cluster: Cluster, chosen: ingest.IngestSettings, topic: str, end: int
) -> None:
    """Repeat `ingest` until the offsets are committed, because a run may end without a commit."""
    for _ in range(RUNS):
        if committed(cluster, chosen.group, topic) == end:
            return
        ingest.run(spark, chosen)
    assert committed(cluster, chosen.group, topic) == end


def test_json_is_inferred_grows_and_is_never_doubled(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1)
    chosen = settings(cluster, tmp_path, topics=topic, group=topic)
    records.produce(cluster.bootstrap, topic, ['{"id":1,"item":"a"}', "{bad", None, '{"id":2}'])
    ingest.run(spark, chosen)
    await_committed(spark, cluster, chosen, topic, 4)

    records.produce(cluster.bootstrap, topic, ['{"id":3,"more":{"x":1.5}}', '{"id":"three"}'])
    ingest.run(spark, chosen)
    good = [
        (0, Row(id=1, item="a", more=None)),
        (2, None),
        (3, Row(id=2, item=None, more=None)),
        (4, Row(id=3, item=None, more=Row(x=1.5))),
        (5, Row(id=None, item=None, more=None)),
    ]
    bad = [(1, "the value is not JSON")]

    def is_whole() -> bool:
        found = rows(spark, tmp_path, f"tables/{topic}", "offset", "value")
        refused = rows(spark, tmp_path, "quarantine", "offset", "reason")
        rescued = rows(spark, tmp_path, f"tables/{topic}", "offset", "_rescued")[-1]
        return (found, refused, rescued) == (good, bad, (5, '{"id":"three"}'))

    assert is_whole()
    await_committed(spark, cluster, chosen, topic, 6)
    lose_the_last_commit(tmp_path)
    ingest.run(spark, chosen)
    assert is_whole()
    shutil.rmtree(tmp_path / "checkpoint")
    ingest.run(spark, chosen)
    assert is_whole()


def test_a_column_of_integers_widens_in_a_later_batch(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    chosen = settings(cluster, tmp_path, topics=topic, group="")
    for value in ('{"a":1,"l":[1]}', '{"a":2.5,"l":[9223372036854775808]}'):
        records.produce(cluster.bootstrap, topic, [value])
        ingest.run(spark, chosen)
    found = rows(spark, tmp_path, f"tables/{topic}", "offset", "value", "_rescued")
    assert found == [
        (0, Row(a=Decimal(1), l=[Decimal(1)]), None),
        (1, Row(a=Decimal("2.5"), l=[Decimal(2**63)]), None),
    ]


def test_parquet_by_pattern_is_never_doubled_either(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    names = [f"{topic}-{letter}" for letter in "ab"]
    for name in names:
        records.create(cluster.bootstrap, name, partitions=1)
        records.produce(cluster.bootstrap, name, [b"\xff", f"one in {name}"], key="k")
    chosen = settings(
        cluster,
        tmp_path,
        pattern=f"{topic}-.*",
        format="parquet",
        value_format="string",
        group="",
    )
    for loss in (
        lambda: None,
        lambda: lose_the_last_commit(tmp_path),
        lambda: shutil.rmtree(tmp_path / "checkpoint"),
    ):
        loss()
        ingest.run(spark, chosen)
        for name in names:
            found = rows(
                spark, tmp_path, f"tables/{name}", "offset", "key", "value", kind="parquet"
            )
            assert found == [(1, "k", f"one in {name}")]
        bad = rows(spark, tmp_path, "quarantine", "topic", "offset", kind="parquet")
        assert bad == [(name, 0) for name in names]


def test_a_topic_deleted_and_created_again_is_reported(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1)
    records.produce(cluster.bootstrap, topic, ["1", "2"])
    chosen = settings(cluster, tmp_path, topics=topic, value_format="raw")
    ingest.run(spark, chosen)
    records.delete(cluster.bootstrap, topic)
    records.create(cluster.bootstrap, topic, partitions=1)
    records.produce(cluster.bootstrap, topic, ["one", "two", "three"])
    # The next offset exists in the new topic, so only the topic id shows that the topic is new.
    with pytest.raises(TopicReplaced, match="was deleted and created again"):
        ingest.run(spark, chosen)
    found = rows(spark, tmp_path, f"tables/{topic}", "offset", "value")
    assert found == [(0, bytearray(b"1")), (1, bytearray(b"2"))]


def test_the_checkpoint_of_another_query_is_refused(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    offsets, commits = tmp_path / "checkpoint" / "offsets", tmp_path / "checkpoint" / "commits"
    for directory in (offsets, commits):
        directory.mkdir(parents=True)
    (offsets / "0").write_text('v1\n{"batchWatermarkMs":0}\n{"clicks":{"0":7}}')
    (commits / "0").write_text('v1\n{"nextBatchWatermarkMs":0}')
    with pytest.raises(JobFailed, match="belongs to another query, one that reads clicks"):
        ingest.run(spark, settings(cluster, tmp_path, topics=topic))


def test_an_unknown_topic_is_named_before_spark_starts(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--bootstrap-server", cluster.bootstrap, "--out", str(tmp_path)]
    assert ingest.main([*where, "--topics", "nowhere"]) == 1
    assert "topic nowhere does not exist at 127.0.0.1:" in capsys.readouterr().err


def test_a_missing_cluster_is_named_before_spark_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--bootstrap-server", "127.0.0.1:1", "--out", str(tmp_path)]
    assert ingest.main([*where, "--topics", "t"]) == 1
    assert "tidelog: no broker answers at 127.0.0.1:1" in capsys.readouterr().err


def test_a_job_that_is_told_to_end_stops_in_order(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1)
    records.produce(cluster.bootstrap, topic, ["1", "2"])
    chosen = settings(cluster, tmp_path, topics=topic, value_format="raw", once=False)

    def tell_it_to_end() -> None:
        while not (tmp_path / "checkpoint" / "commits" / "0").exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    threading.Thread(target=tell_it_to_end, daemon=True).start()
    ingest.run(spark, chosen)
    assert "tidelog: interrupted; the next run continues from here.\n" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before
    assert not spark.streams.active
    assert len(rows(spark, tmp_path, f"tables/{topic}", "offset")) == 2
