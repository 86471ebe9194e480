"""`--format iceberg`: every job writes each record once, and reports wrong use in a sentence."""

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructType
from tests.pipelines import records
from tests.pipelines.single_ingest import lose_the_last_commit, rows, settings

from tidelog.testing import Cluster
from tidelog_pipelines import jars
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest, maintain, query, replay
from tidelog_pipelines.jobs.topic_tables import run
from tidelog_pipelines.sinks.catalogs import require_schema
from tidelog_pipelines.sinks.table_formats import iceberg_tables
from tidelog_pipelines.sinks.table_formats.iceberg_tables import IcebergTables
from tidelog_pipelines.sinks.tables import Batch, Layout
from tidelog_pipelines.transformations.fitting import completed, ddl, new_fields

KIND = "iceberg"
ROW = "partition INT, offset BIGINT, key STRING, timestamp TIMESTAMP, date DATE"
DEEP = '{"id":9,"deep":{"x":{"y":{}}}}'


def test_json_grows_and_is_never_doubled(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    chosen = settings(cluster, tmp_path, topics=topic, group="", format="iceberg", max_depth=3)
    records.produce(cluster.bootstrap, topic, ['{"id":1,"l":[{"a":1}]}', DEEP, None])
    ingest.run(spark, chosen)
    odd = '{"id":2.5,"l":[{"b-c":true}],"more":{"x":"y"}}'
    records.produce(cluster.bootstrap, topic, [odd, '{"id":3}'])
    good = [
        (0, Row(id=1, l=[Row(a=1, **{"b-c": None})], more=None), None),
        (2, None, None),
        (3, Row(id=None, l=[Row(a=None, **{"b-c": True})], more=Row(x="y")), '{"id":2.5}'),
        (4, Row(id=3, l=None, more=None), None),
    ]
    losses: tuple[Callable[[], object], ...] = (
        lambda: None,
        lambda: lose_the_last_commit(tmp_path),
        lambda: shutil.rmtree(tmp_path / "checkpoint"),
    )
    for loss in losses:
        loss()
        ingest.run(spark, chosen)
        found = rows(spark, tmp_path, f"tables/{topic}", "offset", "value", "_rescued", kind=KIND)
        assert found == good
        bad = rows(spark, tmp_path, "quarantine", "topic", "offset", kind=KIND)
        assert bad == [(topic, 1)]

    where = {"out": str(tmp_path), "format": KIND}
    replay.run(spark, replay.ReplaySettings(**where))
    maintain.run(spark, maintain.MaintainSettings(**where, retain=36_500))
    capsys.readouterr()
    sql = f"SELECT count(*), count(DISTINCT offset), sum(value.id) FROM `{topic}`"
    query.run(spark, query.QuerySettings(**where, sql=sql))
    assert capsys.readouterr().out == "5\t5\t13\n"
    assert rows(spark, tmp_path, "quarantine", "topic", "offset", kind=KIND) == []

    # With the same checkpoint, a table of another format would lack the records read so far.
    with pytest.raises(JobFailed, match="its tables are of another --format, or were removed"):
        ingest.run(spark, settings(cluster, tmp_path, topics=topic, group=""))


def test_table_topics_are_kept_in_this_format(
    spark: SparkSession, cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    chosen = run.TablesSettings(
        bootstrap_server=cluster.bootstrap,
        out=str(tmp_path),
        topics=topic,
        once=True,
        group="",
        format=KIND,
    )
    for number in (1, 2):
        records.produce(cluster.bootstrap, topic, [f'{{"id":{number}}}', "{"])
        run.run(spark, chosen)
    assert rows(spark, tmp_path, f"tables/{topic}", "value.id", kind=KIND) == [(1,), (2,)]
    state = json.loads((tmp_path / "_tables.json").read_text())["tables"][topic]
    assert (state["rows"], state["quarantined"], state["error"]) == (2, 2, "")


def test_a_directory_has_tables_of_both_formats(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each topic has its format; all jobs find it; a changed setting is refused for that topic."""
    cold, warm = f"{topic}-cold", f"{topic}-warm"
    for name in (cold, warm):
        records.create(cluster.bootstrap, name, partitions=1, copies=1)
        records.produce(cluster.bootstrap, name, ['{"id":1}', "{"])
    file = tmp_path / "tables.toml"
    file.write_text(f'["{cold}"]\nformat = "iceberg"\n["{warm}"]\n')
    out = tmp_path / "lake"
    chosen = run.TablesSettings(
        bootstrap_server=cluster.bootstrap,
        out=str(out),
        tables_file=str(file),
        once=True,
        group="",
        compact_every=1,
    )
    run.run(spark, chosen)
    assert rows(spark, out, f"tables/{cold}", "value.id", kind=KIND) == [(1,)]
    assert rows(spark, out, f"tables/{warm}", "value.id") == [(1,)]
    assert rows(spark, out, "quarantine", "topic", "offset") == [(cold, 1), (warm, 1)]

    # The setting changes, and the topic waits for it to change back. The other topic continues.
    file.write_text(f'["{cold}"]\n["{warm}"]\n')
    for name in (cold, warm):
        records.produce(cluster.bootstrap, name, ['{"id":2}'])
    with pytest.raises(JobFailed, match=f"1 of 2 tables have failed: {cold}"):
        run.run(spark, chosen)
    state = json.loads((out / "_tables.json").read_text())["tables"]
    assert "is of format iceberg, and its topic now asks for delta" in state[cold]["error"]
    assert (state[cold]["rows"], state[warm]["rows"]) == (1, 2)
    file.write_text(f'["{cold}"]\nformat = "iceberg"\n["{warm}"]\n')
    run.run(spark, chosen)

    where = {"out": str(out)}
    replay.run(spark, replay.ReplaySettings(**where, value_format="json", max_depth=3))
    maintain.run(spark, maintain.MaintainSettings(**where))
    said = capsys.readouterr().out
    assert f"{cold}: 0 replayed, 1 still in quarantine" in said
    assert f"{warm}: 0 rows expired" in said
    both = f"SELECT sum(value.id) FROM (SELECT * FROM `{cold}` UNION ALL SELECT * FROM `{warm}`)"
    query.run(spark, query.QuerySettings(**where, sql=both))
    assert capsys.readouterr().out == "6\n"


def test_rows_expire_files_are_merged_and_old_ones_removed(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables = IcebergTables(spark, str(tmp_path))
    tables.require()
    now, past = datetime.now(UTC), datetime(2019, 1, 1, tzinfo=UTC)
    for number, time in enumerate((now, now, past, past)):
        found = tables.frame([(0, number, "k", time, time.date())], ROW)
        by = Layout(("partition",)) if number == 0 else Layout()
        assert tables.append("tables/a.b", found.coalesce(1), Batch("q", number), layout=by) == 1
    files = list((tmp_path / "tables" / "a.b" / "data").rglob("*.parquet"))
    assert len(files) == 4
    assert (tables.expire("tables/a.b", 300), tables.expire("tables/a.b", 300)) == (2, 0)
    assert tables.expire_older("tables/a.b", 86_400_000) == 0
    assert tables.optimize("tables/a.b") == (2, 1)
    assert tables.vacuum("tables/a.b", 168) == 0
    assert tables.vacuum("tables/a.b", 0) >= 4
    assert not any(file.exists() for file in files)
    left = tables.existing("tables/a.b")
    assert sorted(row["offset"] for row in left.collect()) == [0, 1]
    # The columns are replaced, but the table keeps its partitioning.
    tables.change_columns("tables/a.b", StructType.fromDDL("partition INT, key BINARY"))
    assert tables.existing("tables/a.b").dtypes == [("partition", "int"), ("key", "binary")]
    assert "partition" in spark.read.table(f"{tables.sql('tables/a.b')}.partitions").columns


def test_a_table_of_a_catalog_is_written_and_kept_up(spark: SparkSession, tmp_path: Path) -> None:
    key = "spark.sql.catalog.shop"
    for name, value in {"": iceberg_tables.CATALOG_CLASS, ".type": "hadoop"}.items():
        spark.conf.set(f"{key}{name}", value)
    spark.conf.set(f"{key}.warehouse", str(tmp_path / "elsewhere"))
    with pytest.raises(JobFailed, match=r"there is no schema shop\.sales"):
        require_schema(spark, "shop.sales.orders", is_iceberg=True)
    spark.sql("CREATE NAMESPACE shop.sales")
    require_schema(spark, "shop.sales.orders", is_iceberg=True)
    tables, name = IcebergTables(spark, str(tmp_path / "out")), "catalog:shop.sales.orders"
    for number in (0, 1, 1):
        found = tables.frame([("t", 0, number)], "topic STRING, partition INT, offset BIGINT")
        tables.append(name, found.coalesce(1), Batch("q", number), layout=Layout())
    assert tables.optimize(name) == (2, 1)
    assert tables.vacuum(name, 0) == 2
    assert spark.sql("SELECT count(*) FROM shop.sales.orders").collect() == [(2,)]
    assert list((tmp_path / "elsewhere" / "sales" / "orders" / "data").glob("*.parquet"))


def test_rows_are_fitted_to_a_table_and_it_to_them(spark: SparkSession) -> None:
    table = StructType.fromDDL("a INT, s STRUCT<x: INT, y: INT>, m MAP<STRING, STRUCT<p: INT>>")
    kind = "s STRUCT<x: INT, `z-z`: STRING>, m MAP<STRING, STRUCT<q: INT>>, n ARRAY<STRUCT<r: INT>>"
    given = spark.createDataFrame([((1, "z"), {"k": (2,)}, None), (None, None, [])], kind)
    new = [(path, ddl(kind)) for path, kind in new_fields(table, given.schema)]
    assert new == [
        (("s", "z-z"), "string"),
        (("m", "value", "q"), "int"),
        (("n",), "ARRAY<STRUCT<`r`: int>>"),
    ]
    found = completed(given, table).select("a", "s", "m", "n").collect()
    assert found == [
        (None, Row(x=1, **{"z-z": "z"}, y=None), {"k": Row(q=2, p=None)}, None),
        (None, None, None, []),
    ]


def test_a_session_without_iceberg_and_a_catalog_of_another_kind_are_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(JobFailed, match=r"--table s\.t needs a catalog of Iceberg's"):
        require_schema(spark, "s.t", is_iceberg=True)
    monkeypatch.setattr(iceberg_tables, "CATALOG_CLASS", "org.example.Missing")
    with pytest.raises(JobFailed, match="this Spark session has no Iceberg: start it with the jar"):
        IcebergTables(spark, str(tmp_path)).require()
    with pytest.raises(JobFailed, match=r"^PySpark 4\.1\.0 is installed, and --format iceberg"):
        jars.iceberg_coordinates("4.1.0")
    with pytest.raises(ValueError, match="--zorder and --cluster-by need --format delta"):
        maintain.MaintainSettings(out="o", format="iceberg", zorder="key")
