"""Among many valid records, only the records that once stopped a job go to quarantine.

The full run is `./test tests/pipelines/test_poison.py --poison-records 100000 --poison-each`: one
topic for each kind of bad record, with 100,000 records and one bad record in each of them. With
`--poison-kind NAME`, only this kind is run; `poison_kinds.py` has the names.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from tests.pipelines import garbled_batches, records
from tests.pipelines.poison_kinds import (
    KINDS,
    LONG_MAX,
    MEGABYTE,
    SCHEMAS,
    SETTINGS,
    Poison,
    good_value,
)

from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest, query
from tidelog_pipelines.sinks.table_formats.delta_tables import DeltaTables
from tidelog_pipelines.sinks.tables import Batch
from tidelog_pipelines.streams import Caller

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


def write_around(
    cluster: Cluster, topic: str, values: str, count: int, rare: Sequence[Poison]
) -> None:
    """Write `count` good records to a topic, with the rare ones among them."""
    create(cluster, topic)
    good = [Poison(good_value(values, number), "") for number in range(count)]
    for place, one in enumerate(rare):
        good.insert((place + 1) * count // (len(rare) + 1), one)
    limits = {"bootstrap.servers": cluster.bootstrap, "message.max.bytes": 8 * MEGABYTE}
    producer = Producer({**limits, **records.QUIET})
    for number, one in enumerate(good):
        if one.is_garbled:
            assert producer.flush(records.PATIENCE_SECONDS) == 0
            garbled_batches.write(cluster.bootstrap, topic, number % 2)
            continue
        while True:
            try:
                producer.produce(topic, one.value, partition=number % 2, timestamp=one.timestamp)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(records.PATIENCE_SECONDS) == 0


def groups(request: pytest.FixtureRequest) -> dict[str, list[Poison]]:
    """The bad records by topic: all kinds of a format together, or each kind by itself."""
    option = request.config.getoption
    chosen = option("--poison-kind") or (list(KINDS) if option("--poison-each") else [])
    if chosen:
        return {name: [KINDS[name]] for name in chosen}
    return {
        f"all-{values}": [one for one in KINDS.values() if one.format == values]
        for values in SETTINGS
    }


def test_f91_bad_records_do_not_keep_the_others_from_their_table(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
) -> None:
    count = request.config.getoption("--poison-records")
    for name, bad in groups(request).items():
        values = bad[0].format
        odd = [Poison(value, "") for value in ODD_BUT_GOOD] if name == "all-json" else []
        good, source = count - len(bad), f"{topic}-{name}"
        write_around(cluster, source, values, good, [*bad, *odd])
        out, started = tmp_path / name, time.monotonic()
        how = dict(SETTINGS[values])
        if values in SCHEMAS:
            (tmp_path / "schema").write_text(SCHEMAS[values])
            how["schema"] = str(tmp_path / "schema")
        ingest.run(spark, settings(cluster, out, topics=source, **how))
        tables = DeltaTables(spark, str(out))
        table, quarantine = tables.existing(f"tables/{source}"), tables.existing("quarantine")
        assert table.count() == good + len(odd)
        numbers = table.where("value.n IS NOT NULL").select("value.n").distinct().count()
        assert numbers == good
        found = sorted((bytes(row["value"] or b""), row["reason"]) for row in quarantine.collect())
        wanted = sorted((one.value, one.reason) for one in bad)
        assert [value for value, _ in found] == [value for value, _ in wanted]
        for (_, reason), (_, begin) in zip(found, wanted, strict=True):
            assert reason.startswith(begin), reason
        seconds = time.monotonic() - started
        print(f"{name}: {table.count():,} rows, {len(found)} in quarantine, {seconds:.0f} s")


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
