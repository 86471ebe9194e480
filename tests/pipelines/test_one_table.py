"""Several topics are written to one table, in --out or in a catalog, each record once."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipelines import records
from tests.pipelines.single_ingest import lose_the_last_commit, rows, settings

from tidelog.testing import Cluster
from tidelog_pipelines import api
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs import ingest, maintain, query, replay
from tidelog_pipelines.sinks.catalogs import require_lasting
from tidelog_pipelines.sinks.columns import TableMismatch
from tidelog_pipelines.sinks.destinations import destination
from tidelog_pipelines.sinks.identities import destinations
from tidelog_pipelines.sinks.table_formats.delta_tables import DeltaTables

DEEP = '{"id":9,"deep":{"x":{"y":1}}}'


@pytest.fixture
def topics(cluster: Cluster, topic: str) -> tuple[str, str]:
    """Two topics of one partition, whose records have equal offsets."""
    names = (f"{topic}-a", f"{topic}-b")
    for name in names:
        records.create(cluster.bootstrap, name, partitions=1, copies=1)
    return names


def layout(spark: SparkSession, table: str) -> tuple[list[str], list[str]]:
    detail = spark.sql(f"DESCRIBE DETAIL {table}")
    (found,) = detail.select("partitionColumns", "clusteringColumns").collect()
    return found[0], found[1]


def test_topics_share_a_table_that_is_clustered_once_it_has_the_columns(
    spark: SparkSession,
    cluster: Cluster,
    topic: str,
    topics: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = topics
    chosen = settings(
        cluster,
        tmp_path,
        pattern=f"{topic}-.*",
        table="all-of-them",
        cluster_by="topic,value.id",
        max_depth=2,
        group="",
    )
    path = f"delta.`{tmp_path}/tables/all-of-them`"
    records.produce(cluster.bootstrap, a, ['{"x":1}', DEEP])
    ingest.run(spark, chosen)
    assert layout(spark, path) == ([], []), "there is no value.id yet"
    records.produce(cluster.bootstrap, a, ['{"id":"odd"}'])
    records.produce(cluster.bootstrap, b, [DEEP, '{"id":1}', '{"id":2,"y":true}'])
    good = [
        (a, 0, 1, None, None),
        (a, 2, None, None, "odd"),
        (b, 1, None, None, "1"),
        (b, 2, None, True, "2"),
    ]

    def is_whole() -> bool:
        columns = ("topic", "offset", "value.x", "value.y", "value.id", "_rescued")
        found = rows(spark, tmp_path, "tables/all-of-them", *columns)
        ids = [row["id"] if row["_rescued"] is None else row["_rescued"] for row in found]
        # The first value of the field, in topic a, has decided its type for both topics.
        assert ids == [None, "odd", '{"id":1}', '{"id":2}']
        bad = rows(spark, tmp_path, "quarantine", "topic", "offset")
        return [tuple(row)[:4] for row in found] == [row[:4] for row in good] and bad == [
            (a, 1),
            (b, 0),
        ]

    for loss in (
        lambda: None,
        lambda: lose_the_last_commit(tmp_path),
        lambda: shutil.rmtree(tmp_path / "checkpoint"),
    ):
        loss()
        ingest.run(spark, chosen)
        assert is_whole()
    assert layout(spark, path) == ([], ["topic", "value.id"])

    # The other jobs find the table of each topic.
    replay.run(spark, replay.ReplaySettings(out=str(tmp_path), topics=b, max_depth=500))
    found = rows(spark, tmp_path, "tables/all-of-them", "topic", "offset")
    assert found == [(a, 0), (a, 2), (b, 0), (b, 1), (b, 2)]
    assert rows(spark, tmp_path, "quarantine", "topic", "offset") == [(a, 1)]
    capsys.readouterr()
    sql = "SELECT count(*), count(DISTINCT topic, offset) FROM `all-of-them`"
    query.run(spark, query.QuerySettings(out=str(tmp_path), sql=sql))
    maintain.run(spark, maintain.MaintainSettings(out=str(tmp_path), topics=a, cluster_by="offset"))
    assert capsys.readouterr().out == (
        "5\t5\ntables/all-of-them: 0 rows expired, 4 files compacted to 1, 0 old files removed\n"
    )
    assert layout(spark, path) == ([], ["offset"])

    # A topic cannot move to another table.
    with pytest.raises(TableMismatch, match="are in the table tables/all-of-them, not in tables/"):
        ingest.run(spark, settings(cluster, tmp_path, pattern=f"{topic}-.*", group=""))


@pytest.fixture
def schema(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """A schema in Spark's in-memory catalog."""
    spark.sql(f"CREATE SCHEMA sales LOCATION '{tmp_path}/sales'")
    yield "sales"
    spark.sql("DROP SCHEMA sales CASCADE")


