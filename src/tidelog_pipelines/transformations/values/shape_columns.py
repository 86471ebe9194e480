"""Stores decoded values in the columns of a table, and keeps the rest.

Invariant: no part of a value is dropped. A column stores a value exactly, or the record is
`Refused` with the name of the field. Fields without a column form the rest, which is kept as JSON.
"""

import base64
import math
from collections.abc import Callable
from decimal import Decimal
from struct import pack, unpack
from typing import Any

from pyspark.sql.types import (
    BinaryType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
)

from tidelog_pipelines.transformations.values.json_columns import EXACT, NOTHING
from tidelog_pipelines.transformations.values.shapes import (
    NO_DEFAULT,
    NULL,
    Incompatible,
    ListOf,
    MapOf,
    Scalar,
    Shape,
    Struct,
    clash,
    is_empty,
    joined,
    matches,
)
from tidelog_pipelines.transformations.values.strict_json import Numeral, Refused

UNKNOWN = "#"
"""In a decoded value, fields that the writer's schema does not have are under this key."""
Place = Callable[[Any], tuple[Any, Any]]
"""A function from a value to the part that the column stores, and the rest.

The value is never null. If there is no rest, the rest is NOTHING.
"""
Convert = Callable[[Any], Any]


def placing(writer: Shape, table: Shape, path: str = "", *, is_fixed: bool = False) -> Place:
    """The function that stores a writer's values in a table; raises `Incompatible`.

    With `is_fixed`, the user has chosen the columns, and the writer's aliases are ignored. A column
    that the writer does not have must have a default.
    """
    if writer == NULL:
        return stored_as_it_is
    match writer, table:
        case Struct(), Struct() if writer.is_choice == table.is_choice:
            return _record(writer, table, path, is_fixed)
        case Struct(is_choice=True), _:
            return _from_branches(writer, table, path, is_fixed)
        case _, Struct(is_choice=True):
            return _into_branch(writer, table, path, is_fixed)
        case Scalar(), Scalar():
            found = conversion(writer.type, table.type, path)
            if found is not None:
                return stored_as_it_is if found is _same else _converted(found)
        case ListOf(), ListOf():
            inner = joined(path, "element")
            return _list(placing(writer.element, table.element, inner, is_fixed=is_fixed))
        case MapOf(), MapOf() if writer.key == table.key:
            inner = joined(path, "value")
            return _map(placing(writer.value, table.value, inner, is_fixed=is_fixed))
    raise clash(path, writer, table)


def stored_as_it_is(value: Any) -> tuple[Any, Any]:
    return value, NOTHING


def _converted(convert: Convert) -> Place:
    return lambda value: (convert(value), NOTHING)


def _left(shape: Shape) -> Place:
    """The function for a field without a column. The whole value is the rest."""
    as_json = plain(shape)
    return lambda value: (None, as_json(value))


def _record(writer: Struct, table: Struct, path: str, is_fixed: bool) -> Place:
    steps: list[tuple[str, str, Place]] = []
    found = list(matches(writer, table, by_own_aliases=not is_fixed))
    for field, column in zip(writer.fields, found, strict=True):
        if column is None or is_empty(column.shape):
            steps.append((field.name, field.name, _left(field.shape)))
        else:
            inner = joined(path, field.name)
            into = placing(field.shape, column.shape, inner, is_fixed=is_fixed)
            steps.append((field.name, column.name, into))
    defaults = {}
    for column in (one for one in table.fields if one not in found):
        if column.default is NO_DEFAULT and not table.is_choice:
            name = joined(path, column.name)
            raise Incompatible(f"there is no field {name}, and --schema has no default for it")
        if column.default is not NO_DEFAULT and column.default is not None:
            defaults[column.name] = column.default

    def place(value: dict[str, Any]) -> tuple[Any, Any]:
        stored, rest = dict(defaults), {}
        for name, column, inner in steps:
            one = value.get(name)
            if one is None:
                continue
            if inner is stored_as_it_is:
                stored[column] = one
                continue
            kept, left = inner(one)
            if kept is not None:
                stored[column] = kept
            if left is not NOTHING:
                rest[name] = left
        if UNKNOWN in value:
            rest.update(value[UNKNOWN])
        return stored, rest or NOTHING

    return place


def _from_branches(writer: Struct, table: Shape, path: str, is_fixed: bool) -> Place:
    """Store a writer's union in one column. Values of branches that do not fit are refused."""
    places: dict[str, Place] = {}
    for field in writer.fields:
        try:
            places[field.name] = placing(field.shape, table, path, is_fixed=is_fixed)
        except Incompatible as reason:
            places[field.name] = _refusing(str(reason))

    def place(value: dict[str, Any]) -> tuple[Any, Any]:
        ((branch, one),) = value.items()
        return places[branch](one)

    return place


def _refusing(reason: str) -> Place:
    def place(value: Any) -> tuple[Any, Any]:
        raise Refused(f"the value does not fit the table: {reason}")

    return place


