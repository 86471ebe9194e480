"""The replication events of a cluster as rows, with a column for each field of every event type."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

TOPIC = "__tidelog_replication_events"
VERSION = 1

EVENT = """
    v INT, event STRING, ts BIGINT, node INT, topic STRING, partition INT,
    leader INT, leader_before INT, leader_epoch INT, partition_epoch INT,
    isr ARRAY<INT>, isr_before ARRAY<INT>, elr ARRAY<INT>, replicas ARRAY<INT>, min_isr INT,
    left ARRAY<STRUCT<broker: INT, reason: STRING, end_offset: BIGINT, lag_ms: BIGINT>>,
    joined ARRAY<INT>, clean BOOLEAN, reason STRING, broker INT, broker_epoch BIGINT,
    silent_ms BIGINT,
    from_offset BIGINT, to_offset BIGINT, high_watermark BIGINT, log_start_offset BIGINT,
    end_offset BIGINT, leader_end_offset BIGINT,
    followers ARRAY<STRUCT<broker: INT, end_offset: BIGINT, lag: BIGINT, lag_ms: BIGINT,
        in_sync: BOOLEAN, last_fetch_ms: BIGINT>>
"""

PARTITION = ("topic", "partition")


def parsed(records: DataFrame) -> DataFrame:
    """The events in the values of these records. Other records are left out.

    `at` is the event's time. If a retry wrote an event twice, both copies are returned.
    """
    text = f.col("value").cast("string")
    return (
        records.select(f.from_json(text, EVENT).alias("e"))
        .select("e.*")
        .where(f.col("event").isNotNull() & (f.col("v") == VERSION))
        .withColumn("at", f.timestamp_millis("ts"))
    )
