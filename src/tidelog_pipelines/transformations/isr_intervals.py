"""The intervals in which a partition's state stays the same: its leader, replicas and ISR.

An event that changes a partition's state begins an interval. The next change ends the interval.
Events that a deposed leader records after the election of its successor are ignored.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from tidelog_pipelines.transformations.events import PARTITION

STATE = ("leader", "isr", "replicas", "min_isr")
INTERVAL = """
    topic STRING, partition INT, start_ms BIGINT, end_ms BIGINT, leader INT, leader_epoch INT,
    isr ARRAY<INT>, replicas ARRAY<INT>, min_isr INT
"""


def states(events: DataFrame) -> DataFrame:
    """The events that contain a partition's state. Replicas and ISR are in ascending order."""
    has_state = "isr IS NOT NULL AND replicas IS NOT NULL AND topic IS NOT NULL"
    return events.where(has_state).select(
        *PARTITION,
        "ts",
        "leader",
        "leader_epoch",
        f.array_sort("isr").alias("isr"),
        f.array_sort("replicas").alias("replicas"),
        f.coalesce("min_isr", f.lit(1)).alias("min_isr"),
    )


def intervals(events: DataFrame) -> DataFrame:
    """Every interval. A partition's last interval ends with the last event of the cluster."""
    in_order = Window.partitionBy(*PARTITION).orderBy("ts", "leader_epoch")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, 0)
    current = states(events).withColumn("newest", f.max("leader_epoch").over(so_far))
    state = f.struct(*STATE)
    changes = (
        current.where("leader_epoch >= newest")
        .withColumn("state", state)
        .withColumn("before", f.lag("state").over(in_order))
        .where(f.col("before").isNull() | (f.col("before") != f.col("state")))
    )
    last = events.agg(f.max("ts").alias("last_ms"))
    ended = changes.withColumn("next_ms", f.lead("ts").over(in_order)).crossJoin(f.broadcast(last))
    return ended.select(
        *PARTITION,
        f.col("ts").alias("start_ms"),
        f.coalesce("next_ms", "last_ms").alias("end_ms"),
        "leader",
        "leader_epoch",
        "isr",
        "replicas",
        "min_isr",
    )


def judged(intervals: DataFrame) -> DataFrame:
    """The intervals with their length, and whether the partition is available and writable."""
    return intervals.select(
        "*",
        ((f.col("end_ms") - f.col("start_ms")) / 1000).alias("seconds"),
        f.size("isr").alias("in_sync"),
        (f.size("isr") < f.size("replicas")).alias("is_under_replicated"),
        (f.col("leader") >= 0).alias("is_available"),
        _is_writable().alias("is_writable"),
    )


def _is_writable() -> Column:
    return (f.col("leader") >= 0) & (f.size("isr") >= f.col("min_isr"))
