"""Compiles Avro schemas of a schema registry to shapes, and to functions that read values.

The types are those that Spark's own Avro reader gives, except for unions. A union of several types
is a struct with one field per type, and each field is named after its type. Spark numbers these
fields, but a number would change its meaning when a branch is added.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from tidelog_pipelines.transformations.values import avro_binary
from tidelog_pipelines.transformations.values.avro_binary import MICROS_PER_MILLI, PRIMITIVES, Read
from tidelog_pipelines.transformations.values.shapes import (
    NO_DEFAULT,
    NULL,
    TEXT,
    Field,
    Incompatible,
    ListOf,
    MapOf,
    Scalar,
    Shape,
    Struct,
)

TYPES: dict[str, DataType] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "string": StringType(),
}
TIMES: dict[tuple[str, str], DataType] = {
    ("int", "date"): DateType(),
    ("long", "timestamp-millis"): TimestampType(),
    ("long", "timestamp-micros"): TimestampType(),
    ("long", "local-timestamp-millis"): TimestampNTZType(),
    ("long", "local-timestamp-micros"): TimestampNTZType(),
}
MOST_DIGITS = 38
NAMED = ("record", "error", "enum", "fixed")
JSON_TYPES: dict[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "bytes": (str,),
    "string": (str,),
}


@dataclass(frozen=True)
class AvroWriter:
    """A schema, and the schemas that it refers to. Each schema follows those that it needs."""

    schema: str
    references: tuple[str, ...] = ()

    def compiled(self) -> tuple[Struct, Callable[[bytes, int], Any]]:
        """The shape of the values, and a function that reads a value; raises `Incompatible`."""
        compiler = _Compiler()
        try:
            for text in self.references:
                compiler.compile(json.loads(text), "")
            found = compiler.compile(json.loads(self.schema), "")
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise Incompatible(f"it is not a valid Avro schema ({error!r})") from None
        if not isinstance(found.shape, Struct) or found.shape.is_choice:
            raise Incompatible("it is not the schema of a record")
        return found.shape, lambda raw, at: avro_binary.read_whole(found.read, raw, at)


class Compiled(NamedTuple):
    """A type of a schema: how to read a value, its shape, and how to read a default in JSON."""

    read: Read
    shape: Shape
    of_json: Callable[[Any], Any]


class _Compiler:
    def __init__(self) -> None:
        self._named: dict[str, Compiled | None] = {}
        """Named types by full name. A type that is being compiled is None."""

    def compile(self, schema: Any, space: str) -> Compiled:
        if isinstance(schema, list):
            return self._union(schema, space)
        if isinstance(schema, str):
            return self._by_name(schema, space)
        name = schema["type"]
        if name in NAMED:
            return self._named_type(schema, space)
        if name == "array":
            inner = self.compile(schema["items"], space)
            return Compiled(
                avro_binary.blocks(inner.read),
                ListOf(inner.shape),
                lambda values: [inner.of_json(one) for one in values],
            )
        if name == "map":
            inner = self.compile(schema["values"], space)
            return Compiled(
                avro_binary.map_of(inner.read),
                MapOf(TEXT, inner.shape),
                lambda values: [(key, inner.of_json(one)) for key, one in values.items()],
            )
        if isinstance(name, str) and name in PRIMITIVES:
            return _primitive(name, schema)
        return self.compile(name, space)  # for {"type": {"type": ...}} and {"type": [...]}

    def _by_name(self, name: str, space: str) -> Compiled:
        if name in PRIMITIVES:
            return _primitive(name, {})
        for full in (f"{space}.{name}", name):
            if full in self._named:
                found = self._named[full]
                if found is None:
                    raise Incompatible(f"type {full} contains itself, and no table can hold that")
                return found
        raise KeyError(name)

    def _named_type(self, schema: Mapping[str, Any], space: str) -> Compiled:
        name = schema["name"]
        if "." not in name:
            space = schema.get("namespace", space)
            name = f"{space}.{name}" if space else name
        space = name.rpartition(".")[0]
        self._named[name] = None
        if schema["type"] == "enum":
            found = Compiled(avro_binary.enum(schema["symbols"]), TEXT, _of_text)
        elif schema["type"] == "fixed":
            found = _fixed(schema)
        else:
            found = self._record(schema, space)
        self._named[name] = found
        return found

    def _record(self, schema: Mapping[str, Any], space: str) -> Compiled:
        inner = {one["name"]: self.compile(one["type"], space) for one in schema["fields"]}
        fields = [_field(one, inner[one["name"]]) for one in schema["fields"]]
        readers = [(name, one.read) for name, one in inner.items()]

        def of_json(value: Any) -> dict[str, Any]:
            missing = {field.name: field.default for field in fields if field.name not in value}
            if NO_DEFAULT in missing.values():
                raise ValueError("a default lacks a field")
            return {name: inner[name].of_json(one) for name, one in value.items()} | missing

        shape = Struct(tuple(fields))
        return Compiled(
            lambda cursor: {name: read(cursor) for name, read in readers}, shape, of_json
        )

    def _union(self, branches: list[Any], space: str) -> Compiled:
        compiled = [self.compile(one, space) for one in branches]
        others = [number for number, one in enumerate(compiled) if one.shape != NULL]
        if len(others) <= 1:
            shape = compiled[others[0]].shape if others else NULL
            readers = [one.read for one in compiled]
            return Compiled(avro_binary.union(readers), shape, _first_that_fits(compiled))
        names = _branch_names([branches[number] for number in others])
        for number, name in zip(others, names, strict=True):
            compiled[number] = _branch(name, compiled[number])
        members = [
            Field(name, _inner(compiled[n].shape)) for n, name in zip(others, names, strict=True)
        ]
        readers = [one.read for one in compiled]
        shape = Struct(tuple(members), is_choice=True)
        return Compiled(avro_binary.union(readers), shape, _first_that_fits(compiled))


def _branch(name: str, inner: Compiled) -> Compiled:
    """One branch of a union of several types.

    Its value becomes a struct with one field, named after the branch.
    """
    shape = Struct((Field(name, inner.shape),), is_choice=True)
    return Compiled(
        avro_binary.member(name, inner.read), shape, lambda one: {name: inner.of_json(one)}
    )


def _inner(branch: Shape) -> Shape:
    assert isinstance(branch, Struct)
    return branch.fields[0].shape


def _branch_names(branches: Sequence[Any]) -> list[str]:
    """The short names of types. If these are not unique, the full names with underscores."""
    full = [_type_name(one) for one in branches]
    short = [name.rpartition(".")[2] for name in full]
    is_unique = len({name.lower() for name in short}) == len(short)
    return short if is_unique else [name.replace(".", "_") for name in full]


def _type_name(schema: Any) -> str:
    if isinstance(schema, str):
        return schema
    if schema["type"] in NAMED:
        space = schema.get("namespace", "")
        return f"{space}.{schema['name']}" if space else str(schema["name"])
    return _type_name(schema["type"])


def _field(schema: Mapping[str, Any], compiled: Compiled) -> Field:
    default = NO_DEFAULT
    if "default" in schema:
        default = compiled.of_json(schema["default"])
    return Field(schema["name"], compiled.shape, tuple(schema.get("aliases", ())), default)


def _first_that_fits(branches: Sequence[Compiled]) -> Callable[[Any], Any]:
    def of_json(value: Any) -> Any:
        for one in branches:
            try:
                return one.of_json(value)
            except (ValueError, TypeError, AttributeError, KeyError):
                continue
        raise ValueError(f"the default {value!r} fits no branch")

    return of_json


def _of_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"the default {value!r} is not text")
    return value


def _primitive(name: str, schema: Mapping[str, Any]) -> Compiled:
    if name == "null":
        return Compiled(avro_binary.primitive(name), NULL, _plain(name))
    kind, logical = TYPES[name], schema.get("logicalType")
    read, of_json = avro_binary.primitive(name), _plain(name)
    if name == "bytes":
        return _decimal_or_bytes(read, schema)
    found = TIMES.get((name, logical)) if isinstance(logical, str) else None
    if found is None:
        return Compiled(read, Scalar(kind), of_json)
    if isinstance(found, DateType):
        return Compiled(read, Scalar(found), of_json)
    factor = MICROS_PER_MILLI if str(logical).endswith("-millis") else 1
    scaled = avro_binary.scaled_time(read, factor)
    return Compiled(scaled, Scalar(found), lambda value: of_json(value) * factor)


def _fixed(schema: Mapping[str, Any]) -> Compiled:
    size = schema["size"]
    return _decimal_or_bytes(lambda cursor: cursor.take(size), schema)


def _decimal_or_bytes(read: Read, schema: Mapping[str, Any]) -> Compiled:
    precision, scale = schema.get("precision", 0), schema.get("scale", 0)
    # Avro ignores a logical type that is not valid.
    is_decimal = schema.get("logicalType") == "decimal" and precision >= 1
    if not is_decimal or not 0 <= scale <= precision <= MOST_DIGITS:
        return Compiled(read, Scalar(BinaryType()), _bytes)
    kind = DecimalType(precision, scale)

    def of_json(value: Any) -> Decimal:
        unscaled = int.from_bytes(_bytes(value), "big", signed=True)
        return Decimal(unscaled).scaleb(-scale)

    return Compiled(avro_binary.decimal(read, scale, kind), Scalar(kind), of_json)


def _bytes(value: Any) -> bytes:
    return _of_text(value).encode("latin-1")


def _plain(name: str) -> Callable[[Any], Any]:
    kinds = JSON_TYPES[name]

    def of_json(value: Any) -> Any:
        if type(value) not in kinds:
            raise ValueError(f"the default {value!r} is not of type {name}")
        return float(value) if name in ("float", "double") else value

    return of_json
