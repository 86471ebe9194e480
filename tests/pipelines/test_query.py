"""`query` makes views of the tables that its SQL needs."""

from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tidelog_pipelines.jobs.query import QuerySettings, answer, size_of
from tidelog_pipelines.sinks.table_formats.delta_tables import DeltaTables
from tidelog_pipelines.sinks.tables import Batch


def test_only_tables_that_the_sql_names_are_read_and_else_all(
    spark: SparkSession, tmp_path: Path
) -> None:
    tables, batch = DeltaTables(spark, str(tmp_path)), Batch("q", 0)
    topics = ("first-of-query", "second-of-query")
    names = tables.frame([(topic, "id") for topic in topics], "topic STRING, topic_id STRING")
    tables.append("topics", names.withColumn("date", f.current_date()), batch)
    for topic in topics:
        rows = spark.range(3).withColumn("date", f.current_date())
        tables.append(f"tables/{topic}", rows, batch)

    def asked(sql: str) -> list[tuple[object, ...]]:
        found = answer(spark, QuerySettings(out=str(tmp_path), sql=sql))
        return [tuple(row) for row in found.collect()]

    assert asked(f"SELECT count(*) FROM `{topics[0]}`") == [(3,)]
    assert spark.catalog.tableExists(f"`{topics[0]}`")
    assert not spark.catalog.tableExists(f"`{topics[1]}`")
    shown = {row[1] for row in asked("SHOW VIEWS")}
    assert shown >= set(topics)
    for topic in topics:
        spark.catalog.dropTempView(f"`{topic}`")


def test_the_size_of_local_tables_is_known(tmp_path: Path) -> None:
    (tmp_path / "tables" / "t").mkdir(parents=True)
    (tmp_path / "tables" / "t" / "1.parquet").write_bytes(b"12345")
    (tmp_path / "tables" / "t" / "other").write_bytes(b"1")
    assert size_of(str(tmp_path)) == 5
    assert size_of(str(tmp_path / "absent")) == 0
    assert size_of("s3a://bucket/lake") is None
