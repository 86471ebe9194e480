"""Decides how the values of a topic are decoded, and gives its table the columns for them."""

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidelog_pipelines.jobs.json_schemas import JSON, RegisteredJsonSchemas
from tidelog_pipelines.jobs.plan import Plan, table_of
from tidelog_pipelines.jobs.writer_schemas import WriterSchemas
from tidelog_pipelines.sinks.tables import Batch, Tables
from tidelog_pipelines.transformations.values.decoding import Format, Json
from tidelog_pipelines.transformations.values.json_growth import WIDE, grow
from tidelog_pipelines.transformations.values.json_validation import JsonSchemas
from tidelog_pipelines.transformations.values.python_decoding import observed
from tidelog_pipelines.transformations.values.registered import Columns
from tidelog_pipelines.transformations.values.shape_growth import widened

PATHS_PER_FIELD = 10
"""How many paths one task collects for each column that a table may have."""


class ValueColumns:
    def __init__(self, plan: Plan, tables: Tables, *, may_write: bool = True) -> None:
        """With `may_write` false, no table changes, and the columns are those of a trial."""
        self._plan = plan
        self._tables = tables
        self._may_write = may_write
        self._writers: WriterSchemas | None = None
        self._json_schemas: RegisteredJsonSchemas | None = None
        if (registry := plan.registry) is None:
            return
        if registry.type == JSON:
            self._json_schemas = RegisteredJsonSchemas(registry.registry)
        else:
            self._writers = WriterSchemas(registry, tables, may_write=may_write)

    def prepare(
        self, topic: str, records: DataFrame, batch: Batch
    ) -> tuple[Format, DataFrame | None]:
        """How to decode records of a topic, and its table with the columns for them.

        The table is None if the topic has none yet.
        """
        existing = self._tables.rows(table_of(topic))
        if self._writers is not None:
            found = self._writers.format(topic, records, batch)
            return found, self._widen(topic, existing, found.columns)
        valid = None if self._json_schemas is None else self._json_schemas.of(records)
        value = self._plan.value
        if value is None:
            return self._grow(topic, existing, records, valid)
        return (replace(value, schemas=valid) if isinstance(value, Json) else value), existing

    def _grow(
        self,
        topic: str,
        existing: DataFrame | None,
        records: DataFrame,
        valid: JsonSchemas | None,
    ) -> tuple[Json, DataFrame | None]:
        """The columns of a table, extended by the JSON fields of these records, and the table."""
        most, limits = self._plan.most_fields, self._plan.limits
        if not self._may_write:
            return Json(StructType(), limits=limits, schemas=valid), existing
        known = _value_type(existing)
        seen = observed(records, known, limits, PATHS_PER_FIELD * most, valid)
        grown = grow(known, seen, most, widens=self._tables.can_widen)
        if grown.widened:
            name = table_of(topic)
            self._tables.widen(name, [("value", *path) for path in grown.widened], WIDE)
            existing = self._tables.rows(name)
        return Json(grown.type, grown.since, limits, valid), existing

    def _widen(self, topic: str, existing: DataFrame | None, columns: Columns) -> DataFrame | None:
        """The table, after columns have got the wider types that new schemas give them."""
        changed = widened(_value_type(existing), columns.shape)
        if not changed or not self._may_write:
            return existing
        name = table_of(topic)
        for path, kind in changed if self._tables.can_widen else ():
            self._tables.widen(name, [("value", *path)], kind)
        return self._tables.rows(name)


def _value_type(existing: DataFrame | None) -> StructType:
    """The type of a table's values so far."""
    if existing is None or "value" not in existing.columns:
        return StructType()
    kept = existing.schema["value"].dataType
    return kept if isinstance(kept, StructType) else StructType()
