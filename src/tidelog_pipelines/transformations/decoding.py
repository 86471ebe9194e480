"""Decodes the records of a topic to rows of a table, and bad records to rows with the reason.

Invariant: the result depends only on the record and the format, so a record that is decoded again
after a crash gives the same row.
"""

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StringType, StructField, StructType

from tidelog_pipelines.transformations.avro import READ_FLAG, flagged_schema
from tidelog_pipelines.transformations.inference import NOT_A_COLUMN

CORRUPT = "_corrupt_record"
REASON = "reason"


@dataclass(frozen=True)
class Raw:
    """Bytes, unchanged."""


@dataclass(frozen=True)
class Text:
    """UTF-8 text."""


@dataclass(frozen=True)
class Json:
    """Objects of this type; if it was inferred, invalid column names are refused."""

    type: StructType
    inferred: bool = False


@dataclass(frozen=True)
class Avro:
    """Avro's binary encoding with this schema, optionally after a schema registry's five bytes."""

    schema: str
    has_registry_header: bool = False


Format = Raw | Text | Json | Avro


def decoded(records: DataFrame, key: Raw | Text, value: Format) -> DataFrame:
    """The records with decoded key and value, or with the reason why they cannot be decoded."""
    content, _ = _decoded_value(value)
    return records.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        (f.col("key").cast("string") if isinstance(key, Text) else f.col("key")).alias("key"),
        content.alias("value"),
        "headers",
        f.to_date("timestamp").alias("date"),
        _reason(key, value).alias(REASON),
    )


def table_rows(all_decoded: DataFrame) -> DataFrame:
    """The rows of a topic's table; partition and offset come first, for file pruning."""
    return all_decoded.where(f.col(REASON).isNull()).drop("topic", REASON)


def quarantined(records: DataFrame, key: Raw | Text, value: Format) -> DataFrame:
    """The bad records, unchanged, with the reason."""
    return records.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        "key",
        "value",
        "headers",
        f.to_date("timestamp").alias("date"),
        _reason(key, value).alias(REASON),
    ).where(f.col(REASON).isNotNull())


def _reason(key: Raw | Text, value: Format) -> Column:
    _, reason = _decoded_value(value)
    if isinstance(key, Text):
        return f.coalesce(f.when(~_is_text("key"), f.lit("the key is not UTF-8")), reason)
    return reason


def _is_text(column: str) -> Column:
    return f.col(column).isNull() | f.is_valid_utf8(f.col(column).cast("string"))


def _decoded_value(value: Format) -> tuple[Column, Column]:
    """The value, and the reason if it cannot be decoded; a record without a value is valid."""
    raw, none = f.col("value"), f.lit(None).cast("string")
    not_text = f.when(~_is_text("value"), f.lit("the value is not UTF-8"))
    match value:
        case Raw():
            return raw, none
        case Text():
            return raw.cast("string"), f.coalesce(not_text, none)
        case Json():
            content, reason = _json(raw.cast("string"), value)
            return content, f.when(raw.isNotNull(), f.coalesce(not_text, reason))
        case Avro():
            content, reason = _avro(raw, value)
            return content, f.when(raw.isNotNull(), reason)


def _json(text: Column, how: Json) -> tuple[Column, Column]:
    with_corrupt = StructType([*how.type.fields, StructField(CORRUPT, StringType())])
    parsed = f.from_json(text, with_corrupt, {"columnNameOfCorruptRecord": CORRUPT})
    content = f.when(parsed.isNotNull(), parsed.dropFields(CORRUPT)) if how.type.fields else text
    fits = parsed.isNotNull() & parsed[CORRUPT].isNull()
    variant = f.try_parse_json(text)
    is_object = f.schema_of_variant(variant).startswith("OBJECT<")
    why = (
        f.when(variant.isNull(), f.lit("the value is not JSON"))
        .when(~is_object, f.lit("the value is JSON, but not an object"))
        .otherwise(f.lit("the value does not match the schema"))
    )
    reason = f.when(~fits, why)
    if how.inferred:
        reason = f.coalesce(reason, _unfit_names(text, how.type))
    return content, reason


def _unfit_names(text: Column, known: StructType) -> Column:
    """The reason if an object has an invalid column name, or names that differ only in case."""
    names = [field.name for field in known.fields]
    exact = f.array(*[f.lit(name) for name in names])
    lower = f.array(*[f.lit(name.lower()) for name in names])
    unfit = f.filter(
        f.json_object_keys(text),
        lambda key: (
            key.rlike(NOT_A_COLUMN)
            | (f.array_contains(lower, f.lower(key)) & ~f.array_contains(exact, key))
        ),
    )
    return f.when(
        f.size(unfit) > 0, f.concat(f.lit("a table cannot have the column "), unfit.getItem(0))
    )


def _avro(raw: Column, how: Avro) -> tuple[Column, Column]:
    framed = f.substring(raw, 6, 2**31 - 1) if how.has_registry_header else raw
    options = {"mode": "PERMISSIVE", "avroSchema": flagged_schema(how.schema)}
    parsed = from_avro(framed, how.schema, options)
    is_read = parsed[READ_FLAG].isNotNull()
    return f.when(is_read, parsed.dropFields(READ_FLAG)), f.when(
        ~f.coalesce(is_read, f.lit(False)), f.lit("the value does not match the Avro schema")
    )
