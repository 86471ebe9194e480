"""Decides how the values of a topic are decoded, and adds columns for them to its table."""

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.json_schemas import JSON, RegisteredJsonSchemas
from tidelog_pipelines.jobs.plan import Plan
from tidelog_pipelines.jobs.writer_schemas import PROTOBUF, WriterSchemas
from tidelog_pipelines.sinks.destinations import Destination
from tidelog_pipelines.sinks.tables import Batch, Tables
from tidelog_pipelines.transformations.values.debezium import NO_ENVELOPE
from tidelog_pipelines.transformations.values.decoding import Format, Json
from tidelog_pipelines.transformations.values.json_columns import Path, Position
from tidelog_pipelines.transformations.values.json_growth import WIDE, grow
from tidelog_pipelines.transformations.values.json_validation import JsonSchemas
from tidelog_pipelines.transformations.values.python_decoding import json_parser, observed
from tidelog_pipelines.transformations.values.registered import Columns
from tidelog_pipelines.transformations.values.shape_growth import widened

PATHS_PER_FIELD = 10
"""A task collects up to this many JSON paths per column that a table may have."""
UNWRAPPED = "--value-format json, and avro with --schema-registry"
"""The formats of values whose envelopes can be unwrapped, for an error message."""


class ValueColumns:
    def __init__(
        self, plan: Plan, tables: Tables, shared: Tables | None = None, *, may_write: bool = True
    ) -> None:
        """`tables` has the topics' tables. `shared`, or else `tables`, has the writers' schemas.

        If `may_write` is false, no table changes; columns are as the table would get them.
        """
        self._plan = plan
        self._tables = tables
        self._may_write = may_write
        self._writers: WriterSchemas | None = None
        self._json_schemas: RegisteredJsonSchemas | None = None
        self._is_enveloped = plan.envelope != NO_ENVELOPE
        if self._is_enveloped and not _can_unwrap(plan):
            raise JobFailed(f"--envelope {plan.envelope} is for {UNWRAPPED}.")
        if (registry := plan.registry) is None:
            return
        if registry.type == JSON:
            self._json_schemas = RegisteredJsonSchemas(registry.registry)
        else:
            self._writers = WriterSchemas(
                registry,
                shared or tables,
                widens=tables.can_widen,
                may_write=may_write,
                is_enveloped=self._is_enveloped,
            )

    def prepare(
        self, at: Destination, records: DataFrame, batch: Batch
    ) -> tuple[Format, DataFrame | None]:
        """The format of a topic's values, and the topic's table with columns for these records.

        The table is None if it does not exist yet.
        """
        existing = self._tables.rows(at.table)
        if self._writers is not None:
            found = self._writers.format(at.schemas, records, batch)
            return found, self._widen(at.table, existing, found.columns)
        valid = None if self._json_schemas is None else self._json_schemas.of(records)
        value = self._plan.value
        if value is None:
            return self._grow(at.table, existing, records, valid)
        if isinstance(value, Json):
            value = replace(value, schemas=valid, is_enveloped=self._is_enveloped)
        return value, existing

    def _grow(
        self,
        name: str,
        existing: DataFrame | None,
        records: DataFrame,
        valid: JsonSchemas | None,
    ) -> tuple[Json, DataFrame | None]:
        """The JSON format with columns for all fields of these records, and the table."""
        most, limits = self._plan.most_fields, self._plan.limits
        if not self._may_write:
            return self._json(StructType(), {}, valid), existing
        known = _value_type(existing)
        parser = json_parser(limits, valid, is_enveloped=self._is_enveloped)
        seen = observed(records, known, PATHS_PER_FIELD * most, parser)
        grown = grow(known, seen, most, widens=self._tables.can_widen)
        if grown.widened:
            self._tables.widen(name, [("value", *path) for path in grown.widened], WIDE)
            existing = self._tables.rows(name)
        return self._json(grown.type, grown.since, valid), existing

    def _json(
        self, kind: StructType, since: Mapping[Path, Position], valid: JsonSchemas | None
    ) -> Json:
        return Json(kind, since, self._plan.limits, valid, self._is_enveloped)

    def _widen(self, name: str, existing: DataFrame | None, columns: Columns) -> DataFrame | None:
        """Give the table's columns the wider types of new schemas; returns the table."""
        changed = widened(_value_type(existing), columns.shape)
        if not changed or not self._may_write:
            return existing
        for path, kind in changed if self._tables.can_widen else ():
            self._tables.widen(name, [("value", *path)], kind)
        return self._tables.rows(name)


def _can_unwrap(plan: Plan) -> bool:
    if plan.registry is not None:
        return plan.registry.type != PROTOBUF
    return plan.value is None or isinstance(plan.value, Json)


def _value_type(existing: DataFrame | None) -> StructType:
    """The type of a table's values so far."""
    if existing is None or "value" not in existing.columns:
        return StructType()
    kept = existing.schema["value"].dataType
    return kept if isinstance(kept, StructType) else StructType()
