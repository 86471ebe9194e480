"""Fits rows to the columns of a table, for formats that do not do so themselves."""

from collections.abc import Callable, Iterator

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

Path = tuple[str, ...]


def new_fields(table: DataType, rows: DataType, path: Path = ()) -> Iterator[tuple[Path, DataType]]:
    """The columns and nested fields that only the rows have, with their types."""
    if isinstance(table, StructType) and isinstance(rows, StructType):
        for field in rows.fields:
            below = (*path, field.name)
            if field.name in table.names:
                yield from new_fields(table[field.name].dataType, field.dataType, below)
            else:
                yield below, field.dataType
    elif isinstance(table, ArrayType) and isinstance(rows, ArrayType):
        yield from new_fields(table.elementType, rows.elementType, (*path, "element"))
    elif isinstance(table, MapType) and isinstance(rows, MapType):
        yield from new_fields(table.valueType, rows.valueType, (*path, "value"))


def completed(rows: DataFrame, table: StructType) -> DataFrame:
    """The rows, with null in each column, and in each nested field, that only the table has."""
    found = {}
    for field in table.fields:
        if field.name not in rows.columns:
            found[field.name] = f.lit(None).cast(field.dataType)
            continue
        complete = _completion(rows.schema[field.name].dataType, field.dataType)
        if complete is not None:
            found[field.name] = complete(f.col(field.name))
    return rows.withColumns(found) if found else rows


def _completion(kind: DataType, table: DataType) -> Callable[[Column], Column] | None:
    """A function that adds missing fields to a value; None if no field is missing."""
    if isinstance(kind, StructType) and isinstance(table, StructType):
        return _struct_completion(kind, table)
    if isinstance(kind, ArrayType) and isinstance(table, ArrayType):
        of_element = _completion(kind.elementType, table.elementType)
        if of_element is not None:
            return lambda column: f.transform(column, of_element)
    if isinstance(kind, MapType) and isinstance(table, MapType):
        of_value = _completion(kind.valueType, table.valueType)
        if of_value is not None:
            return lambda column: f.transform_values(column, lambda _, value: of_value(value))
    return None


def _struct_completion(kind: StructType, table: StructType) -> Callable[[Column], Column] | None:
    types = {field.name: field.dataType for field in table.fields}
    inner = {
        field.name: _completion(field.dataType, types.get(field.name, field.dataType))
        for field in kind.fields
    }
    missing = [field for field in table.fields if field.name not in kind.names]
    if not missing and not any(inner.values()):
        return None

    def complete(column: Column) -> Column:
        parts = [
            (one(column[name]) if one is not None else column[name]).alias(name)
            for name, one in inner.items()
        ]
        parts += [f.lit(None).cast(field.dataType).alias(field.name) for field in missing]
        return f.when(column.isNotNull(), f.struct(*parts))

    return complete


def ddl(kind: DataType) -> str:
    """A type in SQL. Spark's own text leaves the names of fields without quotes."""
    if isinstance(kind, StructType):
        fields = (f"{quoted(field.name)}: {ddl(field.dataType)}" for field in kind.fields)
        return f"STRUCT<{', '.join(fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{ddl(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{ddl(kind.keyType)}, {ddl(kind.valueType)}>"
    return kind.simpleString()


def quoted(*path: str) -> str:
    """The path of a field, or the parts of a name, quoted for SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)
