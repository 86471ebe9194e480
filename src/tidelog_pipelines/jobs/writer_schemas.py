"""The schemas of a topic's writers, and the columns that they give to its table.

Without --schema, each new schema may add columns, in the order of the records. The table `schemas`
stores the schemas and this order. So after a restart, the job continues with the same columns and
the same decisions, and does not need the registry for schemas that it has seen before.
"""

import json
from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.sinks.tables import Batch, Tables
from tidelog_pipelines.sources.registry import RegisteredSchema, Registry, RegistryClient
from tidelog_pipelines.transformations.values.avro_writer import AvroWriter
from tidelog_pipelines.transformations.values.debezium import EnvelopeWriter
from tidelog_pipelines.transformations.values.decoding import Registered
from tidelog_pipelines.transformations.values.framing import (
    WriterKey,
    header,
    header_with_indexes,
)
from tidelog_pipelines.transformations.values.python_decoding import writer_keys
from tidelog_pipelines.transformations.values.registered import Columns, Writer, Writers
from tidelog_pipelines.transformations.values.shape_columns import placing
from tidelog_pipelines.transformations.values.shape_growth import grown
from tidelog_pipelines.transformations.values.shapes import Incompatible, Struct
from tidelog_pipelines.transformations.values.strict_json import DEFAULT_LIMITS, Limits

PROTOBUF = "PROTOBUF"
TABLE = "schemas"
ROWS = (
    "topic STRING, number INT, schema_id BIGINT, message STRING, schema STRING, `references` STRING"
    ", refused STRING"
)


class RegistryPlan(NamedTuple):
    """How values with a registry's header are decoded. It consists of plain values."""

    registry: Registry
    type: str
    """The type of the schemas, as the registry names it: AVRO or PROTOBUF."""
    reader: Struct | None = None
    """The columns, if the user has chosen them with --schema."""
    limits: Limits = DEFAULT_LIMITS


@dataclass
class _Known:
    """The schemas of a topic so far."""

    columns: Struct = field(default_factory=Struct)
    writers: dict[WriterKey, Writer] = field(default_factory=dict)
    refused: dict[WriterKey, str] = field(default_factory=dict)

    def __contains__(self, key: WriterKey) -> bool:
        return key in self.writers or key in self.refused

    def __len__(self) -> int:
        return len(self.writers) + len(self.refused)


class WriterSchemas:
    def __init__(
        self,
        plan: RegistryPlan,
        tables: Tables,
        *,
        widens: bool,
        may_write: bool = True,
        is_enveloped: bool = False,
    ) -> None:
        """The schemas are stored in `tables`. With `widens`, the topics' tables can widen columns.

        With `is_enveloped`, the schemas are those of Debezium's envelopes.
        """
        self._plan = plan
        self._is_enveloped = is_enveloped
        self._may_write = may_write
        self._tables = tables
        self._widens = widens
        self._client = RegistryClient(plan.registry)
        self._topics: dict[str, _Known] = {}

    def format(self, topic: str, records: DataFrame, batch: Batch) -> Registered:
        """The format of these records of a topic. Their new schemas are added first."""
        known = self._topics.get(topic)
        if known is None:
            known = self._topics[topic] = self._load(topic)
        read_header = header_with_indexes if self._plan.type == PROTOBUF else header
        found = writer_keys(records, read_header)
        unknown = self._add(topic, known, sorted(found, key=found.__getitem__), batch)
        usable = {key: known.writers[key] for key in found if key in known.writers}
        refused = {key: known.refused[key] for key in found if key in known.refused}
        columns = Columns(known.columns)
        if self._plan.reader is not None:
            columns = Columns(self._plan.reader, is_fixed=True)
        writers = Writers(usable, {**refused, **unknown})
        return Registered(read_header, writers, columns, self._plan.limits)

    def _add(
        self, topic: str, known: _Known, keys: list[WriterKey], batch: Batch
    ) -> dict[WriterKey, str]:
        """Add the new schemas; returns a reason for each schema id that the registry lacks."""
        first, rows = len(known), []
        unknown: dict[WriterKey, str] = {}
        for key in (one for one in keys if one not in known):
            schema = self._client.schema(key[0])
            if schema is None:
                unknown[key] = f"the schema registry has no schema with id {key[0]}"
                continue
            number = len(known)
            self._decide(known, key, schema)
            message, references = ".".join(map(str, key[1])), json.dumps(schema.references)
            reason = known.refused.get(key)
            rows.append((topic, number, key[0], message, schema.text, references, reason))
        if rows and self._plan.reader is None and self._may_write:
            frame = self._tables.frame(rows, ROWS).withColumn("date", f.current_date())
            self._tables.append(TABLE, frame, batch, part=f"{topic}-{first}")
        return unknown

    def _decide(self, known: _Known, key: WriterKey, schema: RegisteredSchema) -> None:
        """Extend the columns to fit a schema, or note why its records go to quarantine."""
        name = f"schema {key[0]}"
        if schema.type != self._plan.type:
            known.refused[key] = f"{name} is of type {schema.type}, not {self._plan.type}"
            return
        try:
            writer = _writer(key, schema)
            if self._is_enveloped:
                writer = EnvelopeWriter(writer)
            shape, _ = writer.compiled()
            if self._plan.reader is None:
                columns = grown(known.columns, shape, widens=self._widens)
                placing(shape, columns)
                known.columns = columns
            else:
                placing(shape, self._plan.reader, is_fixed=True)
        except Incompatible as reason:
            known.refused[key] = f"{name} does not fit the table: {reason}"
        else:
            known.writers[key] = writer

    def _load(self, topic: str) -> _Known:
        known = _Known()
        rows = self._tables.rows(TABLE) if self._plan.reader is None else None
        if rows is None:
            return known
        for row in rows.where(f.col("topic") == topic).orderBy("number").collect():
            indexes = tuple(int(index) for index in row["message"].split(".") if index)
            key = (row["schema_id"], indexes)
            references = tuple((name, text) for name, text in json.loads(row["references"]))
            if row["refused"] is not None:
                known.refused[key] = row["refused"]
            else:
                schema = RegisteredSchema(self._plan.type, row["schema"], references)
                self._decide(known, key, schema)
        return known


def _writer(key: WriterKey, schema: RegisteredSchema) -> Writer:
    if schema.type == PROTOBUF:
        # Imported only here, because the module needs the compiler and the runtime of Protobuf.
        from tidelog_pipelines.sources import protobuf_schemas

        return protobuf_schemas.writer(schema.text, schema.references, key[1])
    return AvroWriter(schema.text, tuple(text for _, text in schema.references))
