"""Stores the fields of a JSON object in typed columns, and keeps the rest unchanged.

Invariant: no part of an object is dropped. If a column can hold a value exactly, the value is
stored there. Otherwise the value is part of the rest, which is an object of the same structure. A
null field is stored as null, and so is a missing field.
"""

import base64
import binascii
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from struct import error as StructError  # noqa: N812
from struct import pack, unpack
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tidelog_pipelines.transformations.values.strict_json import Numeral, as_decimal, is_unicode

Position = tuple[int, int]
"""The partition and offset of a record."""
Path = tuple[str, ...]
"""The path to a value in an object: the names of the fields.

ELEMENT stands for the elements of a list.
"""
ELEMENT = "element"
ALWAYS: Position = (-1, -1)
UNFIT: Any = NotImplemented
"""The result of an `Accept` function if the column cannot hold the value exactly."""
NOTHING: Any = ...
"""The rest of a value that is stored completely.

UNFIT and NOTHING are Python singletons, so pickling preserves them.
"""
EXACT_IN_DOUBLE = 2**53
INTEGERS: dict[type[DataType], int] = {ByteType: 8, ShortType: 16, IntegerType: 32, LongType: 64}
MOST_SECONDS = 2**63 // 1_000_000 - 1
EXACT = Context(prec=60)
"""A context with more digits than any DECIMAL has."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Accept = Callable[[Any], Any]
"""A function from a JSON value to the value that a column stores, or to UNFIT."""


class ObjectColumn:
    """The fields of an object, each in its own column."""

    def __init__(self, kind: StructType, since: Mapping[Path, Position], path: Path = ()) -> None:
        self._since = since.get(path, ALWAYS)
        self._scalars: dict[str, Accept] = {}
        self._objects: dict[str, ObjectColumn | ListOrMapColumn] = {}
        for field in kind.fields:
            inner = (*path, field.name)
            if isinstance(field.dataType, StructType):
                self._objects[field.name] = ObjectColumn(field.dataType, since, inner)
            elif isinstance(field.dataType, ArrayType | MapType):
                self._objects[field.name] = ListOrMapColumn(field.dataType, since, inner)
            else:
                self._scalars[field.name] = scalar(field.dataType)

    def place(self, value: Any, at: Position) -> tuple[Any, Any]:
        """The part of a value that the column stores, and the rest, which may be NOTHING."""
        if type(value) is not dict or self._since > at:
            return None, value
        stored: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        scalars, objects = self._scalars, self._objects
        for name, one in value.items():
            if one is None:
                continue
            if (accept := scalars.get(name)) is not None:
                found = accept(one)
                if found is UNFIT:
                    rest[name] = one
                else:
                    stored[name] = found
            elif (inner := objects.get(name)) is not None:
                stored[name], left = inner.place(one, at)
                if left is not NOTHING:
                    rest[name] = left
            else:
                rest[name] = one
        return stored, rest or NOTHING


class ListOrMapColumn:
    """A list or a map. It is stored only if every element fits."""

    def __init__(self, kind: ArrayType | MapType, since: Mapping[Path, Position], path: Path):
        self._since = since.get(path, ALWAYS)
        self._is_map = isinstance(kind, MapType)
        inner = kind.valueType if isinstance(kind, MapType) else kind.elementType
        self._accept: Accept | None = None
        self._inner: ObjectColumn | ListOrMapColumn | None = None
        if isinstance(inner, StructType):
            self._inner = ObjectColumn(inner, since, (*path, ELEMENT))
        elif isinstance(inner, ArrayType | MapType):
            self._inner = ListOrMapColumn(inner, since, (*path, ELEMENT))
        else:
            self._accept = scalar(inner)

    def place(self, value: Any, at: Position) -> tuple[Any, Any]:
        """What the column stores, and the rest.

        If the value fits, all of it is stored and the rest is NOTHING. Otherwise None is stored and
        the rest is the whole value.
        """
        if self._since > at:
            return None, value
        stored: list[Any] = []
        if type(value) is dict and self._is_map:
            if not all(map(is_unicode, value)) or not self._store(value.values(), at, stored):
                return None, value
            return list(zip(value, stored, strict=True)), NOTHING
        if type(value) is list and not self._is_map and self._store(value, at, stored):
            return stored, NOTHING
        return None, value

    def _store(self, values: Iterable[Any], at: Position, stored: list[Any]) -> bool:
        """Add elements to `stored` until one does not fit; returns whether all elements fit."""
        for one in values:
            found = None if one is None else self._fitting(one, at)
            if found is UNFIT:
                return False
            stored.append(found)
        return True

    def _fitting(self, one: Any, at: Position) -> Any:
        if self._accept is not None:
            return self._accept(one)
        assert self._inner is not None
        stored, left = self._inner.place(one, at)
        return stored if left is NOTHING else UNFIT


def scalar(kind: DataType) -> Accept:
    """The `Accept` function for a column of this type. Raises KeyError for an unsupported type."""
    if isinstance(kind, DecimalType):
        return _decimal(kind.precision, kind.scale)
    if type(kind) in INTEGERS:
        return _integer(INTEGERS[type(kind)])
    return SCALARS[kind.typeName() if not isinstance(kind, StringType) else "string"]


def unsupported(kind: DataType) -> DataType | None:
    """The first part of this type that cannot store JSON values, if there is such a part."""
    if isinstance(kind, StructType):
        found = [unsupported(field.dataType) for field in kind.fields]
        return next(filter(None, found), None)
    if isinstance(kind, ArrayType):
        return unsupported(kind.elementType)
    if isinstance(kind, MapType):
        return unsupported(kind.valueType) if type(kind.keyType) is StringType else kind
    try:
        scalar(kind)
    except KeyError:
        return kind
    return None


def _integer(bits: int) -> Accept:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def accept(value: Any) -> Any:
        if type(value) is int:
            return value if low <= value <= high else UNFIT
        if type(value) is float and value.is_integer() and low <= value <= high:
            exact = as_decimal(value)
            return int(exact) if exact is not None and low <= exact <= high else UNFIT
        return UNFIT

    return accept


def _decimal(precision: int, scale: int) -> Accept:
    most = 10 ** (precision - scale)

    def accept(value: Any) -> Any:
        if type(value) is int:
            return Decimal(value) if -most < value < most else UNFIT
        if type(value) is not float and type(value) is not Numeral:
            return UNFIT
        exact = as_decimal(value)
        if exact is None or not -most < exact < most:
            return UNFIT
        _, digits, exponent = exact.as_tuple()
        assert isinstance(exponent, int)
        if exponent < -scale:  # zeros at the end can be dropped
            zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
            if exact and exponent + zeros < -scale:
                return UNFIT
            return exact.quantize(Decimal(1).scaleb(-scale), context=EXACT) if exact else Decimal(0)
        return exact

    return accept


def _boolean(value: Any) -> Any:
    return value if type(value) is bool else UNFIT


def _text(value: Any) -> Any:
    return value if type(value) is str and (value.isascii() or is_unicode(value)) else UNFIT


def _double(value: Any) -> Any:
    if type(value) is float:
        return value
    is_exact = type(value) is int and -EXACT_IN_DOUBLE <= value <= EXACT_IN_DOUBLE
    return float(value) if is_exact else UNFIT


def _float(value: Any) -> Any:
    """The nearest 32-bit float; UNFIT unless it equals the value when rounded to 1 to 9 digits."""
    if type(value) is not float and type(value) is not int:
        return UNFIT
    try:
        (near,) = unpack("f", pack("f", value))
    except (OverflowError, StructError):
        return UNFIT
    exact = as_decimal(value)
    is_exact = any(Decimal(f"{near:.{digits}g}") == exact for digits in range(1, 10))
    return near if math.isfinite(near) and is_exact else UNFIT


def _binary(value: Any) -> Any:
    if type(value) is not str:
        return UNFIT
    try:
        found = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return UNFIT
    return found if base64.b64encode(found).decode() == value else UNFIT


def _date(value: Any) -> Any:
    try:
        found = date.fromisoformat(value) if type(value) is str else None
    except ValueError:
        return UNFIT
    return found if found is not None and found.isoformat() == value else UNFIT


def _timestamp(value: Any) -> Any:
    """Microseconds since 1970. The value is a number of seconds, or a text in ISO 8601.

    A text without an offset is in UTC.
    """
    if type(value) is int:
        return value * 1_000_000 if abs(value) <= MOST_SECONDS else UNFIT
    found = _moment(value)
    if found is UNFIT:
        return UNFIT
    return _micros(found if found.tzinfo else found.replace(tzinfo=UTC))


def _local_timestamp(value: Any) -> Any:
    found = _moment(value)
    return UNFIT if found is UNFIT or found.tzinfo else _micros(found.replace(tzinfo=UTC))


def _moment(value: Any) -> Any:
    # Refuse digits beyond microseconds, which would be lost, and the comma as a decimal sign.
    if type(value) is not str or not value.isascii() or "," in value:
        return UNFIT
    if len(value.partition(".")[2].rstrip("Z").partition("+")[0].partition("-")[0]) > 6:
        return UNFIT
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return UNFIT


def _micros(moment: datetime) -> int:
    since = moment - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


SCALARS: dict[str, Accept] = {
    BooleanType.typeName(): _boolean,
    StringType.typeName(): _text,
    DoubleType.typeName(): _double,
    FloatType.typeName(): _float,
    BinaryType.typeName(): _binary,
    DateType.typeName(): _date,
    TimestampType.typeName(): _timestamp,
    TimestampNTZType.typeName(): _local_timestamp,
}
