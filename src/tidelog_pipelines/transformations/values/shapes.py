"""The shape of values, a common form for the schemas of writers and the columns of tables.

Avro and Protobuf schemas are converted to shapes. The columns of a table have a shape as well. So
one set of rules decides how a table grows (`shape_growth`) and where a value is stored
(`shape_columns`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
)

from tidelog_pipelines.transformations.values.strict_json import Refused

NO_DEFAULT: Any = ...
"""Marks a field without a default. It is a Python singleton, so pickling preserves it."""


@dataclass(frozen=True)
class Scalar:
    """A value of one of Spark's simple types."""

    type: DataType


@dataclass(frozen=True)
class ListOf:
    element: "Shape"


@dataclass(frozen=True)
class MapOf:
    key: Scalar
    value: "Shape"


@dataclass(frozen=True)
class Field:
    name: str
    shape: "Shape"
    aliases: tuple[str, ...] = ()
    """Other names of the same field."""
    default: Any = NO_DEFAULT
    """The value of the column if the writer's schema does not have the field."""


@dataclass(frozen=True)
class Struct:
    """A record, or a union (`is_choice`). A union's value is stored in the field of its branch."""

    fields: tuple[Field, ...] = ()
    is_choice: bool = False

    def get(self, name: str) -> Field | None:
        return next((field for field in self.fields if field.name == name), None)


Shape = Scalar | ListOf | MapOf | Struct
NULL = Scalar(NullType())
TEXT = Scalar(StringType())


class Incompatible(Refused):
    """A schema is not valid, or its values do not fit the table. The message is the reason."""


def joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def clash(path: str, writer: Shape, table: Shape) -> Incompatible:
    """The error for a field whose type in the writer does not fit its type in the table."""
    where = f"field {path}" if path else "the value"
    return Incompatible(f"{where} is {described(writer)}, and {described(table)} in the table")


def described(shape: Shape) -> str:
    match shape:
        case Scalar():
            return shape.type.simpleString().upper()
        case ListOf():
            return "a list"
        case MapOf():
            return "a map"
        case Struct():
            return "a union" if shape.is_choice else "a record"


def is_empty(shape: Shape) -> bool:
    """Whether no column can have this shape. Tables have no null columns and no empty structs."""
    match shape:
        case Scalar():
            return isinstance(shape.type, NullType)
        case ListOf():
            return is_empty(shape.element)
        case MapOf():
            return is_empty(shape.value)
        case Struct():
            return all(is_empty(field.shape) for field in shape.fields)


def spark_type(shape: Shape) -> DataType:
    """The type of a column for values of this shape, without the empty fields of structs."""
    match shape:
        case Scalar():
            return shape.type
        case ListOf():
            return ArrayType(spark_type(shape.element))
        case MapOf():
            return MapType(shape.key.type, spark_type(shape.value))
        case Struct():
            return struct_type(shape)


def struct_type(shape: Struct) -> StructType:
    kept = (field for field in shape.fields if not is_empty(field.shape))
    return StructType([StructField(field.name, spark_type(field.shape)) for field in kept])


def matches(writer: Struct, table: Struct, *, by_own_aliases: bool) -> Iterator[Field | None]:
    """For each field of a writer, the table's field with this name or an alias, or None.

    The aliases of the table's fields come first. The aliases of the writer's field are used only
    with `by_own_aliases`.
    """
    names = {field.name for field in writer.fields}
    columns = {field.name: field for field in table.fields}
    free = {name: field for name, field in columns.items() if name not in names}
    for field in writer.fields:
        if field.name in columns:
            yield columns[field.name]
            continue
        own = field.aliases if by_own_aliases else ()
        known = (one.name for one in free.values() if field.name in one.aliases)
        found = next((name for name in (*known, *own) if name in free), None)
        yield None if found is None else free.pop(found)
