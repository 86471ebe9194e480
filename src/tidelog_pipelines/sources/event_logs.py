"""Replication events from wherever they were recorded.

In a cluster's own topic, read through the cluster or from its replicas' disks, or in JSON lines, as
`tidelog observe` writes them for clusters that record none.
"""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.contents import segments
from tidelog_pipelines.sources.kafka import Subscription, Topics, table
from tidelog_pipelines.sources.segment_files import NoSegments, find_parts
from tidelog_pipelines.transformations.events import TOPIC, parsed

AUTO, NONE = "auto", "none"


def recorded_events(
    spark: SparkSession,
    settings: KafkaSettings,
    where: str = AUTO,
    replicas: Mapping[int, str] | None = None,
) -> DataFrame:
    """All events that can be found; none where nobody has recorded any."""
    if where == NONE:
        return _none(spark)
    if where != AUTO:
        return parsed(spark.read.text(where))
    if replicas:
        return _on_disks(spark, replicas)
    if Topics(settings).exists(TOPIC):
        return parsed(table(spark, settings, Subscription((TOPIC,))))
    return _none(spark)


def _none(spark: SparkSession) -> DataFrame:
    return parsed(spark.createDataFrame([], "value STRING"))


def _on_disks(spark: SparkSession, replicas: Mapping[int, str]) -> DataFrame:
    # A partition of the events lies on some brokers only, and in the same form on all of them.
    found = {}
    for replica, directories in replicas.items():
        try:
            find_parts({replica: directories}, TOPIC, 1 << 40)
        except NoSegments:
            continue
        found[replica] = directories
    if not found:
        return _none(spark)
    records = segments(spark, TOPIC, found, values=True).where("error IS NULL")
    return parsed(records.dropDuplicates(["partition", "offset"]))
