"""Decoding: every record becomes a row, or is quarantined with the reason."""

from datetime import UTC, date, datetime

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.types import StructType
from pyspark.testing import assertDataFrameEqual

from tidelog_pipelines.transformations.decoding import (
    Avro,
    Format,
    Json,
    Raw,
    Text,
    decoded,
    quarantined,
    table_rows,
)
from tidelog_pipelines.transformations.inference import inferred

KAFKA = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
ORDER = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": ["null", "long"]}, {"name": "item", "type": ["null", "string"]}]}"""


def records(spark: SparkSession, *values: bytes | None, key: bytes = b"k") -> DataFrame:
    rows = [(key, value, "t", 0, n, NOON, None) for n, value in enumerate(values)]
    return spark.createDataFrame(rows, KAFKA)


def split(found: DataFrame, value: Format) -> tuple[list[object], list[tuple[int, str]]]:
    """The values of valid records, and offset and reason of the others."""
    good = table_rows(decoded(found, Text(), value)).orderBy("offset").collect()
    bad = quarantined(found, Text(), value).orderBy("offset").collect()
    return [row["value"] for row in good], [(row["offset"], row["reason"]) for row in bad]


def json_type(spark: SparkSession, ddl: str) -> StructType:
    kind = StructType.fromDDL(ddl)
    assert isinstance(kind, StructType)
    return kind


def test_a_row_has_all_that_a_record_has(spark: SparkSession) -> None:
    headers = [Row(key="trace", value=b"\x01")]
    found = spark.createDataFrame([(b"k", b"v", "t", 3, 7, NOON, headers)], KAFKA)
    expected = spark.createDataFrame(
        [(3, 7, NOON, "k", "v", headers, date(2026, 11, 15))],
        "partition INT, offset BIGINT, timestamp TIMESTAMP, key STRING, value STRING, "
        "headers ARRAY<STRUCT<key: STRING, value: BINARY>>, date DATE",
    )
    assertDataFrameEqual(table_rows(decoded(found, Text(), Text())), expected)


def test_raw_bytes_stay_as_they_are(spark: SparkSession) -> None:
    assert split(records(spark, b"\xff", None), Raw()) == ([bytearray(b"\xff"), None], [])


def test_text_must_be_utf8(spark: SparkSession) -> None:
    good, bad = split(records(spark, "tide \u00e9".encode(), b"\xff", None), Text())
    assert good == ["tide \u00e9", None]
    assert bad == [(1, "the value is not UTF-8")]


def test_a_key_that_is_no_text_is_quarantined_whole(spark: SparkSession) -> None:
    found = records(spark, b"{}", key=b"\xff")
    (row,) = quarantined(found, Text(), Raw()).collect()
    assert (row["reason"], row["key"], row["value"]) == ("the key is not UTF-8", b"\xff", b"{}")
    assert table_rows(decoded(found, Raw(), Raw())).count() == 1


def test_json_by_a_schema(spark: SparkSession) -> None:
    values = (b'{"id":1,"item":"a","more":2}', b"{bad", b"[1]", b'{"id":"x"}', None, b"", b"\xff")
    how = Json(json_type(spark, "id BIGINT, item STRING"))
    good, bad = split(records(spark, *values), how)
    assert good == [Row(id=1, item="a"), None]
    assert bad == [
        (1, "the value is not JSON"),
        (2, "the value is JSON, but not an object"),
        (3, "the value does not match the schema"),
        (5, "the value is not JSON"),
        (6, "the value is not UTF-8"),
    ]


def test_names_that_no_column_can_have_are_quarantined(spark: SparkSession) -> None:
    how = Json(json_type(spark, "id BIGINT"), inferred=True)
    good, bad = split(records(spark, b'{"id":1}', b'{"a b":1,"id":2}', b'{"ID":3}'), how)
    assert good == [Row(id=1)]
    assert bad == [
        (1, "a table cannot have the column a b"),
        (2, "a table cannot have the column ID"),
    ]


@pytest.mark.parametrize("header", [b"", b"\x00\x00\x00\x00\x07"], ids=["plain", "registry"])
def test_avro_by_a_schema(spark: SparkSession, header: bytes) -> None:
    orders = spark.createDataFrame([(1, "a"), (None, None)], "id BIGINT, item STRING")
    packed = orders.select(to_avro(f.struct("id", "item"), ORDER).alias("avro")).collect()
    values = [header + bytes(row["avro"]) for row in packed]
    good, bad = split(records(spark, *values, b"\xff\xff\xff", None), Avro(ORDER, bool(header)))
    # A record whose fields are all null is valid, although Spark decodes a broken one to the same.
    assert good == [Row(id=1, item="a"), Row(id=None, item=None), None]
    assert bad == [(2, "the value does not match the Avro schema")]


def test_the_type_of_objects_is_inferred_and_all_else_passed_over(spark: SparkSession) -> None:
    found = records(spark, b'{"a":1}', b'{"b":[{"c":1.5}]}', b"[1]", b"{bad", None)
    (row,) = inferred(found).collect()
    assert row["shape"] == "OBJECT<a: BIGINT, b: ARRAY<OBJECT<c: DECIMAL(2,1)>>>"
