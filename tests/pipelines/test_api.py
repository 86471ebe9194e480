"""The Python API: ingest, decode, audit, health and segments in an existing session."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext, StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType
from tests.pipelines import records
from tests.pipelines.event_stories import a_bad_day
from tests.pipelines.segment_writing import NOW, write_segment

from tidelog.client.ledger import Acknowledged, Ledger
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.records import Record, build_batch
from tidelog.testing import Cluster
from tidelog_pipelines import api
from tidelog_pipelines.jobs.health import HealthSettings
from tidelog_pipelines.sources.event_logs import recorded_events

BAD = "quarantine"
ZONE = "spark.sql.session.timeZone"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
KAFKA = (
    "topic STRING, partition BIGINT, offset BIGINT, timestamp TIMESTAMP, key STRING, value STRING"
)
VALUES = ['{"id":1,"item":"tea"}', '{"id":2,"price":2.5}', "{", '{"id":"x"}']


def frame(spark: SparkSession, *values: str, schema: str = KAFKA) -> DataFrame:
    rows = [("t", 0, offset, NOON, "k", value) for offset, value in enumerate(values)]
    return spark.createDataFrame(rows, schema)


def test_an_active_session_keeps_its_settings(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels: list[str] = []
    monkeypatch.setattr(SparkContext, "setLogLevel", lambda context, level: levels.append(level))
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    spark.conf.set(ZONE, "Europe/Paris")
    # A streaming query uses a copy of the session, and PySpark then returns the copy as the active
    # session.
    spark.newSession().createDataFrame([(1,)], "n INT")
    try:
        found = api.session(conf={"mine": "1"})
        assert (found, levels) == (spark, [])
        changed = ("spark.sql.shuffle.partitions", ZONE, "mine")
        assert [spark.conf.get(key) for key in changed] == ["3", "UTC", "1"]
        api.session(log_level="ERROR")
        assert levels == ["ERROR"]
        with pytest.raises(api.JobFailed, match=r"already active, and master and driver_memory "):
            api.session(master="local[1]", driver_memory="4g", conf={"mine": "2"})
        with pytest.raises(api.JobFailed, match=r"Spark reports: .*spark\.executor\.memory"):
            api.session(conf={"spark.executor.memory": "4g"})
        assert spark.conf.get("mine") == "1"
    finally:
        spark.conf.unset("mine")
        spark.conf.set("spark.sql.shuffle.partitions", "2")
        spark.conf.set(ZONE, "UTC")


def test_a_topic_becomes_a_table_now_and_as_records_arrive(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    records.produce(cluster.bootstrap, topic, VALUES)
    options: dict[str, Any] = {
        "bootstrap_server": cluster.bootstrap,
        "topics": [topic],
        "out": tmp_path / "lake",
        "compact_every": 0,
    }

    found = api.ingest(spark, **options)

    assert found._replace(seconds=0) == api.Ingested(
        batches=1,
        records=4,
        rows=3,
        quarantined={"the value is not JSON": 1},
        seconds=0,
        offsets={topic: {0: 4}},
    )
    of_kafka = {"kafka.bootstrap.servers": cluster.bootstrap, "subscribe": topic}
    decoded = api.decode(
        spark.read.format("kafka").options(**of_kafka, includeHeaders="true").load()
    )
    tables = spark.read.format("delta")
    for one, path in ((decoded.rows.drop("topic"), f"tables/{topic}"), (decoded.quarantine, BAD)):
        table = tables.load(f"{tmp_path}/lake/{path}")
        assert (one.columns, one.orderBy("offset").collect()) == (
            table.columns,
            table.orderBy("offset").collect(),
        )

    stream = spark.readStream.format("kafka").options(**of_kafka, startingOffsets="earliest").load()
    with pytest.raises(
        api.JobFailed, match=r"known before it starts: give a schema and no schema_"
    ):
        api.decode(stream)
    rows = api.decode(stream, schema="id BIGINT").rows
    writer = rows.writeStream.format("memory").queryName("of_a_stream")
    writer.trigger(availableNow=True).start().awaitTermination()
    streamed = spark.table("of_a_stream").orderBy("offset").select("topic", "value.id", "_rescued")
    assert [tuple(row) for row in streamed.collect()] == [
        (topic, 1, '{"item":"tea"}'),
        (topic, 2, '{"price":2.5}'),
        (topic, None, '{"id":"x"}'),
    ]

    lines: list[str] = []
    with api.start_ingest(spark, **options, report=lines.append) as running:
        records.produce(cluster.bootstrap, topic, ['{"id":5}', '{"id":6}'])
        running.query.processAllAvailable()
        with pytest.raises(api.JobFailed, match=r"another job .* writes to"):
            api.ingest(spark, **options)
        beside = api.ingest(spark, **options | {"out": tmp_path / "beside", "group": ""})
        assert beside.rows == 5
        assert (running.is_active, running.wait(0)) == (True, False)
        later = running.stop()
    assert (later.rows, later.records, later.offsets) == (2, 2, {topic: {0: 6}})
    assert running.wait()
    assert lines[-1].startswith("tidelog: interrupted")
    records.produce(cluster.bootstrap, topic, ['{"id":7}'])
    with pytest.raises(api.JobFailed, match=r"value\.id is bigint there, and string here"):
        api.ingest(spark, **options, schema="id STRING")
    assert capsys.readouterr() == ("", "")


def test_what_cannot_start_is_refused_in_one_sentence(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"bootstrap_server": cluster.bootstrap, "out": tmp_path}
    with pytest.raises(api.JobFailed, match=r"^topic nobody-wrote does not exist at "):
        api.ingest(spark, **options, topics="nobody-wrote")
    (tmp_path / "a-file").touch()
    with pytest.raises(api.JobFailed, match=r"^out .*a-file cannot be written: File exists"):
        api.start_ingest(spark, **options | {"out": tmp_path / "a-file"}, pattern="nothing-.*")
    with pytest.raises(api.JobFailed, match=r"ledger.jsonl does not exist\.$"):
        api.audit(spark, ledger=tmp_path / "ledger.jsonl")
    with pytest.raises(api.JobFailed, match=r"^there is no option 'follow'; there are "):
        api.health(spark, follow=True)
    spark.conf.set(ZONE, "Europe/Paris")
    try:
        with pytest.raises(api.JobFailed, match="the session's time zone is Europe/Paris, and"):
            api.health(spark)
    finally:
        spark.conf.set(ZONE, "UTC")


def test_any_dataframe_with_the_columns_of_kafka_is_decoded(spark: SparkSession) -> None:
    found = api.decode(frame(spark, *VALUES))
    assert [(row["value"], row["_rescued"]) for row in found.rows.orderBy("offset").collect()] == [
        (Row(id=1, item="tea", price=None), None),
        (Row(id=2, item=None, price=2.5), None),
        (Row(id=None, item=None, price=None), '{"id":"x"}'),
    ]
    assert found.rows.columns[:3] == ["topic", "partition", "offset"]
    (bad,) = found.quarantine.collect()
    assert (bad["offset"], bytes(bad["value"]), bad["reason"]) == (2, b"{", "the value is not JSON")
    schema = StructType().add("some id", "long")
    (typed,) = api.decode(frame(spark, '{"some id":1}'), schema=schema).rows.collect()
    assert typed["value"] == Row(**{"some id": 1})
    few = api.decode(frame(spark, "12345"), value_format="string", key_format="raw").rows
    assert [(bytes(row["key"]), row["value"]) for row in few.collect()] == [(b"k", "12345")]
    (long,) = api.decode(frame(spark, '{"id":1}'), max_value_bytes=5).quarantine.collect()
    assert long["reason"] == "the value has 8 bytes, more than 5"


def test_a_dataframe_of_other_columns_is_refused(spark: SparkSession) -> None:
    whole = frame(spark, "{}")
    with pytest.raises(api.JobFailed, match=r"has no column timestamp, key; decode needs topic, "):
        api.decode(whole.drop("timestamp", "key"))
    with pytest.raises(api.JobFailed, match="the column timestamp is of type bigint; decode needs"):
        api.decode(whole.withColumn("timestamp", f.unix_millis("timestamp")))
    with pytest.raises(api.JobFailed, match="the column headers is of type int; decode needs"):
        api.decode(whole.withColumn("headers", f.lit(1)))


def test_segments_are_read_decoded_and_audited(spark: SparkSession, tmp_path: Path) -> None:
    data, ledger = tmp_path / "1", tmp_path / "ledger.jsonl"
    written = [Record(None, b'{"id":%d}' % number, NOW, offset=number) for number in range(3)]
    write_segment(data, "orders", [build_batch(written, 0)])
    write_segment(data, "refunds", [build_batch(written[:1], 0)])
    (data / "meta.properties").write_text("version=1\nnode.id=7\n")
    with Ledger(ledger) as acknowledged:
        for offset in range(4):
            value = b'{"id":%d}' % offset
            acknowledged.enter(TopicPartition("orders", 0), [Acknowledged(offset, None, value)])
    api.register(spark)

    read = spark.read.format("segments").load(str(data))
    assert {tuple(row) for row in read.groupBy("replica", "topic").count().collect()} == {
        (7, "orders", 3),
        (7, "refunds", 1),
    }
    orders = spark.read.format("segments").option("topic", "orders").load(str(data))
    times = orders.withColumn("timestamp", f.timestamp_millis("timestamp_ms"))
    ids = api.decode(times.where("error IS NULL"), schema="id INT").rows.select("value.id")
    assert [row["id"] for row in ids.orderBy("id").collect()] == [0, 1, 2]
    reader = spark.read.format("segments")
    with pytest.raises(PySparkException, match="give either the option replicas or a path"):
        reader.option("topic", "orders").load().collect()
    with pytest.raises(PySparkException, match="the option replicas is JSON such as"):
        reader.option("topic", "orders").option("replicas", "1=/data").load().collect()

    lines: list[str] = []
    found = api.audit(spark, ledger=ledger, replica={7: data}, events="none", report=lines.append)
    assert found.verdict == api.Verdict(acknowledged=4, readable=3, lost=1)
    assert [row["offset"] for row in found.tables["lost"].collect()] == [3]
    assert found.tables["replicas"].isEmpty()
    assert "the ledger is read" in lines[0]

    with Ledger(tmp_path / "clean.jsonl") as acknowledged:
        acknowledged.enter(TopicPartition("refunds", 0), [Acknowledged(0, None, b'{"id":0}')])
    clean = api.audit(
        spark, ledger=tmp_path / "clean.jsonl", replica={7: data}, events="none", topic="refunds"
    )
    assert clean.verdict == api.Verdict(acknowledged=1, readable=1)
    for name, table in found.tables.items():
        assert clean.tables[name].isEmpty(), name
        assert clean.tables[name].dtypes == table.dtypes, name
    assert found.tables["replicas"].columns == [
        *("topic", "partition", "replica", "kind", "records", "first_offset", "last_offset")
    ]


def test_health_has_a_table_for_each_question(spark: SparkSession, tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("\n".join(a_bad_day(partitions=4, every=600)) + "\n")
    tables = api.health(spark, events=events)
    assert {(row["topic"], row["broker"]) for row in tables.flapping.collect()} == {("orders", 3)}
    events.write_text("")  # the second call must not use cached events of the first
    with pytest.raises(api.JobFailed, match="no replication event was found"):
        api.health(spark, events=events)
    again = recorded_events(spark, HealthSettings(), str(events))
    assert again.storageLevel == StorageLevel.NONE, "nothing stays cached"
