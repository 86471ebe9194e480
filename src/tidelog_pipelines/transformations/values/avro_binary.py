"""Decodes Avro's binary encoding strictly.

Invariant: every byte of a value belongs to the record that the schema describes, or the value is
`Refused`. The values have the types that Spark's own Avro reader gives them.
"""

import json
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from struct import unpack
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tidelog_pipelines.transformations.values import framing
from tidelog_pipelines.transformations.values.strict_json import Limits, Refused, check_size

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
MICROS_PER_MILLI = 1_000
MOST_MICROS = 2**63 - 1
MOST_ELEMENTS = 100_000
"""A list or map may have this many elements, or one per byte of the value if that is more.

Without a limit, a short value could have any number of nulls, because a null takes no bytes.
"""
EXACT = Context(prec=60)
"""A context with more digits than any DECIMAL has."""

Read = Callable[["Cursor"], Any]
Compiled = dict[str, Any]
"""Named types by their full name."""


class Cursor:
    """The bytes of one value, and the position of the next byte to read."""

    __slots__ = ("at", "raw")

    def __init__(self, raw: bytes, at: int) -> None:
        self.raw, self.at = raw, at

    def take(self, count: int) -> bytes:
        start, end = self.at, self.at + count
        if count < 0 or end > len(self.raw):
            raise Refused("the value does not match the Avro schema: it ends too early")
        self.at = end
        return self.raw[start:end]

    def read_long(self) -> int:
        """A zigzag number of at most 64 bits."""
        raw, at, shift, found = self.raw, self.at, 0, 0
        try:
            while True:
                byte = raw[at]
                at += 1
                found |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
        except IndexError:
            raise Refused("the value does not match the Avro schema: it ends too early") from None
        if found >= 2**64 or shift > 63:
            raise mismatch("a number has more than 64 bits")
        self.at = at
        return (found >> 1) ^ -(found & 1)

    def read_int(self) -> int:
        found = self.read_long()
        if not -(2**31) <= found < 2**31:
            raise mismatch("an int has more than 32 bits")
        return found

    def read_boolean(self) -> bool:
        byte = self.take(1)[0]
        if byte > 1:
            raise mismatch("a boolean is neither 0 nor 1")
        return byte == 1

    def read_float(self) -> float:
        return float(unpack("<f", self.take(4))[0])

    def read_double(self) -> float:
        return float(unpack("<d", self.take(8))[0])

    def read_bytes(self) -> bytes:
        return self.take(self.read_long())

    def read_string(self) -> str:
        try:
            return self.take(self.read_long()).decode()
        except UnicodeDecodeError:
            raise mismatch("a string is not UTF-8") from None


class AvroDecoder:
    """Decodes values of one schema, with or without a schema registry's header."""

    def __init__(self, schema: str, kind: StructType, schema_id: int | None, limits: Limits):
        self._read = _Compiler().compile(json.loads(schema), kind, "")
        self._schema_id = schema_id
        self._limits = limits

    def decode(self, raw: bytes, at: tuple[int, int]) -> tuple[Any, str | None]:
        """The record, and None, because nothing is left over. Raises `Refused`."""
        check_size(raw, self._limits)
        start = 0 if self._schema_id is None else _after_header(raw, self._schema_id)
        return read_whole(self._read, raw, start), None


def read_whole(read: Read, raw: bytes, start: int) -> Any:
    """The record that begins at `start`. Raises `Refused` if bytes follow the record."""
    cursor = Cursor(raw, start)
    try:
        found = read(cursor)
    except RecursionError:
        raise mismatch("it is nested too deeply") from None
    if left := len(raw) - cursor.at:
        raise mismatch(f"{left} bytes follow the record")
    return found


def _after_header(raw: bytes, schema_id: int) -> int:
    found = framing.schema_id(raw)
    if found != schema_id:
        raise Refused(f"the value has schema id {found}, not {schema_id}")
    return framing.HEADER_BYTES


def mismatch(why: str) -> Refused:
    return Refused(f"the value does not match the Avro schema: {why}")


