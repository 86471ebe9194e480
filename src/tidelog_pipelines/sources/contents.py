"""What a topic holds: as its cluster hands it out, or as its replicas' disks have it.

Either way a row is (replica, topic, partition, offset, checksum, timestamp, damage). Through the
cluster, the replica is the one that leads, whichever that is: -1. `damage` is null for a record;
else the row is a batch on a disk that cannot be read, and it tells which.
"""

import json
import sys
from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.kafka import Subscription, Topics, table
from tidelog_pipelines.sources.segment_files import find_parts
from tidelog_pipelines.sources.segments import FORMAT, SegmentsSource, Stretches
from tidelog_pipelines.transformations.checksum import checksum
from tidelog_pipelines.transformations.range_digests import Stretch

THE_LEADER = -1
DAMAGE = (
    "STRUCT<offset: BIGINT, last_offset: BIGINT, segment: BIGINT, position: BIGINT, error: STRING>"
)


def readable(spark: SparkSession, settings: KafkaSettings, topics: Sequence[str]) -> DataFrame:
    """What consumers can read of these topics, all of which exist."""
    subscription = Subscription(tuple(topics))
    Topics(settings).require(subscription)
    return table(spark, settings, subscription).select(
        f.lit(THE_LEADER).alias("replica"),
        "topic",
        "partition",
        "offset",
        checksum(f.col("key"), f.col("value")).alias("checksum"),
        "timestamp",
        f.lit(None).cast(DAMAGE).alias("damage"),
    )


def segments(
    spark: SparkSession,
    topic: str,
    replicas: Mapping[int, str],
    *,
    values: bool,
    only: Sequence[Stretch] | None = None,
) -> DataFrame:
    """The records and the unreadable batches of a topic in its replicas' files."""
    spark.dataSource.register(SegmentsSource)
    reader = spark.read.format(FORMAT).option("topic", topic).option("values", str(values))
    if only is not None:
        chosen: Stretches = {}
        for one in only:
            if one.topic == topic:
                chosen.setdefault(one.partition, []).append((one.first, one.end))
        reader = reader.option("stretches", json.dumps(chosen))
    return reader.option("replicas", json.dumps(dict(replicas))).load()


def on_disks(
    spark: SparkSession,
    topics: Sequence[str],
    replicas: Mapping[int, str],
    only: Sequence[Stretch] | None = None,
) -> DataFrame:
    """What the replicas hold of these topics; `NoSegments` where one has nothing of them.

    `only` leaves batches out that have nothing in these stretches.
    """
    for topic in topics:
        find_parts(replicas, topic, sys.maxsize)
    found = segments(spark, topics[0], replicas, values=False, only=only)
    for topic in topics[1:]:
        more = segments(spark, topic, replicas, values=False, only=only)
        found = found.unionByName(more)
    damage = f.struct("offset", "last_offset", "segment", "position", "error")
    return found.select(
        *("replica", "topic", "partition", "offset", "checksum"),
        f.timestamp_millis("timestamp_ms").alias("timestamp"),
        f.when(f.col("error").isNotNull(), damage).cast(DAMAGE).alias("damage"),
    )
