"""Changes rows of Delta tables by their keys. Each change is one commit and is safe to repeat.

Before a commit, Delta checks the commits that other writers have made in the meantime. If another
writer has changed the same rows, the commit fails. So no row is written twice.
"""

from collections.abc import Sequence
from uuid import uuid4

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from tidelog_pipelines.sinks.tables import RECORD
from tidelog_pipelines.sources.checkpoint import Span


def create(spark: SparkSession, path: str, like: StructType, by: Sequence[str]) -> None:
    """Create an empty table with these columns, partitioned by the columns `by`."""
    _overwrite(spark, path, like, by)


def change_columns(spark: SparkSession, path: str, like: StructType) -> None:
    """Give an empty table these columns. The partition columns stay the same."""
    (found,) = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").select("partitionColumns").collect()
    _overwrite(spark, path, like, found["partitionColumns"])


def _overwrite(spark: SparkSession, path: str, like: StructType, by: Sequence[str]) -> None:
    nothing = spark.createDataFrame([], like)
    writer = nothing.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.partitionBy(*by).save(path)


def insert_missing(spark: SparkSession, path: str, rows: DataFrame, spans: Sequence[Span]) -> int:
    """Add the rows whose record the table does not have. -> the number of added rows.

    All rows must lie within the spans.
    """
    is_record = f"{same(RECORD)} AND ({_within(spans)})"
    return int(merge(spark, path, rows, is_record, "WHEN NOT MATCHED THEN INSERT *")[3])


def merge(spark: SparkSession, path: str, rows: DataFrame, condition: str, clauses: str) -> Row:
    """Merge rows, `s`, into a table, `t`. -> the rows affected, updated, deleted and inserted.

    If there is nothing to insert, a merge that only inserts makes no commit.
    """
    view = f"tidelog_{uuid4().hex}"
    rows.createOrReplaceTempView(view)
    try:
        (found,) = spark.sql(
            f"MERGE WITH SCHEMA EVOLUTION INTO delta.`{path}` AS t USING {view} AS s "
            f"ON {condition} {clauses}"
        ).collect()
        return found
    finally:
        spark.catalog.dropTempView(view)


def same(columns: Sequence[str]) -> str:
    """The condition that two rows have the same values in these columns."""
    return " AND ".join(f"t.`{column}` = s.`{column}`" for column in columns)


def _within(spans: Sequence[Span]) -> str:
    """A condition with literals, so that Delta can skip files."""
    return " OR ".join(
        f"(t.`partition` = {partition} AND t.`offset` BETWEEN {start} AND {end - 1})"
        for partition, start, end in spans
    )
