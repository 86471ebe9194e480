"""Infers the type of JSON values from Spark's variants, and extends it as values change.

Invariant: a type only gains fields. Old rows therefore stay readable, and a value that does not
match is detected.
"""

import re
from collections.abc import Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|[<>,:]|[^\s<>,:`(]+(?:\([^)]*\))?)")
NOT_A_COLUMN = r"[ ,;{}()\n\t=]"
"""The characters that a column name must not contain."""

SCALARS: dict[str, DataType] = {
    "BIGINT": LongType(),
    "DOUBLE": DoubleType(),
    "FLOAT": DoubleType(),
    "DECIMAL": DoubleType(),
    "BOOLEAN": BooleanType(),
    "DATE": DateType(),
    "TIMESTAMP": TimestampType(),
}
"""All other types, and types that differ between records, are stored as text."""


def json_shapes(text: Column) -> Column:
    """The merged type of all JSON objects in a column, in the notation of Spark's variants."""
    variant = f.try_parse_json(text)
    is_object = f.schema_of_variant(variant).startswith("OBJECT<")
    return f.schema_of_variant_agg(f.when(is_object, variant))


def inferred(records: DataFrame) -> DataFrame:
    """One row: the merged type of the values as text, or null if no value is an object."""
    return records.agg(json_shapes(f.col("value").cast("string")).alias("shape"))


def parse_shape(shape: str | None) -> StructType:
    """Parse the notation of Spark's variants, without fields that were always null."""
    found = _parsed(_Tokens(shape or "OBJECT<>"))
    return found if isinstance(found, StructType) else StructType()


def grown(known: DataType, seen: DataType) -> DataType:
    """The known type, extended by new fields."""
    if isinstance(known, ArrayType) and isinstance(seen, ArrayType):
        return ArrayType(grown(known.elementType, seen.elementType))
    if isinstance(known, StructType) and isinstance(seen, StructType):
        return grown_struct(known, seen)
    return known


def grown_struct(known: StructType, seen: StructType) -> StructType:
    """As `grown`, for an object: new fields come last, in alphabetical order."""
    news = {field.name: field.dataType for field in seen.fields}
    fields = [
        StructField(field.name, grown(field.dataType, news.get(field.name, field.dataType)))
        for field in known.fields
    ]
    taken = {field.name.lower() for field in fields}
    for name in sorted(news):
        if name.lower() not in taken:
            fields.append(StructField(name, news[name]))
            taken.add(name.lower())
    return StructType(fields)


def columns(seen: StructType) -> StructType:
    """The part of an inferred type that a table can store as columns."""
    fields: dict[str, StructField] = {}
    for field in seen.fields:
        if _is_column_name(field.name):
            fields.setdefault(
                field.name.lower(), StructField(field.name, _storable(field.dataType))
            )
    return StructType(list(fields.values()))


def _storable(kind: DataType) -> DataType:
    """The type, with text in place of objects that have invalid column names."""
    if isinstance(kind, ArrayType):
        return ArrayType(_storable(kind.elementType))
    if not isinstance(kind, StructType):
        return kind
    names = [field.name for field in kind.fields]
    distinct = {name.lower() for name in names}
    if not names or len(distinct) < len(names) or not all(map(_is_column_name, names)):
        return StringType()
    return StructType([StructField(one.name, _storable(one.dataType)) for one in kind.fields])


def _is_column_name(name: str) -> bool:
    return re.search(NOT_A_COLUMN, name) is None


class _Tokens:
    def __init__(self, text: str) -> None:
        self._tokens: Iterator[str] = (found.group(1) for found in TOKEN.finditer(text))
        self.next = ""
        self.take()

    def take(self) -> str:
        taken, self.next = self.next, next(self._tokens, "")
        return taken

    def expect(self, token: str) -> None:
        taken = self.take()
        assert taken == token, f"{token} expected in the type of a variant, found {taken}"


def _parsed(tokens: _Tokens) -> DataType | None:
    """Parse one type; None if only nulls were seen."""
    word = tokens.take()
    if word == "OBJECT":
        return _parsed_object(tokens)
    if word == "ARRAY":
        tokens.expect("<")
        element = _parsed(tokens)
        tokens.expect(">")
        return ArrayType(element or StringType())
    if word == "VOID":
        return None
    return SCALARS.get(word.partition("(")[0], StringType())


def _parsed_object(tokens: _Tokens) -> DataType:
    tokens.expect("<")
    fields: dict[str, DataType | None] = {}
    while tokens.next != ">":
        name = tokens.take()
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        tokens.expect(":")
        fields[name] = _parsed(tokens)
        if tokens.next == ",":
            tokens.take()
    tokens.expect(">")
    return StructType([StructField(name, kind) for name, kind in fields.items() if kind])