def test_topics_share_a_table_of_a_catalog_whose_rows_change_by_key(
    spark: SparkSession,
    cluster: Cluster,
    topics: tuple[str, str],
    tmp_path: Path,
    schema: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    a, b = topics
    out = tmp_path / "out"

    def run(**more: Any) -> api.Ingested:
        return api.ingest(
            spark,
            bootstrap_server=cluster.bootstrap,
            out=str(out),
            table="sales.orders",
            topics=",".join(topics),
            mode="upsert",
            group="",
            **more,
        )

    for name in topics:
        records.produce(cluster.bootstrap, name, ['{"n":1}', "{bad"], key="k")
        records.produce(cluster.bootstrap, name, ['{"n":2}'], key="l")
    with pytest.raises(JobFailed, match="there is no schema nowhere"):
        ingest.run(spark, settings(cluster, out, topics=a, table="nowhere.t"))
    assert run(cluster_by="key").quarantined == {"the value is not JSON": 2}
    records.produce(cluster.bootstrap, b, [None, '{"n":3,"more":1}'], key="k")
    records.produce(cluster.bootstrap, a, [None], key="l")
    shutil.rmtree(out / "checkpoint")
    again = run()
    assert (again.records, again.rows) == (9, 3)
    found = spark.sql(
        "SELECT topic, key, offset, value.n, value.more FROM sales.orders ORDER BY topic, key"
    )
    assert found.collect() == [(a, "k", 0, 1, None), (b, "k", 4, 3, 1), (b, "l", 2, 2, None)]
    assert layout(spark, "sales.orders") == ([], ["key"])
    replay.run(spark, replay.ReplaySettings(out=str(out), dry_run=True))
    maintain.run(spark, maintain.MaintainSettings(out=str(out), topics=b))
    printed = capsys.readouterr().out
    assert f"{b}: 0 would pass, 1 would stay in quarantine" in printed
    assert "sales.orders: 0 rows expired, " in printed

    spark.sql("DROP TABLE sales.orders")
    with pytest.raises(JobFailed, match=r"the table sales\.orders, which does not exist here"):
        replay.run(spark, replay.ReplaySettings(out=str(out)))
    with pytest.raises(JobFailed, match="this Spark has only one in memory"):
        require_lasting(spark, "sales.orders")


def test_a_table_of_one_topic_is_not_shared_later(spark: SparkSession, tmp_path: Path) -> None:
    tables = DeltaTables(spark, str(tmp_path))
    assert destinations(tables) is None
    own = spark.createDataFrame([], "partition INT, offset BIGINT").schema
    shared = spark.createDataFrame([], "topic STRING, partition INT, offset BIGINT").schema
    destination("t").check(own)
    destination("t", "t").check(shared)
    with pytest.raises(TableMismatch, match="tables/t exists, and has no column topic"):
        destination("u", "t").check(own)
    with pytest.raises(TableMismatch, match="is not the one of topic t alone"):
        destination("t").check(shared)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--table", "a b"], "--table is a name of letters, digits, _ and -, or a name of a"),
        (["--table", "../x"], "--table is a name of letters"),
        (["--table", "a..b"], "--table is a name of letters"),
        (["--table", "s.t", "--format", "parquet"], "of a catalog needs --format delta or iceberg"),
        (["--cluster-by", "key", "--format", "parquet"], "--cluster-by needs --format delta"),
        (["--cluster-by", "key", "--format", "iceberg"], "--cluster-by needs --format delta"),
        (["--cluster-by", "key", "--partition-by", "date"], "exclude each other"),
        (["--cluster-by", "a,b,c,d,e"], "at most 4 different columns, not by a, b, c, d, e"),
    ],
)
def test_an_impossible_table_is_refused_with_a_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        ingest.parsed(["--out", "o", "--topics", "t", *arguments])
    assert complaint in capsys.readouterr().err
