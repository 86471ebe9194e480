"""The tables of `health`, by name, each derived from the events alone."""

from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.transformations import health
from tidelog_pipelines.transformations.events import PARTITION
from tidelog_pipelines.transformations.interval_state import closed_intervals
from tidelog_pipelines.transformations.isr_intervals import intervals, judged

LATE = "10 minutes"
"""How late an event may arrive and still be counted in its minute."""

Tables = Mapping[str, DataFrame]


def batch_tables(events: DataFrame, keep: Callable[[DataFrame], DataFrame]) -> Tables:
    """All tables. `keep` caches a DataFrame that is the input of several tables."""
    spans = keep(judged(intervals(events)))
    changes, failovers = keep(health.isr_changes(events)), keep(health.failovers(events))
    return {
        "intervals": spans,
        "under_replicated_partitions": health.under_replicated_partitions(spans),
        "under_replicated_brokers": health.under_replicated_brokers(spans),
        "isr_changes": changes,
        "flapping": health.flapping(changes),
        "lag": health.lag(health.follower_states(events)),
        "failovers": failovers,
        "availability": health.availability(spans),
        "causes": health.causes(changes, failovers),
    }


def streaming_tables(events: DataFrame) -> Tables:
    """The tables that grow with a stream of events. No later event changes their rows."""
    return {
        "intervals": judged(closed_intervals(events)),
        "isr_changes": health.isr_changes(events),
        "elections": elections(events),
        "lag_by_minute": lag_by_minute(events),
    }


def elections(events: DataFrame) -> DataFrame:
    """Every election, as it was recorded."""
    return events.where("event = 'leader_elected'").select(
        *PARTITION, "at", "leader_before", "leader", "leader_epoch", "isr", "reason", "clean"
    )


def lag_by_minute(events: DataFrame) -> DataFrame:
    """Percentiles of each follower's lag in each minute, emitted LATE after the minute's end."""
    followers = health.follower_states(events.withWatermark("at", LATE))
    return (
        followers.groupBy(f.window("at", "1 minute").alias("w"), *PARTITION, "broker")
        .agg(
            f.percentile_approx("lag", 0.5).alias("lag_p50"),
            f.percentile_approx("lag", 0.99).alias("lag_p99"),
            f.max("lag").alias("lag_max"),
            f.max("lag_ms").alias("lag_ms_max"),
        )
        .select(f.col("w.start").alias("minute"), *PARTITION, "broker", *LAG)
    )


LAG = ("lag_p50", "lag_p99", "lag_max", "lag_ms_max")
