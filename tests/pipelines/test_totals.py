"""Windowed totals, and the reader that drops totals which a retry wrote twice."""

from datetime import datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from tidelog_pipelines.transformations.totals import (
    RESULT,
    events,
    events_or_reasons,
    newest,
    not_events,
    result_records,
    results,
    totals,
    without_retries,
)

NOON = datetime(2026, 11, 15, 12)
MINUTE = timedelta(minutes=1)


def records(spark: SparkSession, *values: str) -> DataFrame:
    rows = [(value.encode(), NOON + n * MINUTE / 2) for n, value in enumerate(values)]
    return spark.createDataFrame(rows, "value BINARY, timestamp TIMESTAMP")


def found_events(records: DataFrame, time: str = "") -> DataFrame:
    return events(events_or_reasons(records, "item", "amount", time))


def test_what_is_no_event_is_kept_with_the_reason(spark: SparkSession) -> None:
    bad = (
        '{"item":"a"}',
        "{bad",
        '{"amount":1}',
        '{"item":"a","amount":2}{',
        '{"item":1,"item":2}',
    )
    found = records(spark, '{"item":"a","amount":2}', *bad)
    expected = spark.createDataFrame(
        [("a", 2.0, NOON)], "name STRING, amount DOUBLE, event_time TIMESTAMP"
    )
    assertDataFrameEqual(found_events(found), expected)
    kept = not_events(events_or_reasons(found, "item", "amount")).collect()
    assert [(bytes(row["value"]).decode(), row["reason"]) for row in kept] == list(
        zip(
            bad,
            [
                "the field amount is not a number",
                "the value is not JSON",
                "the field item is missing, or not a scalar",
                "the value is not JSON",
                'the value has the name "item" twice in one object',
            ],
            strict=True,
        )
    )


def test_events_have_their_own_time_if_it_is_named(spark: SparkSession) -> None:
    value = '{"item":"a","amount":2,"at":"%s"}'
    found = records(spark, value % "2026-11-15 13:00:00", value % "1763208000000", value % "soon")
    times = [row["event_time"] for row in found_events(found, "at").collect()]
    assert times == [NOON + 60 * MINUTE, datetime(2025, 11, 15, 12)]


def test_totals_per_window_and_name(spark: SparkSession) -> None:
    one = '{"item":"%s","amount":%d}'
    found = records(spark, one % ("a", 1), one % ("a", 2), one % ("b", 3), one % ("a", 4))
    expected = spark.createDataFrame(
        [
            (NOON, NOON + MINUTE, "a", 2, 3.0),
            (NOON + MINUTE, NOON + 2 * MINUTE, "a", 1, 4.0),
            (NOON + MINUTE, NOON + 2 * MINUTE, "b", 1, 3.0),
        ],
        "window_start TIMESTAMP, window_end TIMESTAMP, name STRING, count BIGINT, total DOUBLE",
    )
    assertDataFrameEqual(totals(found_events(found), "1 minute", "1 minute"), expected)


def test_results_survive_the_way_through_a_topic(spark: SparkSession) -> None:
    found = spark.createDataFrame([("q", 1, NOON, NOON + MINUTE, "a", 2, 3.5)], RESULT)
    written = result_records(found.drop("query_id", "epoch"), "q", 1)
    assert [row["key"] for row in written.collect()] == ["a"]
    assertDataFrameEqual(results(written), found)


def test_a_reader_drops_retries_and_older_totals(spark: SparkSession) -> None:
    first = ("q", 1, NOON, NOON + MINUTE, "a", 2, 3.0)
    second = ("q", 2, NOON, NOON + MINUTE, "a", 3, 4.0)
    other = ("q", 1, NOON, NOON + MINUTE, "b", 1, 1.0)
    found = spark.createDataFrame([first, second, first, other, second], RESULT)
    assertDataFrameEqual(
        without_retries(found), spark.createDataFrame([first, second, other], RESULT)
    )
    assertDataFrameEqual(newest(found), spark.createDataFrame([second, other], RESULT))
