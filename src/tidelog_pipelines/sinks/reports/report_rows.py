"""Collects a bounded number of rows for a report from the tables of `health`."""

from collections.abc import Mapping
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as f

from tidelog_pipelines.sinks.reports.report_model import (
    KINDS,
    Cause,
    Day,
    Failover,
    Flap,
    LagCell,
    LagRow,
    Line,
    Report,
    Span,
)

LINES = 30
SPANS = 4000
FAILOVERS = 500
ROWS = 20
BUCKETS = 120
INTERNAL = "__"

_NAME = "concat(topic, '-', partition)"
_IS_INTERNAL = f"startswith(topic, '{INTERNAL}')"
"""True for internal topics. They come last, because users care more about their own topics."""
_LINE = f"if({_IS_INTERNAL}, topic, {_NAME})"


def gathered(
    title: str, events: DataFrame, tables: Mapping[str, DataFrame], followers: DataFrame
) -> Report:
    """The report on these events. `followers` are the follower states that leaders reported."""
    ends = events.agg(f.min("ts").alias("start"), f.max("ts").alias("end")).first()
    assert ends is not None
    spans = tables["intervals"]
    totals = _totals(spans)
    lines = _lines(spans, tables["under_replicated_partitions"])
    failovers = tables["failovers"].orderBy(
        f.expr(_IS_INTERNAL), f.col("duration_ms").desc_nulls_last(), "elected"
    )
    lags = tables["lag"].orderBy(
        f.expr(_IS_INTERNAL), f.col("lag_p99").desc(), "topic", "partition", "broker"
    )
    return Report(
        title=title,
        start_ms=ends["start"],
        end_ms=ends["end"],
        partitions=totals["partitions"],
        brokers=totals["brokers"],
        under_now=totals["under_now"],
        leaderless_now=totals["leaderless_now"],
        writable_percent=totals["writable_percent"] or 0.0,
        under_minutes=totals["under_minutes"] or 0.0,
        shrinks=tables["isr_changes"].where("change = 'left'").count(),
        lines=lines,
        failovers=tuple(_failover(row) for row in failovers.limit(FAILOVERS).collect()),
        failovers_in_all=failovers.count(),
        lag_buckets=BUCKETS,
        lag_cells=_heat(followers, ends["start"], ends["end"]),
        lag_rows=tuple(_lag_row(row) for row in lags.limit(ROWS).collect()),
        causes=_causes(tables["causes"]),
        flaps=_flaps(tables["flapping"]),
        days=_days(tables["availability"]),
    )


def _totals(spans: DataFrame) -> Row:
    last = f.struct("start_ms", "end_ms")
    by_partition = spans.groupBy("topic", "partition").agg(
        f.max_by("is_under_replicated", last).alias("is_under"),
        f.max_by("is_available", last).alias("is_available"),
        f.sum("seconds").alias("seconds"),
        f.sum(f.when(f.col("is_writable"), f.col("seconds"))).alias("writable"),
        f.sum(f.when(f.col("is_under_replicated"), f.col("seconds"))).alias("under"),
        f.flatten(f.collect_set("replicas")).alias("replicas"),
    )
    found = by_partition.agg(
        f.count("*").alias("partitions"),
        f.count_if("is_under").alias("under_now"),
        f.count_if(~f.col("is_available")).alias("leaderless_now"),
        f.round(100 * f.sum("writable") / f.sum("seconds"), 4).alias("writable_percent"),
        (f.sum("under") / 60).alias("under_minutes"),
        f.size(f.array_distinct(f.flatten(f.collect_set("replicas")))).alias("brokers"),
    ).first()
    assert found is not None
    return found


