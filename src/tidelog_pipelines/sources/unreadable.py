"""Uses a Kafka client to read records that Spark cannot read, and makes quarantine rows of them."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Message
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.kafka import RecordGarbled, single_record

COLUMNS = (
    "topic STRING, partition INT, offset BIGINT, millis BIGINT, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, reason STRING"
)
MOST_MILLIS = 2**63 // 1_000 - 1
"""The largest number of milliseconds that a TIMESTAMP can hold."""


def unreadable(
    spark: SparkSession,
    settings: KafkaSettings,
    topic: str,
    culprits: Iterable[tuple[int, int, str]],
) -> DataFrame:
    """One row for each culprit (partition, offset, reason) whose record still exists.

    A timestamp that is too large becomes null. If no client can read a record, its row has no
    content; the bytes of its batch stay in the topic.
    """
    rows: list[tuple[object, ...]] = []
    for partition, offset, why in culprits:
        try:
            message = single_record(settings, topic, partition, offset)
        except RecordGarbled as error:
            reason = f"no client can read the record: {error}"
            rows.append((topic, partition, offset, None, None, None, None, reason))
            continue
        if message is not None:
            rows.append((topic, partition, offset, *_content(message, why)))
    found = spark.createDataFrame(rows, COLUMNS)
    time = f.timestamp_millis("millis")
    return found.withColumns({"timestamp": time, "date": f.to_date(time)}).drop("millis")


def _content(message: Message, why: str) -> tuple[object, ...]:
    _, millis = message.timestamp()
    reason = f"Spark cannot read the record: {why}"
    if abs(millis) > MOST_MILLIS:
        reason = f"the timestamp, {millis} ms, is beyond what a table can hold"
    headers: Any = message.headers()
    key, value = message.key(), message.value()
    return (
        millis if abs(millis) <= MOST_MILLIS else None,
        key.encode() if isinstance(key, str) else key,
        value.encode() if isinstance(value, str) else value,
        list(headers) if headers else None,
        reason,
    )
