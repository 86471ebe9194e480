"""Writes the micro-batches of `ingest`: each topic's records to its table, bad ones to quarantine.

A record is written once for two reasons. (1) A batch that is run again covers the same records, and
the table recognises it. (2) Records that another checkpoint has written are left out, by partition
and offset. The second check costs nothing while batches begin where the table ends.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sinks.identities import Identities
from tidelog_pipelines.sinks.tables import FORMATS, RECORD, Batch, Tables, unseen, within
from tidelog_pipelines.sources.checkpoint import Checkpoint, Span
from tidelog_pipelines.sources.kafka import Topics
from tidelog_pipelines.transformations.decoding import (
    Format,
    Json,
    Raw,
    Text,
    decoded,
    quarantined,
    table_rows,
)
from tidelog_pipelines.transformations.json_growth import WIDE, Grown, grow
from tidelog_pipelines.transformations.python_decoding import observed
from tidelog_pipelines.transformations.strict_json import DEFAULT_LIMITS, Limits

QUARANTINE = "quarantine"
IN_QUARANTINE = ("topic", *RECORD)
PATHS_PER_FIELD = 10
"""How many paths one task collects for each column that a table may have."""


class Plan(NamedTuple):
    """The plan of an ingestion: plain values, which a Connect server can unpickle."""

    kafka: KafkaSettings
    out: str
    format: str
    checkpoint: str
    key: Raw | Text
    value: Format | None
    """None for JSON whose type is inferred and grows."""
    compact_every: int
    limits: Limits = DEFAULT_LIMITS
    most_fields: int = 1_000


@dataclass
class _Run:
    """The state kept between the batches of one run of the query."""

    tables: Tables
    checkpoint: Checkpoint
    identities: Identities
    query_id: str
    ends: dict[str, dict[int, int]] = field(default_factory=dict)
    """By table and partition, the offset after the last row."""


class Ingestion:
    """The function for foreachBatch."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._run: _Run | None = None
        self.quarantined = 0
        """Bad records since the start."""

    def __reduce__(self) -> tuple[type["Ingestion"], tuple[Plan]]:
        return Ingestion, (self._plan,)  # unpickled as a new object with the same plan

    def forget(self) -> None:
        """Drop the state about the tables, because the query starts again."""
        self._run = None

    def __call__(self, records: DataFrame, number: int) -> None:
        run = self._run = self._run or self._begin(records.sparkSession)
        batch = Batch(run.query_id, number)
        spans = run.checkpoint.spans(number)
        run.identities.remember(run.identities.check(list(spans)), batch)
        # Without this, a batch that is used more than once is fetched more than once.
        is_reread = len(spans) > 1 or self._plan.value is None
        records = records.persist() if is_reread else records
        try:
            for topic, found in spans.items():
                of_topic = records.where(f.col("topic") == topic) if len(spans) > 1 else records
                self._write_topic(run, topic, of_topic, found, batch)
        finally:
            if is_reread:
                records.unpersist()
        if self._plan.compact_every and (number + 1) % self._plan.compact_every == 0:
            compact(run.tables, list(spans))

    def _begin(self, spark: SparkSession) -> _Run:
        tables = FORMATS[self._plan.format](spark, self._plan.out)
        checkpoint = Checkpoint(spark, self._plan.checkpoint)
        identities = Identities(tables, Topics(self._plan.kafka))
        return _Run(tables, checkpoint, identities, checkpoint.query_id())

    def _write_topic(
        self, run: _Run, topic: str, records: DataFrame, spans: list[Span], batch: Batch
    ) -> None:
        name = table_of(topic)
        existing = run.tables.rows(name)
        value = self._plan.value or self._grown(run, name, existing, records)
        rows = table_rows(decoded(records, self._plan.key, value))
        if existing is not None and self._overlaps(run, name, existing, spans):
            old = run.tables.not_of(existing, batch).where(within(spans))
            rows = unseen(rows, old)
        written = run.tables.append(name, rows, batch)
        ends = run.ends.setdefault(name, {})
        ends.update({span.partition: max(span.end, ends.get(span.partition, 0)) for span in spans})
        if written < sum(span.end - span.start for span in spans):
            # Some are bad, were already written, or are not records (compaction gaps, markers).
            self._quarantine(run, topic, records, value, spans, batch)

    def _quarantine(
        self,
        run: _Run,
        topic: str,
        records: DataFrame,
        value: Format,
        spans: list[Span],
        batch: Batch,
    ) -> None:
        bad = quarantined(records, self._plan.key, value)
        existing = run.tables.rows(QUARANTINE)
        if existing is not None:
            old = run.tables.not_of(existing, batch).where(f.col("topic") == topic)
            bad = unseen(bad, old.where(within(spans)), IN_QUARANTINE)
        if not bad.isEmpty():
            self.quarantined += run.tables.append(QUARANTINE, bad, batch, part=topic)

    def _grown(self, run: _Run, name: str, existing: DataFrame | None, records: DataFrame) -> Json:
        """The columns of a table, extended by the fields of these records."""
        known = _value_type(existing)
        most, limits = self._plan.most_fields, self._plan.limits
        seen = observed(records, known, limits, PATHS_PER_FIELD * most)
        grown: Grown = grow(known, seen, most, widens=run.tables.can_widen)
        if grown.widened:
            run.tables.widen(name, [("value", *path) for path in grown.widened], WIDE)
        return Json(grown.type, grown.since, limits)

    def _overlaps(self, run: _Run, name: str, existing: DataFrame, spans: list[Span]) -> bool:
        """Whether a batch begins before the end of the table."""
        if name not in run.ends:
            last = existing.groupBy("partition").agg(f.max("offset").alias("last")).collect()
            run.ends[name] = {row["partition"]: row["last"] + 1 for row in last}
        ends = run.ends[name]
        return any(span.start < ends.get(span.partition, 0) for span in spans)


def table_of(topic: str) -> str:
    return f"tables/{topic}"


def compact(tables: Tables, topics: list[str]) -> None:
    """Merge the small files in the tables of these topics."""
    for topic in topics:
        if tables.rows(table_of(topic)) is not None:
            tables.compact(table_of(topic))


def _value_type(existing: DataFrame | None) -> StructType:
    """The type of a table's values so far."""
    if existing is None or "value" not in existing.columns:
        return StructType()
    kept = existing.schema["value"].dataType
    return kept if isinstance(kept, StructType) else StructType()