def _lines(spans: DataFrame, partitions: DataFrame) -> tuple[Line, ...]:
    by_line = partitions.groupBy(f.expr(_LINE).alias("line")).agg(
        f.count("*").alias("partitions"),
        f.sum("under_replicated_minutes").alias("minutes"),
        f.min("topic").alias("topic"),
        f.min("partition").alias("partition"),
    )
    worst_first = (f.expr(_IS_INTERNAL), f.col("minutes").desc(), "topic", "partition")
    chosen = by_line.orderBy(*worst_first).limit(LINES)
    worst = chosen.select("line", "partitions", "minutes").collect()
    faulty = spans.where("is_under_replicated OR NOT is_available OR NOT is_writable")
    found: dict[str, list[Span]] = {row["line"]: [] for row in worst}
    rows = faulty.withColumn("line", f.expr(_LINE)).join(f.broadcast(chosen.select("line")), "line")
    columns = ("start_ms", "end_ms", "leader", "in_sync", "size(replicas) AS replicas", "min_isr")
    # If there are too many spans to draw, the longest spans are drawn.
    shown = rows.orderBy(f.expr(_IS_INTERNAL), f.col("seconds").desc()).limit(SPANS)
    for row in shown.selectExpr("line", f"{_NAME} AS name", *columns).collect():
        found[row["line"]].append(Span(*row[1:]))
    return tuple(
        Line(line, count, minutes, tuple(sorted(found[line], key=_depth)))
        for line, count, minutes in worst
    )


def _depth(span: Span) -> tuple[int, int, str]:
    return KINDS.index(span.kind), span.start_ms, span.partition


def _failover(row: Row) -> Failover:
    topic, name = row["topic"], f"{row['topic']}-{row['partition']}"
    is_internal = topic.startswith(INTERNAL)
    return Failover(
        topic if is_internal else name,
        is_internal,
        name,
        _ms(row["elected"]),
        row["duration_ms"],
        row["leader_before"],
        row["leader"],
        row["reason"],
        bool(row["clean"]),
    )


def _heat(followers: DataFrame, start: int, end: int) -> tuple[LagCell, ...]:
    width = max(end - start, 1) / BUCKETS
    bucket = f.least(f.floor((f.unix_millis("at") - start) / width), f.lit(BUCKETS - 1))
    cells = followers.groupBy("broker", bucket.alias("bucket")).agg(f.max("lag").alias("lag"))
    return tuple(
        LagCell(row["broker"], row["bucket"], row["lag"] or 0)
        for row in cells.orderBy("broker", "bucket").collect()
    )


def _lag_row(row: Row) -> LagRow:
    return LagRow(
        f"{row['topic']}-{row['partition']}",
        row["broker"],
        row["lag_p50"] or 0,
        row["lag_p99"] or 0,
        row["lag_max"] or 0,
        row["lag_ms_max"] or 0,
    )


def _causes(causes: DataFrame) -> tuple[Cause, ...]:
    rows = causes.orderBy(f.col("times").desc(), "cause", "broker").limit(ROWS)
    return tuple(
        Cause(*row) for row in rows.select("cause", "broker", "times", "partitions").collect()
    )


def _flaps(flapping: DataFrame) -> tuple[Flap, ...]:
    rows = flapping.orderBy(f.expr(_IS_INTERNAL), f.col("leaves").desc(), "began").limit(ROWS)
    chosen = rows.selectExpr(
        f"{_NAME} AS name",
        "broker",
        "leaves",
        "unix_millis(began) AS began",
        "unix_millis(ended) AS ended",
        "coalesce(reason, 'unknown') AS reason",
    )
    return tuple(Flap(*row) for row in chosen.collect())


def _days(availability: DataFrame) -> tuple[Day, ...]:
    def mean(column: str) -> Column:
        watched = f.sum("watched_minutes")
        return (f.sum(f.col(column) * f.col("watched_minutes")) / watched).alias(column)

    kinds = ("available_percent", "writable_percent", "fully_replicated_percent")
    rows = availability.groupBy("day").agg(*[mean(kind) for kind in kinds]).orderBy("day")
    return tuple(Day(str(row["day"]), *row[1:]) for row in rows.collect())


def _ms(moment: datetime) -> int:
    # Spark returns times in its session's time zone, which every session here sets to UTC.
    return round(moment.replace(tzinfo=UTC).timestamp() * 1000)
