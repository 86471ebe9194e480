"""Among many valid records, only the records that once stopped a job go to quarantine.

The full run is `./test tests/pipelines/test_poison.py --poison-records 100000 --poison-each`: one
topic for each kind of bad record, with 100,000 records and one bad record in each of them.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tests.pipelines import records

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest, query
from tidelog_pipelines.sinks.delta_tables import DeltaTables
from tidelog_pipelines.sinks.tables import Batch
from tidelog_pipelines.streams import Caller

LONG_MAX = 2**63 - 1
MEGABYTE = 1 << 20
BAD = {
    b"{bad": "the value is not JSON",
    b"\xff": "the value is not UTF-8",
    b'{"x":1,"x":2}': 'the value has the name "x" twice in one object',
    b'{"x":NaN}': "the value is not JSON: it contains NaN",
    b'{"x":1}{"x":2}': "the value is not JSON",
    b'{"x":%s%s}' % (b"[" * 600, b"]" * 600): "the value is nested deeper than 500 levels",
    b'{"x":%s%s}' % (b"[" * 990, b"]" * 990): "the value is nested deeper than 500 levels",
    b'{"x":"%s"}' % (b"y" * MEGABYTE): f"the value has {MEGABYTE + 8} bytes, more than {MEGABYTE}",
}
ODD_BUT_GOOD = (b'{"_corrupt_record":"x"}', b'{"n":"odd"}', b'{"n":1e400}', b"{}")


def create(cluster: Cluster, topic: str, partitions: int = 2) -> None:
    limits = {
        "message.timestamp.after.max.ms": str(LONG_MAX),
        "max.message.bytes": str(8 * MEGABYTE),
    }
    new = NewTopic(topic, partitions, 1, config=limits)
    client = records.admin(cluster.bootstrap)
    for done in client.create_topics([new]).values():
        done.result(records.PATIENCE_SECONDS)
    records.await_everywhere(cluster.bootstrap, topic, records.is_led)


def settings(cluster: Cluster, out: Path, **more: object) -> ingest.IngestSettings:
    chosen = {"bootstrap_server": cluster.bootstrap, "out": str(out), "once": True, "group": ""}
    return ingest.IngestSettings(**{**chosen, **more})  # type: ignore[arg-type]


class Poison(NamedTuple):
    """A bad record, and the reason for which it is quarantined."""

    value: bytes
    reason: str
    timestamp: int = 1_700_000_000_000


POISON = (
    *(Poison(value, reason) for value, reason in BAD.items()),
    Poison(
        b'{"n":-1}',
        f"the timestamp, {LONG_MAX - 5} ms, is beyond what a table can hold",
        LONG_MAX - 5,
    ),
)


def write_around(cluster: Cluster, topic: str, count: int, poison: Sequence[Poison]) -> None:
    """Write `count` good records to a topic, with the odd and the bad ones among them."""
    create(cluster, topic)
    good = Poison(b"", "")
    values = [good._replace(value=b'{"n":%d}' % number) for number in range(count)]
    rare = [*poison, *(good._replace(value=odd) for odd in ODD_BUT_GOOD)]
    for place, one in enumerate(rare):
        values.insert((place + 1) * count // (len(rare) + 1), one)
    limits = {"bootstrap.servers": cluster.bootstrap, "message.max.bytes": 8 * MEGABYTE}
    producer = Producer({**limits, **records.QUIET})
    for number, one in enumerate(values):
        while True:
            try:
                producer.produce(topic, one.value, partition=number % 2, timestamp=one.timestamp)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(records.PATIENCE_SECONDS) == 0


def test_bad_records_do_not_keep_the_others_from_their_table(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
) -> None:
    count = request.config.getoption("--poison-records")
    each = [[one] for one in POISON]
    groups = each if request.config.getoption("--poison-each") else [list(POISON)]
    wanted = {f"{topic}-{number}": group for number, group in enumerate(groups)}
    for name, group in wanted.items():
        write_around(cluster, name, count - len(group), group)

    chosen = settings(cluster, tmp_path, pattern=f"{topic}-.*", max_value_bytes=MEGABYTE)
    ingest.run(spark, chosen)
    tables = DeltaTables(spark, str(tmp_path))
    quarantine = tables.rows("quarantine")
    assert quarantine is not None
    found = quarantine.select("topic", "value", "reason").collect()
    for name, group in wanted.items():
        table = tables.rows(f"tables/{name}")
        assert table is not None
        assert table.count() == count - len(group) + len(ODD_BUT_GOOD)
        assert table.select("value.n").distinct().count() == count - len(group) + 1
        bad = {bytes(row["value"]): row["reason"] for row in found if row["topic"] == name}
        assert bad == {one.value: one.reason for one in group}
        print(f"{name}: {table.count():,} rows, {len(bad)} quarantined: {sorted(bad.values())}")


def test_records_that_expire_during_the_search_are_not_taken_for_bad_ones(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    create(cluster, topic, partitions=1)
    good = [b'{"n":%d}' % number for number in range(4)]
    records.produce(cluster.bootstrap, topic, good)
    records.produce(cluster.bootstrap, topic, [b'{"n":-1}'], timestamp=LONG_MAX - 5)
    lines: list[str] = []

    def expire(line: str) -> None:
        lines.append(line)
        if "searching the cause" in line:
            expired = TopicPartition(topic, 0, 2)
            client = records.admin(cluster.bootstrap)
            for done in client.delete_records([expired]).values():
                done.result(records.PATIENCE_SECONDS)

    chosen = settings(cluster, tmp_path, topics=topic, on_topic_deleted="skip")
    with pytest.raises(JobFailed, match="offset 0 was next, and the first one is 2"):
        ingest.run(spark, chosen, Caller(expire))
    assert lines == [f"tidelog: batch 0 of {topic} fails; searching the cause."]
    tables = DeltaTables(spark, str(tmp_path))
    table, quarantine = tables.rows(f"tables/{topic}"), tables.rows("quarantine")
    assert table is not None
    assert quarantine is not None
    assert sorted(row["offset"] for row in table.collect()) == [2, 3]
    assert [row["offset"] for row in quarantine.collect()] == [4]


def test_forty_values_of_five_megabytes_are_printed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = DeltaTables(spark, str(tmp_path))
    text = f.repeat(f.lit("tide "), MEGABYTE)
    rows = spark.range(40).select(text.alias("value"), f.current_date().alias("date"))
    tables.append("tables/t", rows, Batch("q", 0))
    names = tables.frame([("t", "id")], "topic STRING, topic_id STRING")
    tables.append("topics", names.withColumn("date", f.current_date()), Batch("q", 0))
    printed: list[int] = []

    class Counter:
        def write(self, text: str) -> None:
            printed.append(len(text))

        def flush(self) -> None: ...

    monkeypatch.setattr(sys, "stdout", Counter())
    query.run(spark, query.QuerySettings(out=str(tmp_path), sql="SELECT value FROM t"))
    assert sum(size for size in printed if size > 1) == 40 * 5 * MEGABYTE


def test_a_deleted_topic_ends_the_job_or_is_skipped(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    for name in (f"{topic}-a", f"{topic}-b"):
        records.create(cluster.bootstrap, name, partitions=1, copies=1)
        records.produce(cluster.bootstrap, name, ["1"])
    chosen = {"pattern": f"{topic}-.*", "value_format": "raw"}
    ingest.run(spark, settings(cluster, tmp_path, **chosen))
    records.delete(cluster.bootstrap, f"{topic}-b")
    records.produce(cluster.bootstrap, f"{topic}-a", ["2"])
    with pytest.raises(JobFailed, match="--on-topic-deleted skip"):
        ingest.run(spark, settings(cluster, tmp_path, **chosen))
    ingest.run(spark, settings(cluster, tmp_path, **chosen, on_topic_deleted="skip"))
    tables = DeltaTables(spark, str(tmp_path))
    counts = [tables.rows(f"tables/{topic}-{letter}") for letter in "ab"]
    assert [found.count() for found in counts if found is not None] == [2, 1]


def test_a_table_of_another_format_or_schema_is_named(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    records.produce(cluster.bootstrap, topic, ['{"id":1}'])
    ingest.run(spark, settings(cluster, tmp_path, topics=topic))
    records.produce(cluster.bootstrap, topic, ['{"id":2}'])
    with pytest.raises(JobFailed, match="value is struct<id:bigint> there, and binary here"):
        ingest.run(spark, settings(cluster, tmp_path, topics=topic, value_format="raw"))
    with pytest.raises(JobFailed, match=r"value\.id is bigint there, and string here"):
        ingest.run(spark, settings(cluster, tmp_path, topics=topic, schema="id STRING"))
    ingest.run(spark, settings(cluster, tmp_path, topics=topic))
    found = DeltaTables(spark, str(tmp_path)).rows(f"tables/{topic}")
    assert found is not None
    assert found.count() == 2


def test_an_output_that_cannot_be_written_is_named_before_spark_starts(
    cluster: Cluster, topic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    (tmp_path / "file").touch()
    where = ["--bootstrap-server", cluster.bootstrap, "--out", str(tmp_path / "file" / "lake")]
    assert ingest.main([*where, "--topics", topic]) == 1
    said = capsys.readouterr().err
    assert said == f"tidelog: --out {tmp_path}/file/lake cannot be written: Not a directory.\n"
