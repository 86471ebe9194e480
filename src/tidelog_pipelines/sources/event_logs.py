"""Replication events from a cluster or from a file.

A cluster writes its events to a topic. The topic is read through the cluster, or from the disks of
its replicas. For a cluster that records no events, `tidelog observe` writes a file of events, as
JSON lines.
"""

import sys
from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.contents import segments
from tidelog_pipelines.sources.kafka import Subscription, Topics, stream, table
from tidelog_pipelines.sources.places import existing
from tidelog_pipelines.sources.segment_files import NoSegments, find_parts
from tidelog_pipelines.transformations.events import TOPIC, parsed

AUTO, NONE = "auto", "none"
EVENTS = Subscription((TOPIC,))
EVENTS_AT_ONCE = 200_000


def recorded_events(
    spark: SparkSession,
    settings: KafkaSettings,
    where: str = AUTO,
    replicas: Mapping[int, str] | None = None,
) -> DataFrame:
    """All recorded events. Empty if no events were recorded."""
    if where == NONE:
        return _none(spark)
    if where != AUTO:
        return parsed(spark.read.text(existing(where)))
    if replicas:
        return _on_disks(spark, replicas)
    if Topics(settings).exists(TOPIC):
        return parsed(table(spark, settings, EVENTS))
    return _none(spark)


def _none(spark: SparkSession) -> DataFrame:
    return parsed(spark.createDataFrame([], "value STRING"))


def _on_disks(spark: SparkSession, replicas: Mapping[int, str]) -> DataFrame:
    # Only some brokers have a replica of the events. All replicas have the same content.
    found = {}
    for replica, directories in replicas.items():
        try:
            find_parts({replica: directories}, TOPIC, sys.maxsize)
        except NoSegments:
            continue
        found[replica] = directories
    if not found:
        return _none(spark)
    records = segments(spark, TOPIC, found, values=True).where("error IS NULL")
    return parsed(records.dropDuplicates(["partition", "offset"]))


def require_events(settings: KafkaSettings, where: str = AUTO) -> None:
    """Check that the topic of events exists, if the events come from the cluster."""
    if where == AUTO:
        Topics(settings).require(EVENTS)


def event_stream(spark: SparkSession, settings: KafkaSettings, where: str = AUTO) -> DataFrame:
    """The events as a stream, from the first event on."""
    if where != AUTO:
        return parsed(spark.readStream.text(existing(where)))
    return parsed(stream(spark, settings, EVENTS, "earliest", EVENTS_AT_ONCE))
