"""The content of a topic, read through its cluster or from the disks of its replicas.

In both cases a row is (replica, topic, partition, offset, checksum, timestamp, damage). If the
topic is read through the cluster, the replica is -1, which stands for the current leader. If
`damage` is null, the row is a record. Otherwise the row is an unreadable batch on a disk, and
`damage` describes the batch.
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
    """The records that consumers can read from these topics. Raises if a topic does not exist."""
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
    """The records and the unreadable batches of a topic in the files of its replicas.

    With `only`, batches without an offset in these stretches are left out.
    """
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
    """The content of these topics on the disks of the replicas.

    Raises `NoSegments` if a replica has no segment of a topic. With `only`, batches without an
    offset in these stretches are left out.
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
