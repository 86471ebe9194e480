"""Infers the columns of JSON objects, and adds columns as new fields occur.

Invariant: the columns depend only on the records and their order. It does not matter how the
records are cut into batches. The first value of a field decides the kind of its column: boolean,
integer, fraction, text, object or list. Nulls, empty objects and empty lists do not count as first
values. Later values of another kind never change the kind. A column of integers becomes DECIMAL if
a number does not fit BIGINT.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from tidelog_pipelines.transformations.values.json_columns import (
    ELEMENT,
    UNFIT,
    Path,
    Position,
    scalar,
)
from tidelog_pipelines.transformations.values.strict_json import Numeral, is_unicode

WIDE = DecimalType(38, 18)
"""Holds all integers of 64 bits, and fractions of up to 18 digits."""
NOT_IN_A_COLUMN_NAME = frozenset(" ,;{}()\n\t=")
LONGEST_NAME = 200
DEEPEST_COLUMN = 20
BOOLEAN, INTEGER, FRACTION, TEXT, OBJECT, LIST = range(6)

Place = tuple[int, int, int]
"""Where a value was seen: the partition and offset of its record, and the value's number in this
record.
"""
_IN_BIGINT, _IN_WIDE = scalar(LongType()), scalar(WIDE)


@dataclass
class Seen:
    """The first occurrence of each kind of value at one path."""

    first: dict[int, Place] = field(default_factory=dict)
    is_wide: bool = False
    """Whether a number does not fit BIGINT, but fits WIDE."""
    fields: dict[str, "Seen"] = field(default_factory=dict)
    """The fields of the objects at this path. The elements of lists are in `element`."""
    element: "Seen | None" = None

    def at_element(self) -> "Seen":
        self.element = self.element or Seen()
        return self.element

    def as_tuple(self) -> tuple[Any, ...]:
        """Plain values that another process can unpickle."""
        fields = {name: one.as_tuple() for name, one in self.fields.items()}
        return self.first, self.is_wide, fields, self.element and self.element.as_tuple()

    @classmethod
    def of_tuple(cls, values: tuple[Any, ...]) -> "Seen":
        first, is_wide, fields, element = values
        inner = {name: cls.of_tuple(one) for name, one in fields.items()}
        return cls(first, is_wide, inner, element and cls.of_tuple(element))

    def merge(self, other: "Seen") -> None:
        """Add the values seen in other records. The order of the merges does not matter."""
        for kind, place in other.first.items():
            self.first[kind] = min(place, self.first.get(kind, place))
        self.is_wide = self.is_wide or other.is_wide
        for name, one in other.fields.items():
            self.fields.setdefault(name, Seen()).merge(one)
        if other.element is not None:
            self.at_element().merge(other.element)


class Observer:
    """Collects the values for which columns may need to grow, at up to `most_paths` paths."""

    def __init__(self, known: StructType, most_paths: int) -> None:
        self._known = known
        self._room = most_paths
        self.seen = Seen()

    def observe(self, value: dict[str, Any], at: Position) -> None:
        """Examine the value of one record."""
        self._at, self._number = at, 0
        self._object(value, self._known, self.seen, 0)

    def _value(self, value: Any, known: DataType | None, seen: Seen, depth: int) -> Place | None:
        """Note a value in `seen`; returns the place of its first scalar that a column can hold."""
        self._number += 1
        if type(value) is dict:
            if depth >= DEEPEST_COLUMN or (known and not isinstance(known, StructType)):
                return None
            return self._note(seen, OBJECT, self._object(value, known, seen, depth))
        if type(value) is list:
            if depth >= DEEPEST_COLUMN or (known and not isinstance(known, ArrayType)):
                return None
            return self._note(seen, LIST, self._list(value, known, seen, depth))
        kind = kind_of(value)
        if kind is None:
            return None
        if kind in (INTEGER, FRACTION) and _IN_BIGINT(value) is UNFIT:
            seen.is_wide = seen.is_wide or _IN_WIDE(value) is not UNFIT
        return self._note(seen, kind, (*self._at, self._number))

    def _object(
        self, value: dict[str, Any], known: DataType | None, seen: Seen, depth: int
    ) -> Place | None:
        types = _types(known)
        first = None
        for name, one in value.items():
            if one is None:
                continue
            kind = types.get(name)
            if kind is not None and _is_expected(one, kind):
                continue
            if kind is None and not is_column_name(name):
                continue
            if (inner := seen.fields.get(name)) is None:
                if self._room <= 0:
                    continue
                self._room -= 1
                inner = seen.fields[name] = Seen()
            place = self._value(one, kind, inner, depth + 1)
            first = first or place
        return first

    def _list(
        self, value: list[Any], known: DataType | None, seen: Seen, depth: int
    ) -> Place | None:
        element = known.elementType if isinstance(known, ArrayType) else None
        inner, first = seen.at_element(), None
        for one in value:
            if one is not None and not (element is not None and _is_expected(one, element)):
                place = self._value(one, element, inner, depth + 1)
                first = first or place
        return first

    def _note(self, seen: Seen, kind: int, place: Place | None) -> Place | None:
        if place is not None:
            seen.first[kind] = min(place, seen.first.get(kind, place))
        return place


class Grown(NamedTuple):
    """The columns, extended by the values of some records."""

    type: StructType
    since: Mapping[Path, Position]
    """For each new list or object column, the first record with a value for it.

    Lists and objects of earlier records are not stored in the column.
    """
    widened: tuple[Path, ...]
    """The paths of the columns that were BIGINT and must become WIDE."""


def grow(known: StructType, seen: Seen, most_fields: int, *, widens: bool) -> Grown:
    """The known columns, extended by the seen values.

    New scalar columns are added in the order of their first values, until there are `most_fields`
    scalar columns in all.
    """
    growth = _Growth(widens)
    room = most_fields - _leaves(known)
    news = sorted(growth.news(known, seen, ()))
    allowed = {path for _, path in news[: max(room, 0)]}
    kind = growth.grown(known, seen, (), allowed)
    assert isinstance(kind, StructType)
    if news[: max(room, 0)] and not known.fields:
        growth.since[()] = news[0][0][:2]
    return Grown(kind, growth.since, tuple(growth.widened))


class _Growth:
    def __init__(self, widens: bool) -> None:
        self._widens = widens
        self.since: dict[Path, Position] = {}
        self.widened: list[Path] = []

    def news(self, known: DataType | None, seen: Seen, path: Path) -> Iterator[tuple[Place, Path]]:
        """The place and the path of each scalar that has no column yet."""
        kind = _kind(known, seen)
        if kind == OBJECT:
            types = _types(known)
            for name in _columns_of(types, seen):
                yield from self.news(types.get(name), seen.fields[name], (*path, name))
        elif kind == LIST and seen.element is not None:
            inner = known.elementType if isinstance(known, ArrayType) else None
            yield from self.news(inner, seen.element, (*path, ELEMENT))
        elif known is None and kind is not None:
            yield seen.first[kind], path

    def grown(
        self, known: DataType | None, seen: Seen, path: Path, allowed: set[Path]
    ) -> DataType | None:
        """The type of a column. None if the column has no scalar whose path is allowed."""
        kind = _kind(known, seen)
        if kind == OBJECT:
            return self._object(known, seen, path, allowed)
        if kind == LIST:
            return self._list(known, seen, path, allowed)
        if known is not None:
            if isinstance(known, LongType) and seen.is_wide and self._widens:
                self.widened.append(path)
                return WIDE
            return known
        if path not in allowed or kind is None:
            return None
        if kind == INTEGER:
            return WIDE if seen.is_wide and self._widens else LongType()
        return {BOOLEAN: BooleanType(), FRACTION: DoubleType(), TEXT: StringType()}[kind]

    def _object(
        self, known: DataType | None, seen: Seen, path: Path, allowed: set[Path]
    ) -> DataType | None:
        types = _types(known)
        fields = []
        for name, kind in types.items():
            inner = self.grown(kind, seen.fields.get(name, Seen()), (*path, name), allowed)
            fields.append(StructField(name, inner or kind))
        for name in _columns_of(types, seen):
            if name not in types:
                found = self.grown(None, seen.fields[name], (*path, name), allowed)
                if found is not None:
                    fields.append(StructField(name, found))
        if known is None and fields:
            self.since[path] = seen.first[OBJECT][:2]
        return StructType(fields) if fields or path == () else None

    def _list(
        self, known: DataType | None, seen: Seen, path: Path, allowed: set[Path]
    ) -> DataType | None:
        element = known.elementType if isinstance(known, ArrayType) else None
        found = self.grown(element, seen.element or Seen(), (*path, ELEMENT), allowed)
        if found is None:
            return known
        if known is None:
            self.since[path] = seen.first[LIST][:2]
        return ArrayType(found)


def kind_of(value: Any) -> int | None:
    """The kind of a scalar. None if no inferred column can hold the scalar."""
    kind = type(value)
    if kind is bool:
        return BOOLEAN
    if kind is str:
        return TEXT if is_unicode(value) else None
    if kind is float:
        return FRACTION
    if kind is int or kind is Numeral:
        return INTEGER if _IN_WIDE(value) is not UNFIT else None
    return None


def is_column_name(name: str) -> bool:
    """Whether a table can have a column of this name."""
    return (
        0 < len(name) <= LONGEST_NAME
        and NOT_IN_A_COLUMN_NAME.isdisjoint(name)
        and name.isprintable()
        and is_unicode(name)
    )


def folded(name: str) -> str:
    """A form of the name that is equal for all names that Spark treats as the same column."""
    return name.upper().lower().replace("i\u0307", "i")


def _is_expected(value: Any, known: DataType) -> bool:
    """Whether the value is a scalar for which the column need not change."""
    kind = type(value)
    if kind is dict or kind is list:
        return False
    return not isinstance(known, LongType) or (kind is int and _IN_BIGINT(value) is not UNFIT)


def _kind(known: DataType | None, seen: Seen) -> int | None:
    """The kind of a known column, or of the first value. TEXT stands for any known scalar."""
    if known is None:
        return min(seen.first, key=seen.first.__getitem__, default=None)
    if isinstance(known, StructType):
        return OBJECT
    return LIST if isinstance(known, ArrayType) else TEXT


def _types(known: DataType | None) -> dict[str, DataType]:
    if not isinstance(known, StructType):
        return {}
    return {one.name: one.dataType for one in known.fields}


def _columns_of(types: Mapping[str, DataType], seen: Seen) -> list[str]:
    """The seen fields that have or get a column: known columns, then new ones by first value.

    Of names that differ only in case, the first name gets the column.
    """
    taken = {folded(name): name for name in types}
    names = [name for name in seen.fields if name in types]
    new = [name for name, one in seen.fields.items() if name not in types and one.first]
    for name in sorted(new, key=lambda name: min(seen.fields[name].first.values())):
        if taken.setdefault(folded(name), name) == name:
            names.append(name)
    return names


def _leaves(kind: DataType) -> int:
    if isinstance(kind, StructType):
        return sum(_leaves(one.dataType) for one in kind.fields)
    return _leaves(kind.elementType) if isinstance(kind, ArrayType) else 1
