"""Reads ledgers of acknowledged records, which are JSON lines or Parquet with the same columns.

A path may be a file, a directory or a pattern. If a producer was killed while it wrote a line, the
line is incomplete and is left out. The record of this line was acknowledged, but the line does not
identify the record.
"""

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.sources.places import existing

LINE = """
    topic STRING, partition INT, offset BIGINT, key STRING, checksum STRING, acked_at BIGINT,
    torn STRING
"""
COLUMNS = ("topic", "partition", "offset", "key", "checksum", "acked_at")


def acknowledged(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """The acknowledged records: topic, partition, offset (may be null), key, checksum, acked_at."""
    places = [existing(path) for path in paths]
    parquet = [path for path in places if _is_parquet(path)]
    lines = [path for path in places if path not in parquet]
    found = [_lines(spark, lines)] if lines else []
    found += [_from_parquet(spark, parquet)] if parquet else []
    together = found[0]
    for more in found[1:]:
        together = together.unionByName(more)
    return together


def _is_parquet(path: str) -> bool:
    place = Path(path)
    return place.suffix == ".parquet" or (place.is_dir() and any(place.glob("*.parquet")))


def _lines(spark: SparkSession, paths: list[str]) -> DataFrame:
    reader = spark.read.schema(LINE).option("columnNameOfCorruptRecord", "torn")
    return (
        reader.json(paths)
        .where("torn IS NULL AND checksum IS NOT NULL")
        .select(
            "topic",
            "partition",
            "offset",
            f.unbase64("key").alias("key"),
            "checksum",
            f.timestamp_millis("acked_at").alias("acked_at"),
        )
    )


def _from_parquet(spark: SparkSession, paths: list[str]) -> DataFrame:
    found = spark.read.parquet(*paths)
    kinds = dict(found.dtypes)
    if missing := [column for column in COLUMNS if column not in kinds]:
        raise JobFailed(
            f"{', '.join(paths)} is not a ledger: it has no column {', '.join(missing)}. A ledger "
            f"has {', '.join(COLUMNS)}."
        )
    acked_at = (
        f.timestamp_millis("acked_at") if kinds["acked_at"] == "bigint" else f.col("acked_at")
    )
    key = f.unbase64("key") if kinds["key"] == "string" else f.col("key")
    return found.select(
        "topic",
        f.col("partition").cast("int"),
        f.col("offset").cast("bigint"),
        key.alias("key"),
        "checksum",
        acked_at.alias("acked_at"),
    )
