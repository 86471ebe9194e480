"""`health`: tables about the replication of a cluster, from its replication events."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from tidelog_pipelines import failures, streams
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.session import spark_session
from tidelog_pipelines.settings import KafkaSettings, check_times, parse, setting
from tidelog_pipelines.sources.event_logs import (
    AUTO,
    event_stream,
    recorded_events,
    require_events,
)
from tidelog_pipelines.sources.places import absolute
from tidelog_pipelines.streams import say
from tidelog_pipelines.transformations.health_tables import batch_tables, streaming_tables

ABOUT = """\
Make tables from the replication events of a cluster: under-replicated minutes by partition and
broker, changes of the in-sync sets and flapping replicas, lag percentiles of each follower,
failovers and their duration, availability by partition and day, top causes. The job reads all
events at once, or with --follow appends new events as they arrive.
"""
SHOWN = 10
ANSWERS = {
    "under_replicated_partitions": ("Under-replicated partitions", "under_replicated_minutes"),
    "under_replicated_brokers": ("Brokers out of sync", "partition_minutes"),
    "flapping": ("Replicas that flap", "leaves"),
    "failovers": ("Failovers", "duration_ms"),
    "lag": ("Lag of followers, in records and ms", "lag_p99"),
    "availability": ("Availability", "watched_minutes"),
    "causes": ("Top causes", "times"),
}
"""The tables to print: the title of each, and the column by which its rows are sorted."""


@dataclass(frozen=True, kw_only=True)
class HealthSettings(KafkaSettings):
    events: str = setting(
        AUTO,
        metavar="auto|PATH",
        meaning="the events: the cluster's own topic, or JSON lines as tidelog observe writes them",
    )
    out: str = setting("", metavar="DIR", meaning="keep the tables there, as Delta")
    follow: bool = setting(False, meaning="append new events to the tables as they arrive")
    once: bool = setting(
        False, meaning="with --follow: read the events since the last run, and end"
    )
    every: str = setting("10 seconds", metavar="TIME", meaning="how often --follow reads events")
    patience_seconds: int = setting(
        300,
        metavar="N",
        meaning="how long --follow waits for a cluster that does not answer",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.follow and not self.out:
            raise ValueError("--follow needs --out, the directory of the tables")
        check_times(every=self.every)


def show(tables: dict[str, DataFrame]) -> None:
    """Print the tables, the worst rows first."""
    for name, (title, by) in ANSWERS.items():
        table = tables[name]
        rows = table.orderBy(f.col(by).desc_nulls_last(), *table.columns[:2]).limit(SHOWN)
        print(f"\n{title}")
        rows.show(SHOWN, truncate=False)


class HealthTables(NamedTuple):
    """The tables of `health`; docs/pipeline-health.md describes their rows."""

    intervals: DataFrame
    under_replicated_partitions: DataFrame
    under_replicated_brokers: DataFrame
    isr_changes: DataFrame
    flapping: DataFrame
    lag: DataFrame
    failovers: DataFrame
    availability: DataFrame
    causes: DataFrame


def found(spark: SparkSession, settings: HealthSettings) -> HealthTables:
    """The tables for all recorded events. Spark caches the events. Raises if there is no event."""
    events = _cached_anew(recorded_events(spark, settings, settings.events))
    try:
        if events.isEmpty():
            raise JobFailed(
                "no replication event was found; a cluster that records none can be watched with "
                "`tidelog observe`."
            )
    except Exception:
        events.unpersist()
        raise
    return HealthTables(**batch_tables(events, _cached_anew))


def _cached_anew(table: DataFrame) -> DataFrame:
    """Cache a table. An older cache is dropped first, because the files may have grown."""
    return table.unpersist().cache()


def keep(tables: HealthTables, out: str, report: Callable[[str], None]) -> None:
    """Write the tables to a directory, as Delta."""
    for name, table in tables._asdict().items():
        path = f"{absolute(out)}/{name}"
        writer = table.write.format("delta").mode("overwrite")
        writer.option("overwriteSchema", "true").save(path)
        report(path)


def at_once(spark: SparkSession, settings: HealthSettings) -> int:
    tables = found(spark, settings)
    show(tables._asdict())
    if settings.out:
        keep(tables, settings.out, say)
    return 0


def follow(spark: SparkSession, settings: HealthSettings) -> int:
    require_events(settings, settings.events)
    say(f"following into {settings.out}")
    streams.run(
        lambda: list(started(spark, settings).values()),
        lambda progress: say(f"{progress.query}: {streams.line(progress)}"),
        settings.patience_seconds,
    )
    return 0


def started(spark: SparkSession, settings: HealthSettings) -> dict[str, StreamingQuery]:
    """Start a query for each table that grows. Each query continues where it last ended."""
    out = absolute(settings.out)
    events = event_stream(spark, settings, settings.events)
    return {
        name: _started(table, name, out, settings)
        for name, table in streaming_tables(events).items()
    }


def _started(table: DataFrame, name: str, out: str, settings: HealthSettings) -> StreamingQuery:
    writer = table.writeStream.format("delta").outputMode("append").queryName(name)
    writer = writer.option("checkpointLocation", f"{out}/checkpoints/{name}")
    if settings.once:
        return writer.trigger(availableNow=True).start(f"{out}/{name}")
    return writer.trigger(processingTime=settings.every).start(f"{out}/{name}")


def main(arguments: list[str]) -> int:
    def job() -> int:
        settings = parse(HealthSettings, "health", arguments, ABOUT)
        spark = spark_session(settings, "health")
        return follow(spark, settings) if settings.follow else at_once(spark, settings)

    return failures.run(job)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
