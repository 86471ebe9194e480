"""Decoding: every record becomes a row, or is quarantined with the reason."""

from datetime import UTC, date, datetime
from decimal import Decimal

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import to_avro
from pyspark.sql.types import StructType
from pyspark.testing import assertDataFrameEqual

from tidelog_pipelines.transformations.values.decoding import (
    Avro,
    Format,
    Json,
    Raw,
    Text,
    decoded,
    quarantined,
    table_rows,
)
from tidelog_pipelines.transformations.values.strict_json import Limits

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
    """The values of the valid records, and (offset, reason) of each quarantined record."""
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
    assert good == [Row(id=1, item="a"), Row(id=None, item=None), None]
    assert bad == [
        (1, "the value is not JSON"),
        (2, "the value is JSON, but not an object"),
        (5, "the value is not JSON"),
        (6, "the value is not UTF-8"),
    ]
    rows = table_rows(decoded(records(spark, *values), Text(), how)).orderBy("offset").collect()
    assert [row["_rescued"] for row in rows] == ['{"more":2}', '{"id":"x"}', None]


COLUMNS: tuple[tuple[str, dict[str, object], list[str]], ...] = (
    ("BOOLEAN", {"true": True}, ["1", '"true"']),
    ("TINYINT", {"127": 127, "-128": -128, "1.0": 1, "1e2": 100}, ["128", "1.5", "true"]),
    ("BIGINT", {str(2**63 - 1): 2**63 - 1}, [str(2**63), "9007199254740992.5", "1e300"]),
    ("FLOAT", {"0.5": 0.5, "3": 3.0}, ["1e300", "0.12345678901", "16777217", '"1"']),
    ("DOUBLE", {"0.1": 0.1, "9": 9.0, "-0.0": 0.0}, ["0.12345678901234567890", "1e400"]),
    ("DOUBLE", {str(2**53): 2.0**53}, [str(2**53 + 1), '"1"']),
    ("DECIMAL(4,2)", {"12.50": Decimal("12.5"), "99": Decimal(99)}, ["100", "1.234"]),
    ("DECIMAL(38,18)", {"0.1": Decimal("0.1")}, [str(10**20), "1e-19"]),
    ("STRING", {'"a"': "a", '"\\u0000"': "\0"}, ["1", "{}", '"\\ud800"']),
    ("BINARY", {'"AQI="': b"\x01\x02"}, ['"AQI"', '"?"', "1"]),
    ("DATE", {'"1500-02-28"': date(1500, 2, 28)}, ['"1500-02-29"', '"2026-1-1"', "1"]),
    (
        "TIMESTAMP_NTZ",
        {'"0001-01-01T00:00:00.5"': datetime(1, 1, 1, microsecond=500_000)},
        ['"2026-01-01T00:00:00Z"', '"2026-01-01T00:00:00.1234567"', '"soon"'],
    ),
    ("ARRAY<INT>", {"[1,null]": [1, None], "[]": []}, ['[1,"a"]', "{}", "[[1]]"]),
    ("MAP<STRING, INT>", {'{"a":1}': {"a": 1}}, ['{"a":"x"}', "[1]"]),
)
"""The type of a column, the texts that it holds with their values, and others."""


def test_a_column_holds_a_value_exactly_or_it_is_rescued(spark: SparkSession) -> None:
    names = [f"x{number}" for number in range(len(COLUMNS))]
    columns = list(zip(names, COLUMNS, strict=True))
    how = Json(json_type(spark, ", ".join(f"{name} {ddl}" for name, (ddl, *_) in columns)))
    # All columns share one Spark job. The object of each record has one field.
    wanted = [
        (name, text, fits.get(text), text in fits)
        for name, (_, fits, unfit) in columns
        for text in (*fits, *unfit)
    ]
    found = records(spark, *(f'{{"{name}":{text}}}'.encode() for name, text, *_ in wanted))
    rows = table_rows(decoded(found, Text(), how)).orderBy("offset").collect()
    assert len(rows) == len(wanted)
    for row, (name, text, value, is_held) in zip(rows, wanted, strict=True):
        others = [row["value"][other] for other in names if other != name]
        assert row["value"][name] == value, (name, text)
        assert others == [None] * len(others)
        assert (row["_rescued"] is None) == is_held, (name, text)


def test_a_timestamp_is_an_instant_however_long_ago(spark: SparkSession) -> None:
    how = Json(json_type(spark, "x TIMESTAMP"))
    texts = ("0001-01-01T00:00:00Z", "1500-01-01T02:00:00+02:00", "2026-01-01")
    found = records(spark, *(f'{{"x":"{text}"}}'.encode() for text in texts), b'{"x":5}')
    micros = table_rows(decoded(found, Text(), how)).select(f.unix_micros("value.x"))
    seconds = [-62_135_596_800, -14_831_769_600, 1_767_225_600, 5]
    assert [row[0] for row in micros.collect()] == [one * 1_000_000 for one in seconds]


def test_a_value_without_any_column_is_rescued_whole(spark: SparkSession) -> None:
    found = decoded(records(spark, b"{}", b'{"a":null}', None), Text(), Json(StructType()))
    rows = table_rows(found).orderBy("offset")
    assert "value" not in rows.columns
    assert [row["_rescued"] for row in rows.collect()] == ["{}", '{"a":null}', None]


def test_limits_of_size_and_depth(spark: SparkSession) -> None:
    how = Json(json_type(spark, "a STRING"), limits=Limits(value_bytes=50, depth=3))
    values = (b'{"a":"%s"}' % (b"x" * 50), b'{"a":[[[1]]]}', b'{"a":"[[[["}', b'{"a":[[1]]}')
    good, bad = split(records(spark, *values), how)
    assert good == [Row(a="[[[["), Row(a=None)]
    assert bad == [
        (0, "the value has 58 bytes, more than 50"),
        (1, "the value is nested deeper than 3 levels"),
    ]


def test_avro_by_a_schema(spark: SparkSession) -> None:
    orders = spark.createDataFrame([(1, "a"), (None, None)], "id BIGINT, item STRING")
    packed = orders.select(to_avro(f.struct("id", "item"), ORDER).alias("avro")).collect()
    values = [bytes(row["avro"]) for row in packed]
    good, bad = split(records(spark, *values, b"\xff\xff\xff", None), Avro(ORDER))
    assert good == [Row(id=1, item="a"), Row(id=None, item=None), None]
    assert bad == [(2, "the value does not match the Avro schema: it ends too early")]


def test_a_registrys_header_is_checked(spark: SparkSession) -> None:
    body = b"\x02\x02\x00"
    header = b"\x00\x00\x00\x00\x07"
    values = (header + body, b"\x01" + header[1:] + body, b"\x00\x00\x00\x00\x08" + body, b"\x00")
    good, bad = split(records(spark, *values, header + body + b"\x00"), Avro(ORDER, schema_id=7))
    assert good == [Row(id=1, item=None)]
    assert bad == [
        (1, "the value begins with byte 1, not with a schema registry's 0"),
        (2, "the value has schema id 8, not 7"),
        (3, "the value is shorter than a schema registry's header"),
        (4, "the value does not match the Avro schema: 1 bytes follow the record"),
    ]
    good, bad = split(records(spark, header + body), Avro(ORDER))
    assert (good, [offset for offset, _ in bad]) == ([], [0])
