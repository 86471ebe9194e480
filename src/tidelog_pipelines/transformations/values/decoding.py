"""Decodes the records of a topic to rows of a table, and bad records to rows with the reason.

Invariant: a record is decoded completely, or is quarantined unchanged. Which of the two happens
depends only on the record and the format. It does not depend on the table or on other records.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import StringType, StructField, StructType

from tidelog_pipelines.transformations.values import python_decoding
from tidelog_pipelines.transformations.values.framing import ReadHeader
from tidelog_pipelines.transformations.values.json_columns import Path, Position
from tidelog_pipelines.transformations.values.json_validation import JsonSchemas
from tidelog_pipelines.transformations.values.python_decoding import (
    DELETED,
    REASON,
    RESCUED,
    VALUE,
)
from tidelog_pipelines.transformations.values.registered import Columns, Writers
from tidelog_pipelines.transformations.values.shapes import struct_type
from tidelog_pipelines.transformations.values.strict_json import DEFAULT_LIMITS, Limits

RECORD_COLUMNS = ("partition", "offset", "timestamp", "key", "value", "headers")


@dataclass(frozen=True)
class Raw:
    """Bytes, unchanged."""

    is_required: bool = False
    """Whether a record without a key goes to quarantine; for keys only."""


@dataclass(frozen=True)
class Text:
    """UTF-8 text."""

    is_required: bool = False
    """As in `Raw`: whether a record without a key goes to quarantine."""


@dataclass(frozen=True)
class Json:
    """JSON objects.

    The column `value` has this type, and stores the fields that fit. A text column stores the rest.
    """

    type: StructType
    since: Mapping[Path, Position] = field(default_factory=dict)
    """The first record of each new object or list column. `json_growth.Grown` explains this."""
    limits: Limits = DEFAULT_LIMITS
    schemas: JsonSchemas | None = None
    """The schemas that validate the values. None if values have no schema registry's header."""
    is_enveloped: bool = False
    """Whether the objects are Debezium's envelopes. Only the row after the change is kept."""


@dataclass(frozen=True)
class Avro:
    """Avro's binary encoding with this schema."""

    schema: str
    schema_id: int | None = None
    """The schema id that the header of each value must have. None if values have no header."""
    limits: Limits = DEFAULT_LIMITS


@dataclass(frozen=True)
class Registered:
    """Values that are decoded with their writer's schema. `read_header` finds the schema's key."""

    read_header: ReadHeader
    writers: Writers
    columns: Columns
    limits: Limits = DEFAULT_LIMITS


Format = Raw | Text | Json | Avro | Registered
ByPython = Json | Avro | Registered
"""The formats that Python code decodes."""


def decoded(
    records: DataFrame, key: Raw | Text, value: Format, also: Sequence[str] = ()
) -> DataFrame:
    """The records with decoded key and value, or with the reason why they cannot be decoded.

    `also` names further columns to keep. The column DELETED is kept as well; see `with_deletes`.
    """
    text_key = f.col("key").cast("string") if isinstance(key, Text) else f.col("key")
    examined = records.withColumn(REASON, _key_reason(key)).withColumn("key", text_key)
    match value:
        case Raw():
            found = examined
        case Text():
            found = examined.withColumn(REASON, _text_reason()).withColumn(
                VALUE, f.col(VALUE).cast("string")
            )
        case Json() | Avro() | Registered():
            found = _decoded_by_python(examined, value, also)
    kept = (*also, *RECORD_COLUMNS, RESCUED, DELETED)
    columns = [name for name in kept if name in found.columns]
    return found.select(*columns, f.to_date("timestamp").alias("date"), REASON)


def with_deletes(records: DataFrame) -> DataFrame:
    """The records, with a column that says whether they delete the row of their key."""
    return records.withColumn(DELETED, f.col(VALUE).isNull())


def table_rows(all_decoded: DataFrame) -> DataFrame:
    """The rows of a table. Partition and offset come first, so that readers can skip files."""
    return all_decoded.where(f.col(REASON).isNull()).drop(REASON)


def quarantined(records: DataFrame, key: Raw | Text, value: Format) -> DataFrame:
    """The bad records, unchanged, with the reason."""
    examined = records.select(
        "topic", *RECORD_COLUMNS, f.to_date("timestamp").alias("date"), _key_reason(key)
    )
    match value:
        case Raw():
            found = examined
        case Text():
            found = examined.withColumn(REASON, _text_reason())
        case Json() | Avro() | Registered():
            # No columns are needed, because they do not decide whether a JSON value is bad.
            kind = StructType() if isinstance(value, Json) else _value_type(examined, value)
            found = examined.mapInArrow(
                python_decoding.refusals(_decoder(value, kind)), examined.schema
            )
    return found.where(f.col(REASON).isNotNull())


def _decoded_by_python(examined: DataFrame, value: ByPython, also: Sequence[str]) -> DataFrame:
    kind, rescues = _value_type(examined, value), not isinstance(value, Avro)
    columns = [*also, *RECORD_COLUMNS, *(name for name in (DELETED,) if name in examined.columns)]
    others = [examined.schema[name] for name in columns if name != VALUE]
    fields = [*others, StructField(REASON, StringType())]
    if kind.fields:  # a table cannot have an empty struct
        fields.append(StructField(VALUE, kind))
    if rescues:
        fields.append(StructField(RESCUED, StringType()))
    decode = python_decoding.rows(_decoder(value, kind), kind, rescues=rescues)
    return examined.select(*columns, REASON).mapInArrow(decode, StructType(fields))


def _decoder(value: ByPython, kind: StructType) -> python_decoding.MakeDecoder:
    if isinstance(value, Json):
        parser = python_decoding.json_parser(
            value.limits, value.schemas, is_enveloped=value.is_enveloped
        )
        return python_decoding.json_decoder(kind, value.since, parser)
    if isinstance(value, Registered):
        return python_decoding.registered_decoder(
            value.read_header, value.writers, value.columns, value.limits
        )
    return python_decoding.avro_decoder(value.schema, kind, value.schema_id, value.limits)


def _value_type(records: DataFrame, value: ByPython) -> StructType:
    """The type of the column `value`. For Avro, it is the type that Spark's own reader gives."""
    if isinstance(value, Json):
        return value.type
    if isinstance(value, Registered):
        return struct_type(value.columns.shape)
    kind = records.select(from_avro(f.lit(b""), value.schema)).schema.fields[0].dataType
    assert isinstance(kind, StructType)
    return kind


def _key_reason(key: Raw | Text) -> Column:
    none = f.lit(None).cast("string")
    is_missing = f.lit(key.is_required) & f.col("key").isNull()
    found = f.when(is_missing, f.lit("the record has no key"))
    if isinstance(key, Text):
        found = found.when(~_is_text("key"), f.lit("the key is not UTF-8"))
    return found.otherwise(none).alias(REASON)


def _text_reason() -> Column:
    return f.coalesce(REASON, f.when(~_is_text(VALUE), f.lit("the value is not UTF-8")))


def _is_text(column: str) -> Column:
    return f.col(column).isNull() | f.is_valid_utf8(f.col(column).cast("string"))
