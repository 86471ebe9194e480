"""Decodes quarantined records again, and moves the decoded ones to the tables of their topics.

A record is first inserted into the table, unless the table has it, and then removed from
quarantine. If the job is killed between the two steps, the record is in both places. The next run
inserts nothing and removes the record from quarantine. So no record is lost, and no record is in a
table twice. If the rows of a table change by key, a record has no effect if a newer record of its
key was already applied.
"""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import uuid4

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.plan import Plan, decoder_of, key_of, target_of
from tidelog_pipelines.jobs.value_columns import ValueColumns
from tidelog_pipelines.sinks import keyed, quarantine, replayed
from tidelog_pipelines.sinks.columns import TableMismatch, check_columns
from tidelog_pipelines.sinks.destinations import Destination, destination, shown
from tidelog_pipelines.sinks.identities import destinations
from tidelog_pipelines.sinks.keyed import Target
from tidelog_pipelines.sinks.modes import APPEND, Mode, mode_of
from tidelog_pipelines.sinks.quarantine import QUARANTINE
from tidelog_pipelines.sinks.stored_formats import StoredFormats
from tidelog_pipelines.sinks.tables import RECORD, Batch, in_catalog
from tidelog_pipelines.sources.checkpoint import Span
from tidelog_pipelines.transformations.values.decoding import (
    Format,
    decoded,
    table_rows,
    with_deletes,
)
from tidelog_pipelines.transformations.values.python_decoding import DELETED, REASON


class Replayed(NamedTuple):
    """The outcome for the quarantined records of one topic."""

    topic: str
    passed: int
    reasons: dict[str, int]
    """How many records have failed again, by reason."""


class Choice(NamedTuple):
    """Which quarantined records to replay."""

    topics: tuple[str, ...] = ()
    """If empty, all topics are chosen."""
    reason: str = ""
    """A text that the reason must contain."""

    def covers(self, topic: str) -> Column:
        return (f.col("topic") == topic) & f.contains(f.col(REASON), f.lit(self.reason))


class Replay:
    def __init__(self, spark: SparkSession, plan: Plan, choice: Choice) -> None:
        self._plan = plan
        self._choice = choice
        self._stored = StoredFormats(spark, plan.out, plan.format)
        self._tables = self._stored.own
        found = self._tables.rows(QUARANTINE)
        if found is None:
            raise JobFailed(f"there is no quarantine of format {plan.format} in {plan.out}.")
        self._quarantine = found
        self._destinations = destinations(self._tables) or {}

    def topics(self) -> list[str]:
        """The chosen topics. Without a choice, all topics that have records in quarantine."""
        if self._choice.topics:
            return list(self._choice.topics)
        found = self._quarantine.select("topic").distinct().collect()
        return sorted(row["topic"] for row in found)

    def try_out(self, topic: str) -> Replayed:
        """Decode the records of a topic without writing anything."""
        records, stuck = self._records(topic)
        at = self._destination(topic)
        plan = self._plan_for(at)
        columns = ValueColumns(plan, self._stored.of(at.table), self._tables, may_write=False)
        value, existing = columns.prepare(at, records, _batch())
        examined = _decoded(plan, at, records, value).drop(DELETED)
        # With a registry, this check is not needed, because each schema was compared with the
        # table.
        if existing is not None and self._plan.registry is None and not existing.isEmpty():
            check_columns(topic, existing.schema, examined.drop(REASON).schema)
        return _counted(topic, examined, stuck)

    def replay(self, topic: str) -> Replayed:
        """Decode the records of a topic, and move the decoded ones to the topic's table."""
        records, stuck = self._records(topic)
        spans = _spans(records)
        at = self._destination(topic)
        plan = self._plan_for(at)
        value, _ = ValueColumns(plan, self._stored.of(at.table), self._tables).prepare(
            at, records, _batch()
        )
        examined = _decoded(plan, at, records, value).persist()
        try:
            found = _counted(topic, examined, stuck)
            if found.passed and plan.mode == APPEND:
                self._insert(at, table_rows(examined).drop(DELETED), spans)
            elif found.passed:
                self._apply(target_of(plan, at), examined)
            if spans:
                outcomes = examined.select(*RECORD, REASON)
                quarantine.settle(self._tables, topic, outcomes, decoder_of(plan))
        finally:
            examined.unpersist()
        return found

    def _records(self, topic: str) -> tuple[DataFrame, DataFrame]:
        """The records to decode, and those whose timestamp no table can hold."""
        chosen = self._quarantine.where(self._choice.covers(topic)).dropDuplicates(list(RECORD))
        has_time = f.col("timestamp").isNotNull()
        return chosen.where(has_time), chosen.where(~has_time)

    def _destination(self, topic: str) -> Destination:
        at = self._destinations.get(topic, destination(topic))
        if in_catalog(at.table) is not None and self._tables.rows(at.table) is None:
            raise JobFailed(
                f"the records of topic {topic} are in the table {shown(at.table)}, which does not "
                "exist here; give the --conf of its catalog."
            )
        return at

    def _plan_for(self, at: Destination) -> Plan:
        """The plan, with the mode of the topic's table."""
        existing = self._stored.of(at.table).rows(at.table)
        mode = Mode() if existing is None else mode_of(existing.schema)
        return self._plan._replace(mode=mode.name, envelope=mode.envelope)

    def _insert(self, at: Destination, rows: DataFrame, spans: Sequence[Span]) -> None:
        tables = self._stored.of(at.table)
        existing = tables.rows(at.table)
        try:
            if existing is None:
                tables.create(at.table, rows.schema, self._plan.layout)
            else:
                check_columns(at.topic, existing.schema, rows.schema)
        except TableMismatch:
            assert existing is not None
            if not existing.isEmpty():
                raise
            # The table has no rows so far, so its columns may still change.
            tables.change_columns(at.table, rows.schema)
        tables.insert_missing(at.table, rows, spans, at.record)

    def _apply(self, target: Target, examined: DataFrame) -> None:
        """Apply these records to the rows of their keys."""
        rows = table_rows(examined).drop(DELETED)
        at, tables = target.at, self._stored.of(target.at.table)
        existing = tables.existing(at.table)
        try:
            check_columns(at.topic, existing.schema, rows.schema)
        except TableMismatch:
            if not existing.isEmpty():
                raise
            keyed.change_columns(tables, target, rows)
            existing = tables.existing(at.table)
        keyed.apply(tables, target, existing, examined)
        replayed.remember(self._tables, at.topic, rows)


def _decoded(plan: Plan, at: Destination, records: DataFrame, value: Format) -> DataFrame:
    found = with_deletes(records.drop(REASON))
    return decoded(found, key_of(plan), value, also=at.topic_column)


def _batch() -> Batch:
    """A unique batch, which the table of schemas never mistakes for a repeated batch."""
    return Batch(f"replay-{uuid4().hex}", 0)


def _spans(records: DataFrame) -> list[Span]:
    """The range of offsets in each partition."""
    ends = records.groupBy("partition").agg(
        f.min("offset").alias("first"), f.max("offset").alias("last")
    )
    return sorted(Span(row["partition"], row["first"], row["last"] + 1) for row in ends.collect())


def _counted(topic: str, examined: DataFrame, stuck: DataFrame) -> Replayed:
    reasons = examined.select(REASON).unionByName(stuck.select(REASON))
    counts = {row[REASON]: row["count"] for row in reasons.groupBy(REASON).count().collect()}
    passed = counts.pop(None, 0)
    return Replayed(topic, passed, dict(sorted(counts.items())))
