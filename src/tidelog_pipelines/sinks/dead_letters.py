"""Sends quarantined records to a dead-letter topic, each at least once.

Each record keeps its key, value and headers. Additional headers name its origin and the reason.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.kafka import connector_options

PREFIX = "tidelog."
LARGEST_BYTES = 900_000
"""Larger records are sent without content. By default, brokers refuse more than a megabyte."""


def send(bad: DataFrame, settings: KafkaSettings, topic: str) -> None:
    """Write the records. If a batch is run again after a crash, its records are written again."""
    writer = letters(bad).write.format("kafka").options(**connector_options(settings))
    writer.options(topic=topic, includeHeaders="true").save()


def letters(bad: DataFrame) -> DataFrame:
    """Quarantined records as records of the dead-letter topic."""
    none = f.array().cast("array<struct<key:string,value:binary>>")
    given = f.coalesce("headers", none)
    size = f.coalesce(f.octet_length("key"), f.lit(0)) + f.coalesce(
        f.octet_length("value"), f.lit(0)
    )
    of_headers = f.aggregate(
        given,
        f.lit(0),
        lambda total, one: (
            total + f.octet_length(one["key"]) + f.coalesce(f.octet_length(one["value"]), f.lit(0))
        ),
    )
    fits = size + of_headers <= LARGEST_BYTES
    origin = [_header(name, f.col(name)) for name in ("topic", "partition", "offset", "reason")]
    left_out = f.when(fits, none).otherwise(f.array(_header("content", f.lit("left out"))))
    return bad.select(
        f.when(fits, f.col("key")).alias("key"),
        f.when(fits, f.col("value")).alias("value"),
        f.concat(f.when(fits, given).otherwise(none), f.array(*origin), left_out).alias("headers"),
    )


def _header(name: str, value: Column) -> Column:
    return f.struct(
        f.lit(PREFIX + name).alias("key"), value.cast("string").cast("binary").alias("value")
    )
