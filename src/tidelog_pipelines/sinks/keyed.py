"""Creates tables whose rows change by the key of records, and applies decoded records to them.

Each call makes one commit of the table. A record has no effect if a newer record of its key was
applied before. So it is safe to repeat a call.
"""

from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from tidelog_pipelines.sinks import histories, upserts
from tidelog_pipelines.sinks.columns import check_columns
from tidelog_pipelines.sinks.destinations import Destination
from tidelog_pipelines.sinks.modes import HISTORY, UPSERT, Mode, check_mode, marked
from tidelog_pipelines.sinks.tables import ChangingTables, Layout
from tidelog_pipelines.transformations.values.decoding import table_rows
from tidelog_pipelines.transformations.values.python_decoding import DELETED, REASON

WAYS = {UPSERT: upserts, HISTORY: histories}


class Target(NamedTuple):
    """The table of a topic."""

    at: Destination
    mode: Mode
    layout: Layout
    """How the table's files are arranged, if the table is created."""


class Applied(NamedTuple):
    changed: int
    """The number of rows that were added, replaced or deleted."""
    refused: int
    """The number of records that could not be decoded."""


def apply(
    tables: ChangingTables, target: Target, existing: DataFrame | None, examined: DataFrame
) -> Applied:
    """Apply decoded records, which have the columns DELETED and REASON, to a table."""
    way = WAYS[target.mode.name]
    examined = examined.persist()
    records = way.reduced(table_rows(examined)).persist()
    try:
        # This query decodes the records. Later queries use the cached result.
        is_good = f.col(REASON).isNull()
        [(total, good, deletes)] = examined.agg(
            f.count("*"), f.count_if(is_good), f.count_if(is_good & f.col(DELETED))
        ).collect()
        table = _prepared(tables, target, existing, records.drop(DELETED))
        changed = way.apply(tables, target.at, table, records, deletes) if good else 0
        return Applied(changed, total - good)
    finally:
        records.unpersist()
        examined.unpersist()


def _prepared(
    tables: ChangingTables, target: Target, existing: DataFrame | None, rows: DataFrame
) -> DataFrame:
    """The table. It is created if it does not exist. Raises if the rows do not fit the table."""
    if existing is None:
        tables.create(target.at.table, _columns(target, rows), target.layout)
        return tables.existing(target.at.table)
    target.at.check(existing.schema)
    check_mode(target.at.topic, existing.schema, target.mode)
    check_columns(target.at.topic, existing.schema, rows.schema)
    return existing


def change_columns(tables: ChangingTables, target: Target, rows: DataFrame) -> None:
    """Give an empty table the columns for these rows."""
    tables.change_columns(target.at.table, _columns(target, rows))


def _columns(target: Target, rows: DataFrame) -> StructType:
    return marked(WAYS[target.mode.name].columns(rows.schema), target.mode)
