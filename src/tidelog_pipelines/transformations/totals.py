"""Windowed totals of a stream of JSON objects, and the records of the result topic.

Each record contains the query id, the epoch (the number of the batch) and the window. From these, a
reader can distinguish a newer total from an older one. The records are written in transactions; a
reader that does not use isolation.level=read_committed can also recognise the records of a retry.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DoubleType, StringType, StructField, StructType
from pyspark.sql.window import Window

from tidelog_pipelines.transformations.event_fields import event_fields

RESULT = (
    "query_id STRING, epoch BIGINT, window_start TIMESTAMP, window_end TIMESTAMP, "
    "name STRING, count BIGINT, total DOUBLE"
)
TOTAL_KEY = ("query_id", "window_start", "window_end", "name")
"""The columns that identify a total. A newer value of the same total has a later epoch."""


def events_or_reasons(records: DataFrame, name: str, amount: str, time: str = "") -> DataFrame:
    """The records with name, amount, event_time and reason. Only a bad record has a reason."""
    added = {"name": StringType(), "amount": DoubleType(), "time": StringType()}
    columns = [StructField(one, kind) for one, kind in {**added, "reason": StringType()}.items()]
    schema = StructType([*records.schema.fields, *columns])
    found = records.mapInArrow(event_fields(name, amount, time), schema)
    when = _event_time(f.col("time")) if time else f.col("timestamp")
    found = found.withColumn("event_time", when).drop("time")
    no_time = f.when(f.col("event_time").isNull(), f.lit(f"the field {time} is not a time"))
    return found.withColumn("reason", f.coalesce("reason", no_time))


def events(examined: DataFrame) -> DataFrame:
    """name, amount and event_time of each record without a reason."""
    return examined.where(f.col("reason").isNull()).select("name", "amount", "event_time")


def not_events(examined: DataFrame) -> DataFrame:
    """The bad records, unchanged, with the reason."""
    bad = examined.where(f.col("reason").isNotNull()).drop("name", "amount", "event_time")
    return bad.withColumn("date", f.to_date("timestamp"))


def _event_time(text: Column) -> Column:
    """Parse the text of a time, or of a number of milliseconds since 1970."""
    return f.coalesce(f.timestamp_millis(text.try_cast("bigint")), text.try_cast("timestamp"))


def totals(happened: DataFrame, window: str, watermark: str) -> DataFrame:
    """Count and sum per window and name. Records that arrive after the watermark are left out."""
    return (
        happened.withWatermark("event_time", watermark)
        .groupBy(f.window("event_time", window), "name")
        .agg(f.count("*").alias("count"), f.sum("amount").alias("total"))
        .select(
            f.col("window.start").alias("window_start"),
            f.col("window.end").alias("window_end"),
            "name",
            "count",
            "total",
        )
    )


def result_records(found: DataFrame, query_id: str, epoch: int) -> DataFrame:
    """Totals as records for a topic. All totals of one name share a key, so they stay in order."""
    stamped = found.select(
        f.lit(query_id).alias("query_id"),
        f.lit(epoch).cast("bigint").alias("epoch"),
        *found.columns,
    )
    value = f.to_json(f.struct(*stamped.columns))
    return stamped.select(f.col("name").alias("key"), value.alias("value"))


def results(records: DataFrame) -> DataFrame:
    """The totals in a result topic as they were written, including retries."""
    value = f.from_json(f.col("value").cast("string"), RESULT)
    return records.select(value.alias("result")).select("result.*").where("query_id IS NOT NULL")


def without_retries(found: DataFrame) -> DataFrame:
    """Each total of each epoch once, however often its batch was run."""
    return found.dropDuplicates([*TOTAL_KEY, "epoch"])


def newest(found: DataFrame) -> DataFrame:
    """Only the last total of each window and name."""
    latest = Window.partitionBy(*TOTAL_KEY).orderBy(f.desc("epoch"))
    ranked = without_retries(found).withColumn("rank", f.row_number().over(latest))
    return ranked.where("rank = 1").drop("rank")
