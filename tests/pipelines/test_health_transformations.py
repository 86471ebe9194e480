"""The tables of `health` for hand-made events."""

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual
from tests.pipelines.event_stories import START_MS, Events, a_bad_day

from tidelog_pipelines.transformations import health
from tidelog_pipelines.transformations.events import parsed
from tidelog_pipelines.transformations.interval_state import closed_intervals
from tidelog_pipelines.transformations.isr_intervals import intervals, judged


def at(seconds: float) -> datetime:
    start = datetime.fromtimestamp(START_MS / 1000, UTC)
    return (start + timedelta(seconds=seconds)).replace(tzinfo=None)


def rows(table: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in table.select(*columns).collect())


def events(spark: SparkSession, *logs: Events) -> DataFrame:
    lines = [(line,) for log in logs for line in log.lines]
    return parsed(spark.createDataFrame(lines, "value STRING"))


@pytest.fixture(scope="module")
def hour(spark: SparkSession) -> DataFrame:
    """Events of an hour: a replica leaves and returns; the partition has no leader for a minute."""
    log = Events()
    log.elect(0, 1, "created")
    log.state(5, {2: 10, 3: 100})
    log.shrink(600, 3, "slow")
    log.state(605, {2: 20, 3: 900})
    log.expand(900, 3)
    log.shrink(1200, 2, "dead")
    log.isr = [3]
    log.fence(1800.1, 1, silent_ms=2_000)
    log.elect(1800.1, -1)
    log.elect(1860.1, 3)
    log.expand(2400, 1)
    log.expand(2400, 2)
    log.elect(3000, 1, "preferred")
    log.state(3600, {2: 30, 3: 200})
    deposed = Events()
    deposed.state(2500)  # broker 1 does not know yet that broker 3 is the leader
    return events(spark, log, deposed).localCheckpoint()


@pytest.fixture(scope="module")
def spans(hour: DataFrame) -> DataFrame:
    return judged(intervals(hour)).localCheckpoint()


def test_an_interval_lasts_until_something_changes(spans: DataFrame) -> None:
    seconds = [
        ((start - START_MS) / 1000, (end - START_MS) / 1000, leader, in_sync)
        for start, end, leader, in_sync in rows(spans, "start_ms", "end_ms", "leader", "in_sync")
    ]

    assert seconds == [
        (0, 600, 1, 3),
        (600, 900, 1, 2),
        (900, 1200, 1, 3),
        (1200, 1800.1, 1, 2),
        (1800.1, 1860.1, -1, 1),
        (1860.1, 2400, 3, 1),
        (2400, 2400, 3, 2),
        (2400, 3000, 3, 3),
        (3000, 3600, 1, 3),
    ]


def test_under_replicated_minutes_of_a_partition(spark: SparkSession, spans: DataFrame) -> None:
    assertDataFrameEqual(
        health.under_replicated_partitions(spans),
        spark.createDataFrame(
            [("t", 0, 60.0, 25.0, 9.998, 1.0, 1)],
            "topic STRING, partition INT, watched_minutes DOUBLE, under_replicated_minutes DOUBLE, "
            "unwritable_minutes DOUBLE, leaderless_minutes DOUBLE, least_in_sync INT",
        ),
    )


def test_under_replicated_minutes_of_a_broker(spans: DataFrame) -> None:
    assert rows(
        health.under_replicated_brokers(spans), "broker", "partitions", "partition_minutes"
    ) == [(1, 1, 9.998), (2, 1, 20.0), (3, 1, 5.0)]


def test_lag_percentiles_of_each_follower(hour: DataFrame) -> None:
    lag = health.lag(health.follower_states(hour))

    assert rows(lag, "broker", "samples", "lag_p50", "lag_p99", "lag_ms_max") == [
        (2, 4, 10, 30, 60),
        (3, 4, 100, 900, 1800),
    ]


def test_a_failover_begins_with_the_last_sign_of_life_of_the_leader(hour: DataFrame) -> None:
    columns = ("began", "elected", "duration_ms", "leader_before", "leader", "reason", "clean")

    assert rows(health.failovers(hour), *columns) == [
        (at(1798.1), at(1860.1), 62_000, 1, 3, "dead", True)
    ]


