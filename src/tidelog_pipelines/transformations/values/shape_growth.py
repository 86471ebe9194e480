"""Extends the columns of a table to fit the schemas of its writers, one schema after the other.

Invariant: a column keeps its name and its values. A new field is appended. A type becomes wider if
the table can widen it. Any other difference makes the schema `Incompatible`. The result depends
only on the schemas and their order.
"""

from dataclasses import replace

from pyspark.sql.types import (
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StructType,
)

from tidelog_pipelines.transformations.values.shape_columns import conversion
from tidelog_pipelines.transformations.values.shapes import (
    NULL,
    Field,
    Incompatible,
    ListOf,
    MapOf,
    Scalar,
    Shape,
    Struct,
    clash,
    joined,
    matches,
    spark_type,
)

WIDER: dict[type[DataType], tuple[type[DataType], ...]] = {
    IntegerType: (LongType, DoubleType),
    FloatType: (DoubleType,),
}
Widened = tuple[tuple[str, ...], DataType]
"""The path of a column, and its new type."""


def grown(table: Struct, writer: Struct, *, widens: bool) -> Struct:
    """The columns of a table, extended to fit a writer's schema; raises `Incompatible`."""
    found = _merged(table, writer, "", widens)
    assert isinstance(found, Struct)
    return found


def _merged(table: Shape, writer: Shape, path: str, widens: bool) -> Shape:
    if table == NULL:
        return _columns(writer)
    if writer == NULL:
        return table
    match table, writer:
        case Struct(), Struct() if table.is_choice == writer.is_choice:
            return _struct(table, writer, path, widens)
        case Struct(is_choice=True), _:
            return _into_a_branch(table, writer, path, widens)
        case _, Struct(is_choice=True):
            return _of_branches(table, writer, path, widens)
        case Scalar(), Scalar():
            return _scalar(table, writer, path, widens)
        case ListOf(), ListOf():
            return ListOf(_merged(table.element, writer.element, joined(path, "element"), widens))
        case MapOf(), MapOf() if table.key == writer.key:
            inner = _merged(table.value, writer.value, joined(path, "value"), widens)
            return MapOf(table.key, inner)
    raise clash(path, writer, table)


def _columns(writer: Shape) -> Shape:
    """The columns for a shape that the table does not have yet."""
    match writer:
        case Struct():
            return _struct(Struct((), writer.is_choice), writer, "", True)
        case ListOf():
            return ListOf(_columns(writer.element))
        case MapOf():
            return MapOf(writer.key, _columns(writer.value))
    return writer


def _struct(table: Struct, writer: Struct, path: str, widens: bool) -> Struct:
    found = list(table.fields)
    # Delta ignores the case of names. Of two names that differ in case, the first has the column.
    taken = {field.name.lower() for field in table.fields}
    for field, column in zip(
        writer.fields, matches(writer, table, by_own_aliases=True), strict=True
    ):
        if column is not None:
            shape = _merged(column.shape, field.shape, joined(path, column.name), widens)
            names = {*column.aliases, *field.aliases, field.name} - {column.name}
            found[found.index(column)] = Field(column.name, shape, tuple(sorted(names)), None)
        elif field.name.lower() not in taken:
            taken.add(field.name.lower())
            found.append(replace(field, shape=_columns(field.shape), default=None))
    return replace(table, fields=tuple(found))


def _into_a_branch(table: Struct, writer: Shape, path: str, widens: bool) -> Struct:
    """Extend the first branch of a table's union that fits a writer's single type."""
    for number, field in enumerate(table.fields):
        try:
            shape = _merged(field.shape, writer, joined(path, field.name), widens)
        except Incompatible:
            continue
        fields = list(table.fields)
        fields[number] = replace(field, shape=shape)
        return replace(table, fields=tuple(fields))
    raise clash(path, writer, table)


def _of_branches(table: Shape, writer: Struct, path: str, widens: bool) -> Shape:
    """Extend a table's single type by the branches of a writer's union. One of them must fit."""
    fits = False
    for field in writer.fields:
        try:
            table = _merged(table, field.shape, path, widens)
            fits = True
        except Incompatible:
            continue  # a value of this branch is refused when it occurs
    if not fits:
        raise clash(path, writer, table)
    return table


def _scalar(table: Scalar, writer: Scalar, path: str, widens: bool) -> Scalar:
    if conversion(writer.type, table.type, path) is not None:
        return table
    if widens and _is_wider(writer.type, table.type):
        return writer
    raise clash(path, writer, table)


def _is_wider(new: DataType, old: DataType) -> bool:
    """Whether Delta can change the type of a column in place, with all values still exact."""
    if isinstance(new, DecimalType) and isinstance(old, DecimalType):
        whole = new.precision - new.scale >= old.precision - old.scale
        return whole and new.scale >= old.scale
    return isinstance(new, WIDER.get(type(old), ()))


def widened(existing: StructType, table: Struct) -> list[Widened]:
    """The columns of an existing table whose type is wider in `table`."""
    return list(_widened(existing, spark_type(table), ()))


def _widened(old: DataType, new: DataType, path: tuple[str, ...]) -> list[Widened]:
    inner = {"elementType": "element", "valueType": "value"}
    if isinstance(old, StructType) and isinstance(new, StructType):
        names = set(old.names)
        pairs = [(old[f.name].dataType, f.dataType, f.name) for f in new.fields if f.name in names]
        return [one for a, b, name in pairs for one in _widened(a, b, (*path, name))]
    for attribute, name in inner.items():
        if type(old) is type(new) and hasattr(old, attribute):
            return _widened(getattr(old, attribute), getattr(new, attribute), (*path, name))
    return [(path, new)] if old != new and _is_wider(new, old) else []
