"""Maintains a table with the history of each key: a row per record, with its time of validity.

Each change computes the whole history of the affected keys, from the table, the remembered deletes
and the new records. So a repeated change has no effect, and a late record is inserted between the
other records. Deletes are remembered before the table changes. If the job is killed in between, the
next run finds the deletes.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import BooleanType, StructType, TimestampType

from tidelog_pipelines.sinks.deletes import Deletes
from tidelog_pipelines.sinks.destinations import Destination
from tidelog_pipelines.sinks.tables import ChangingTables, same, unseen
from tidelog_pipelines.transformations.values.python_decoding import DELETED
from tidelog_pipelines.transformations.versions import (
    EVENT,
    IS_CURRENT,
    VALID_FROM,
    VALID_TO,
    VALIDITY,
    changed_versions,
)


def reduced(records: DataFrame) -> DataFrame:
    """The records of a micro-batch that can change the table."""
    return records


def columns(rows: StructType) -> StructType:
    """The columns of a table for these rows."""
    times = StructType(rows.fields).add(VALID_FROM, TimestampType()).add(VALID_TO, TimestampType())
    return times.add(IS_CURRENT, BooleanType())


def apply(
    tables: ChangingTables, at: Destination, table: DataFrame, records: DataFrame, count: int
) -> int:
    """Apply records, of which `count` are deletes; returns how many rows have changed.

    The records have the column DELETED.
    """
    deletes = Deletes(tables, at.topic)
    if count:
        deletes.remember_all(records)
    keys = records.select("key").distinct()
    stored = at.of_topic(table).select(*EVENT, VALID_FROM, VALID_TO, f.lit(False).alias(DELETED))
    if (gone := deletes.rows()) is not None:
        closing = gone.select(*EVENT, f.lit(True).alias(DELETED))
        stored = stored.unionByName(closing, allowMissingColumns=True)
    stored = stored.join(keys, "key", "left_semi")
    new = unseen(records.where(~f.col(DELETED)), stored)
    merged = tables.merge(
        at.table,
        at.with_topic(changed_versions(new, stored)),
        same(at.record),
        f"WHEN MATCHED THEN UPDATE SET {', '.join(f'{name} = s.{name}' for name in VALIDITY)} "
        "WHEN NOT MATCHED THEN INSERT *",
    )
    return merged.changed
