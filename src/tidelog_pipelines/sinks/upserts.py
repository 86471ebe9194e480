"""Changes a table to one row per key of a topic, that of its newest record.

Each commit compares a record with the row of its key, and with the newest delete of its key. So a
repeated change has no effect, and an older record never replaces a newer one. A delete is
remembered before its row is removed. If the job is killed in between, the next run removes the row.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, StructType

from tidelog_pipelines.sinks.deletes import Deletes
from tidelog_pipelines.sinks.destinations import Destination
from tidelog_pipelines.sinks.tables import ChangingTables, same
from tidelog_pipelines.transformations.values.python_decoding import DELETED
from tidelog_pipelines.transformations.versions import is_newer, newest, unless_deleted_later

reduced = newest
"""The records of a micro-batch that can change the table."""


def columns(rows: StructType) -> StructType:
    """The columns of a table for these rows."""
    return rows


def apply(
    tables: ChangingTables, at: Destination, table: DataFrame, records: DataFrame, count: int
) -> int:
    """Apply the newest record of each key, of which so many delete. -> how many rows have changed.

    The records have the column DELETED.
    """
    found, deletes = records, Deletes(tables, at.topic)
    if (known := deletes.rows()) is not None:
        found = unless_deleted_later(found, known)
    if count:
        deletes.remember_newest(found)
    # In the merge, a null date marks a delete. All other rows have a date.
    source = _like(found, table.schema).withColumn("date", f.when(~f.col(DELETED), f.col("date")))
    newer = is_newer("s", "t")
    merged = tables.merge(
        at.table,
        source.drop(DELETED),
        same((*at.topic_column, "key")),
        f"WHEN MATCHED AND {newer} AND s.date IS NULL THEN DELETE "
        f"WHEN MATCHED AND {newer} THEN UPDATE SET * "
        "WHEN NOT MATCHED AND s.date IS NOT NULL THEN INSERT *",
    )
    return merged.changed


def _like(rows: DataFrame, table: StructType) -> DataFrame:
    """Add the table's further columns as null. Otherwise `UPDATE SET *` would keep old values."""
    found = {}
    for field in table.fields:
        if field.name not in rows.columns:
            found[field.name] = f.lit(None).cast(field.dataType)
        else:
            kind = rows.schema[field.name].dataType
            if (whole := _completed(f.col(field.name), kind, field.dataType)) is not None:
                found[field.name] = whole
    return rows.withColumns(found) if found else rows


def _completed(column: Column, kind: DataType, table: DataType) -> Column | None:
    """The struct, with the table's missing fields as null. None if no field is missing."""
    if not isinstance(kind, StructType) or not isinstance(table, StructType):
        return None
    parts, is_whole = [], True
    for field in kind.fields:
        inner = table[field.name].dataType if field.name in table.names else field.dataType
        whole = _completed(column[field.name], field.dataType, inner)
        is_whole = is_whole and whole is None
        parts.append((column[field.name] if whole is None else whole).alias(field.name))
    missing = [field for field in table.fields if field.name not in kind.names]
    if is_whole and not missing:
        return None
    parts += [f.lit(None).cast(field.dataType).alias(field.name) for field in missing]
    return f.when(column.isNotNull(), f.struct(*parts))