def test_without_a_sign_of_life_it_begins_with_the_fencing_or_is_not_known(
    spark: SparkSession,
) -> None:
    log = Events()
    log.fence(9.8, 1)
    log.elect(10, 2)
    log.elect(500, 1, "preferred")
    log.elect(900, 2)
    log.elect(1000, 1, "preferred")
    log.fence(1100, 1)
    log.elect(1100, 2)  # at the time of the fencing, so the duration is unknown
    log.elect(1200, -1)
    log.elect(1300, 3, "returned")

    found = rows(health.failovers(events(spark, log)), "elected", "duration_ms", "leader_before")

    assert found == [
        (at(10), 200, 1),
        (at(900), None, 1),
        (at(1100), None, 1),
        (at(1300), 100_000, 2),
    ]


def test_a_leader_that_shuts_down_in_order_leaves_no_gap(spark: SparkSession) -> None:
    log = Events()
    log.fence(5, 1, silent_ms=300)
    log.elect(10, 2, "shutting-down")

    found = rows(health.failovers(events(spark, log)), "elected", "duration_ms", "reason")

    assert found == [(at(10), None, "shutting-down")]


def test_availability_is_told_for_each_day(spark: SparkSession) -> None:
    log = Events()
    log.elect(23 * 3600, 1, "created")
    log.elect(24 * 3600 - 360, -1)
    log.elect(24 * 3600 + 360, 2)
    log.state(25 * 3600)

    table = health.availability(judged(intervals(events(spark, log))))

    assert rows(table, "day", "watched_minutes", "available_percent", "writable_percent") == [
        (date(2026, 1, 1), 60.0, 90.0, 90.0),
        (date(2026, 1, 2), 60.0, 90.0, 90.0),
    ]


def test_a_replica_that_keeps_leaving_flaps(spark: SparkSession) -> None:
    log, calm = Events(), Events(partition=1)
    for turn in range(4):
        log.shrink(turn * 300, 3, "slow")
        log.expand(turn * 300 + 60, 3)
        calm.shrink(turn * 3000, 3, "slow")
        calm.expand(turn * 3000 + 60, 3)

    table = health.flapping(health.isr_changes(events(spark, log, calm)))

    assert rows(table, "partition", "broker", "leaves", "began", "ended", "reason") == [
        (0, 3, 4, at(0), at(900), "slow")
    ]


def test_causes_are_counted_by_broker(hour: DataFrame) -> None:
    table = health.causes(health.isr_changes(hour), health.failovers(hour))

    assert rows(table, "cause", "broker", "times") == [
        ("left the in-sync set: dead", 2, 1),
        ("left the in-sync set: slow", 3, 1),
        ("lost the lead: dead", 1, 1),
    ]


def test_what_is_no_event_is_left_out(spark: SparkSession) -> None:
    lines = [("",), ("{",), ('{"v":2,"event":"isr_shrink"}',), (None,), ('{"v":1,"event":"x"}',)]

    assert rows(parsed(spark.createDataFrame(lines, "value STRING")), "event") == [("x",)]


def test_a_stream_closes_the_same_intervals(spark: SparkSession, tmp_path: Path) -> None:
    lines = a_bad_day(minutes=60, partitions=4, every=60)
    source = tmp_path / "events"
    source.mkdir()
    third = len(lines) // 3
    for part in range(3):  # several micro-batches, in order
        chosen = lines[part * third :] if part == 2 else lines[part * third : (part + 1) * third]
        path = source / f"{part}.jsonl"
        path.write_text("\n".join(chosen) + "\n")
        os.utime(path, (part + 1, part + 1))  # Spark reads files in the order of their age

    stream = spark.readStream.schema("value STRING").option("maxFilesPerTrigger", 1)
    query = (
        closed_intervals(parsed(stream.text(str(source))))
        .writeStream.format("memory")
        .queryName("closed")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    expected = intervals(parsed(spark.read.text(str(source))))
    last = expected.groupBy().max("end_ms").collect()[0][0]
    columns = ("topic", "partition", "start_ms", "end_ms", "leader", "leader_epoch", "isr")
    closed = rows(spark.table("closed"), *columns)
    assert closed == rows(expected.where(expected["end_ms"] < last), *columns)
    assert closed
