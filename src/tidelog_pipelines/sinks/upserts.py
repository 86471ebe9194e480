"""Maintains a table with one row per key of a topic, from the newest record of the key.

Each commit compares a record with the row of its key, and with the newest delete of its key. So a
repeated change has no effect, and an older record never replaces a newer one. A delete is
remembered before its row is removed. If the job is killed in between, the next run removes the row.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from tidelog_pipelines.sinks.deletes import Deletes
from tidelog_pipelines.sinks.destinations import Destination
from tidelog_pipelines.sinks.tables import ChangingTables, same
from tidelog_pipelines.transformations.fitting import completed
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
    """Apply the newest record of each key; returns how many rows have changed.

    `count` of the records are deletes. The records have the column DELETED.
    """
    found, deletes = records, Deletes(tables, at.topic)
    if (known := deletes.rows()) is not None:
        found = unless_deleted_later(found, known)
    if count:
        deletes.remember_newest(found)
    # `UPDATE SET *` would keep old values in columns that only the table has.
    whole = completed(found, table.schema)
    # In the merge, a null date marks a delete. All other rows have a date.
    source = whole.withColumn("date", f.when(~f.col(DELETED), f.col("date")))
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
