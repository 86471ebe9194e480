"""The upkeep of one Delta table: expiry of rows, compaction, and removal of unused files."""

import time
from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import SparkSession
from pyspark.sql import functions as f


class Compaction(NamedTuple):
    """How many files a compaction has removed and added."""

    removed: int
    added: int


def expire(spark: SparkSession, path: str, days: int) -> int:
    """Delete rows whose date is more than `days` days ago. Rows without a date stay."""
    sql = f"DELETE FROM delta.`{path}` WHERE date < current_date() - INTERVAL {days} DAYS"
    (found,) = spark.sql(sql).collect()
    return int(found["num_affected_rows"])


def expire_older(spark: SparkSession, path: str, milliseconds: int) -> int:
    """Delete rows whose timestamp is older than this. Rows without a timestamp stay."""
    limit = f"timestamp_millis({max(0, time.time_ns() // 1_000_000 - milliseconds)})"
    # With a condition on the date, Delta can skip whole files without reading them.
    sql = f"DELETE FROM delta.`{path}` WHERE date <= date({limit}) AND timestamp < {limit}"
    (found,) = spark.sql(sql).collect()
    return int(found["num_affected_rows"])


def compact(spark: SparkSession, path: str, columns: Sequence[str]) -> Compaction:
    """Merge small files. With `columns`, also sort the rows of all files by these columns."""
    sorted_by = ", ".join(".".join(f"`{part}`" for part in name.split(".")) for name in columns)
    sql = f"OPTIMIZE delta.`{path}`" + (f" ZORDER BY ({sorted_by})" if columns else "")
    (found,) = spark.sql(sql).select("metrics.numFilesRemoved", "metrics.numFilesAdded").collect()
    return Compaction(int(found[0]), int(found[1]))


def vacuum(spark: SparkSession, path: str, hours: int) -> int:
    """Remove files that no table version of the last `hours` uses. -> how many were removed."""
    spark.conf.set("spark.databricks.delta.vacuum.logging.enabled", "true")
    spark.sql(f"VACUUM delta.`{path}` RETAIN {hours} HOURS").collect()
    history = spark.sql(f"DESCRIBE HISTORY delta.`{path}` LIMIT 1")
    removed = history.where("operation = 'VACUUM END'").select(
        f.col("operationMetrics")["numDeletedFiles"].cast("long")
    )
    return sum(row[0] or 0 for row in removed.collect())
