"""The type of JSON values, as Spark's variants tell it, and how it grows as values change.

A type only ever gains fields: what a table has once promised stays, so that old rows can be read
and a value that does not fit is noticed.
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
"""What the name of a table's column may not hold."""

SCALARS: dict[str, DataType] = {
    "BIGINT": LongType(),
    "DOUBLE": DoubleType(),
    "FLOAT": DoubleType(),
    "DECIMAL": DoubleType(),
    "BOOLEAN": BooleanType(),
    "DATE": DateType(),
    "TIMESTAMP": TimestampType(),
}
"""Everything else, and what differs from record to record, stays text."""


def json_shapes(text: Column) -> Column:
    """The merged type of all JSON objects in a column, in the words of Spark's variants."""
    variant = f.try_parse_json(text)
    is_object = f.schema_of_variant(variant).startswith("OBJECT<")
    return f.schema_of_variant_agg(f.when(is_object, variant))


def inferred(records: DataFrame) -> DataFrame:
    """One row: the merged type of the values, as text, or null where none is an object."""
    return records.agg(json_shapes(f.col("value").cast("string")).alias("shape"))


def parse_shape(shape: str | None) -> StructType:
    """A type from the words of Spark's variants, without fields that were null so far."""
    found = _parsed(_Tokens(shape or "OBJECT<>"))
    return found if isinstance(found, StructType) else StructType()


def grown(known: DataType, seen: DataType) -> DataType:
    """The known type with the fields that were seen for the first time."""
    if isinstance(known, ArrayType) and isinstance(seen, ArrayType):
        return ArrayType(grown(known.elementType, seen.elementType))
    if isinstance(known, StructType) and isinstance(seen, StructType):
        return grown_struct(known, seen)
    return known


def grown_struct(known: StructType, seen: StructType) -> StructType:
    """The same for an object: new fields come last, in alphabetical order."""
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
    """What of an inferred type a table can hold as columns."""
    fields: dict[str, StructField] = {}
    for field in seen.fields:
        if _is_column_name(field.name):
            fields.setdefault(
                field.name.lower(), StructField(field.name, _storable(field.dataType))
            )
    return StructType(list(fields.values()))


def _storable(kind: DataType) -> DataType:
    """The type, where an object with names that no column can have is text."""
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
        assert taken == token, f"{token} expected in the type of a variant, {taken} found"


def _parsed(tokens: _Tokens) -> DataType | None:
    """One type; None where only nulls were seen."""
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