class _Compiler:
    """Compiles a schema to a function that reads a value of this schema."""

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}

    def compile(self, schema: Any, kind: DataType, space: str) -> Read:
        if isinstance(schema, list):
            return self._union(schema, kind, space)
        if isinstance(schema, str):
            schema, space = self._resolved(schema, space)
        name = schema["type"]
        if name in ("record", "error", "enum", "fixed"):
            space = self._remember(schema, space)
        match name:
            case "record" | "error":
                return self._record(schema, kind, space)
            case "enum":
                return enum(schema["symbols"])
            case "fixed":
                size = schema["size"]
                return _converted(lambda cursor: cursor.take(size), schema, kind)
            case "array":
                assert isinstance(kind, ArrayType)
                return blocks(self.compile(schema["items"], kind.elementType, space))
            case "map":
                assert isinstance(kind, MapType)
                return map_of(self.compile(schema["values"], kind.valueType, space))
            case _ if name in PRIMITIVES:
                return _converted(primitive(name), schema, kind)
        return self.compile(name, kind, space)  # for {"type": {"type": ...}} and {"type": [...]}

    def _resolved(self, name: str, space: str) -> tuple[dict[str, Any], str]:
        if name in PRIMITIVES:
            return {"type": name}, space
        for full in (f"{space}.{name}", name):
            if full in self._named:
                return self._named[full], full.rpartition(".")[0]
        raise KeyError(name)

    def _remember(self, schema: Mapping[str, Any], space: str) -> str:
        """Store a named type under its full name; returns the namespace for names in this type."""
        name = schema["name"]
        if "." in name:
            space = name.rpartition(".")[0]
        else:
            space = schema.get("namespace", space)
            name = f"{space}.{name}" if space else name
        self._named[name] = schema
        return space

    def _record(self, schema: Mapping[str, Any], kind: DataType, space: str) -> Read:
        assert isinstance(kind, StructType)
        types = [one.dataType for one in kind.fields]
        fields = [
            (field["name"], self.compile(field["type"], inner, space))
            for field, inner in zip(schema["fields"], types, strict=True)
        ]
        return lambda cursor: {name: read(cursor) for name, read in fields}

    def _union(self, branches: list[Any], kind: DataType, space: str) -> Read:
        """Read a union as Spark does: a nullable type, a wider number, or a struct of branches."""
        others = [one for one in branches if _type_name(one) != "null"]
        names = {_type_name(one) for one in others}
        readers: list[Read] = []
        is_choice = len(others) > 1 and names not in ({"int", "long"}, {"float", "double"})
        for branch in branches:
            if _type_name(branch) == "null":
                readers.append(lambda _: None)
            elif is_choice:
                assert isinstance(kind, StructType)
                field = kind.fields[others.index(branch)]
                readers.append(member(field.name, self.compile(branch, field.dataType, space)))
            else:
                readers.append(self.compile(branch, kind, space))
        return union(readers)


def union(readers: list[Read]) -> Read:
    def read(cursor: Cursor) -> Any:
        index = cursor.read_long()
        if not 0 <= index < len(readers):
            raise mismatch(f"a union has no branch {index}")
        return readers[index](cursor)

    return read


def _type_name(schema: Any) -> str:
    if isinstance(schema, dict):
        inner = schema["type"]
        return inner if isinstance(inner, str) else "union"
    return schema if isinstance(schema, str) else "union"


def member(name: str, read: Read) -> Read:
    return lambda cursor: {name: read(cursor)}


def _entry(read: Read) -> Read:
    return lambda cursor: (cursor.read_string(), read(cursor))


def enum(symbols: list[str]) -> Read:
    def read(cursor: Cursor) -> str:
        index = cursor.read_long()
        if not 0 <= index < len(symbols):
            raise mismatch(f"an enum has no symbol {index}")
        return symbols[index]

    return read


def blocks(read: Read) -> Read:
    """Read blocks of elements. Each begins with a count. After a negative count, a size follows."""

    def all_blocks(cursor: Cursor) -> list[Any]:
        found: list[Any] = []
        while count := cursor.read_long():
            end = None
            if count < 0:
                count, size = -count, cursor.read_long()
                end = cursor.at + size
            if len(found) + count > max(MOST_ELEMENTS, len(cursor.raw)):
                raise mismatch(f"a list or map has more than {count - 1} elements")
            for _ in range(count):
                found.append(read(cursor))
            if end is not None and end != cursor.at:
                raise mismatch("a block has another size than it tells")
        return found

    return all_blocks


def map_of(read_value: Read) -> Read:
    entries = blocks(_entry(read_value))

    def read(cursor: Cursor) -> list[Any]:
        found: list[Any] = entries(cursor)
        if len(dict(found)) < len(found):
            raise mismatch("a map has a key twice")
        return found

    return read


def primitive(name: str) -> Read:
    return {
        "null": lambda _: None,
        "boolean": Cursor.read_boolean,
        "int": Cursor.read_int,
        "long": Cursor.read_long,
        "float": Cursor.read_float,
        "double": Cursor.read_double,
        "bytes": Cursor.read_bytes,
        "string": Cursor.read_string,
    }[name]


def _converted(read: Read, schema: Mapping[str, Any], kind: DataType) -> Read:
    """Add the conversion of a logical type to a reader, if Spark has a type for it."""
    if isinstance(kind, DecimalType):
        return decimal(read, schema.get("scale", 0), kind)
    if isinstance(kind, TimestampType | TimestampNTZType):
        is_millis = schema.get("logicalType", "").endswith("-millis")
        return scaled_time(read, MICROS_PER_MILLI if is_millis else 1)
    return read


def scaled_time(read: Read, factor: int) -> Read:
    def scaled(cursor: Cursor) -> int:
        found = int(read(cursor)) * factor
        if not -MOST_MICROS <= found <= MOST_MICROS:
            raise mismatch("a timestamp is beyond what a table can hold")
        return found

    return scaled


def decimal(read: Read, scale: int, kind: DecimalType) -> Read:
    most = 10**kind.precision

    def scaled(cursor: Cursor) -> Decimal:
        unscaled = int.from_bytes(read(cursor), "big", signed=True)
        if not -most < unscaled < most:
            raise mismatch(f"a decimal has more than {kind.precision} digits")
        return Decimal(unscaled).scaleb(-scale, EXACT)

    return scaled