def _into_branch(writer: Shape, table: Struct, path: str, is_fixed: bool) -> Place:
    """Store values of a writer's single type in the first branch of a table's union that fits."""
    for field in table.fields:
        try:
            inner = placing(writer, field.shape, path, is_fixed=is_fixed)
        except Incompatible:
            continue
        return _in_member(field.name, inner)
    raise clash(path, writer, table)


def _in_member(name: str, inner: Place) -> Place:
    def place(value: Any) -> tuple[Any, Any]:
        stored, rest = inner(value)
        return {name: stored}, rest

    return place


def _list(inner: Place) -> Place:
    """Store a list. The rest has an entry for each element, or null if the element has no rest."""
    if inner is stored_as_it_is:
        return stored_as_it_is

    def place(values: list[Any]) -> tuple[Any, Any]:
        pairs = [(None, NOTHING) if one is None else inner(one) for one in values]
        stored = [kept for kept, _ in pairs]
        if all(left is NOTHING for _, left in pairs):
            return stored, NOTHING
        return stored, [None if left is NOTHING else left for _, left in pairs]

    return place


def _map(inner: Place) -> Place:
    if inner is stored_as_it_is:
        return stored_as_it_is

    def place(entries: list[tuple[Any, Any]]) -> tuple[Any, Any]:
        stored, rest = [], {}
        for key, one in entries:
            kept, left = (None, NOTHING) if one is None else inner(one)
            stored.append((key, kept))
            if left is not NOTHING:
                rest[_name(key)] = left
        return stored, rest or NOTHING

    return place


def _same(value: Any) -> Any:
    return value


def conversion(writer: DataType, table: DataType, path: str) -> Convert | None:
    """The exact conversion of a writer's value to a column's. None if the types do not fit."""
    if writer == table or (type(writer), type(table)) in AS_IT_IS:
        return _same
    if isinstance(table, DecimalType):
        precision, scale = _digits(writer)
        fits = scale <= table.scale and precision - scale <= table.precision - table.scale
        return _decimal(table.scale) if fits else None
    make = CONVERSIONS.get((type(writer), type(table)))
    return None if make is None else make(path)


def _digits(kind: DataType) -> tuple[int, int]:
    """The maximum number of digits, and how many of them follow the decimal point."""
    if isinstance(kind, DecimalType):
        return kind.precision, kind.scale
    return INTEGER_DIGITS.get(type(kind), MORE_THAN_ANY), 0


def _decimal(scale: int) -> Convert:
    one = Decimal(1).scaleb(-scale)
    return lambda value: Decimal(value).quantize(one, context=EXACT)


def _exactly(convert: Callable[[int], float], kind: str, path: str) -> Convert:
    def converted(value: int) -> float:
        found = convert(value)
        if int(found) != value:
            raise Refused(f"field {path}: {value} is not exact as {kind}")
        return found

    return converted


def _text(path: str) -> Convert:
    def converted(value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise Refused(f"field {path}: the bytes are not UTF-8") from None

    return converted


INTEGER_DIGITS: dict[type[DataType], int] = {IntegerType: 10, LongType: 19}
MORE_THAN_ANY = 1_000
AS_IT_IS = {(IntegerType, LongType), (FloatType, DoubleType)}
CONVERSIONS: dict[tuple[type[DataType], type[DataType]], Callable[[str], Convert]] = {
    (IntegerType, DoubleType): lambda path: float,
    (LongType, DoubleType): lambda path: _exactly(float, "DOUBLE", path),
    (IntegerType, FloatType): lambda path: _exactly(_float, "FLOAT", path),
    (LongType, FloatType): lambda path: _exactly(_float, "FLOAT", path),
    (StringType, BinaryType): lambda path: str.encode,
    (BinaryType, StringType): _text,
}


def _float(value: int) -> float:
    return float(unpack("<f", pack("<f", value))[0])


def plain(shape: Shape) -> Convert:
    """The conversion of a value to JSON: bytes to Base64, and times to numbers since 1970."""
    match shape:
        case Scalar():
            return plain_scalar
        case ListOf():
            inner = plain(shape.element)
            return lambda values: [None if one is None else inner(one) for one in values]
        case MapOf():
            inner = plain(shape.value)
            return lambda entries: {
                _name(key): None if one is None else inner(one) for key, one in entries
            }
        case Struct():
            return _plain_struct({field.name: plain(field.shape) for field in shape.fields})


def _plain_struct(members: dict[str, Convert]) -> Convert:
    def convert(value: dict[str, Any]) -> dict[str, Any]:
        names = [name for name in members if value.get(name) is not None]
        found = {name: members[name](value[name]) for name in names}
        return found | value[UNKNOWN] if UNKNOWN in value else found

    return convert


def plain_scalar(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return Numeral(format(value, "f"))
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _name(key: Any) -> str:
    """The key of a map entry as a name in a JSON object."""
    return key if isinstance(key, str) else str(key).lower()
