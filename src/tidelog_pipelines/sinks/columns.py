"""Checks that the rows of a job fit the table that an earlier run has written."""

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from tidelog_pipelines.failures import JobFailed


class TableMismatch(JobFailed):
    """A table was written with another --value-format, --key-format or --schema."""


def check_columns(topic: str, existing: StructType, rows: StructType) -> None:
    """Raise if the type of a column in the table differs from its type in these rows."""
    for name in set(existing.names) & set(rows.names):
        found = difference(name, existing[name].dataType, rows[name].dataType)
        if found is not None:
            raise TableMismatch(
                f"the table of topic {topic} was written with another --value-format, "
                f"--key-format or --schema: {found}. Give the earlier ones, or another --out."
            )


def difference(path: str, old: DataType, new: DataType) -> str | None:
    """The first column whose old and new types differ. Columns that one side lacks are skipped."""
    if isinstance(old, StructType) and isinstance(new, StructType):
        types = {field.name: field.dataType for field in old.fields}
        found = (
            difference(f"{path}.{field.name}", types[field.name], field.dataType)
            for field in new.fields
            if field.name in types
        )
        return next(filter(None, found), None)
    if isinstance(old, ArrayType) and isinstance(new, ArrayType):
        return difference(f"{path}.element", old.elementType, new.elementType)
    if isinstance(old, MapType) and isinstance(new, MapType):
        return difference(f"{path}.value", old.valueType, new.valueType)
    if old.simpleString() == new.simpleString():
        return None
    return f"{path} is {old.simpleString()} there, and {new.simpleString()} here"


def has_column(table: StructType, dotted: str) -> bool:
    """Whether a table has a column, or a field of a struct such as `value.id`."""
    kind: DataType = table
    for part in dotted.split("."):
        if not isinstance(kind, StructType) or part not in kind.names:
            return False
        kind = kind[part].dataType
    return True
