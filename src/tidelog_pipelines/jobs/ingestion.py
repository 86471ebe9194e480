"""Writes micro-batches of `ingest`: a topic's records to its table, bad records to quarantine.

Two checks ensure that a record is written only once. (1) A batch that is run again covers the same
records and has the same number, which the table recognises. (2) A record is left out if another
checkpoint or another decoder has already written its topic, partition and offset to the table or
to quarantine. After the first batch of a run, the second check costs nothing as long as each batch
begins where the table ends. Tables whose rows change by key need neither check: see
`sinks/keyed.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from tidelog_pipelines import streams
from tidelog_pipelines.failures import JobFailed, cause
from tidelog_pipelines.jobs import isolation
from tidelog_pipelines.jobs.plan import Plan, decoder_of, destination_of, key_of, target_of
from tidelog_pipelines.jobs.value_columns import ValueColumns
from tidelog_pipelines.sinks import dead_letters, deletes, keyed, replayed
from tidelog_pipelines.sinks.claims import turn
from tidelog_pipelines.sinks.columns import check_columns
from tidelog_pipelines.sinks.destinations import Destination
from tidelog_pipelines.sinks.identities import Identities
from tidelog_pipelines.sinks.modes import APPEND, Mode, check_mode
from tidelog_pipelines.sinks.quarantine import QUARANTINE
from tidelog_pipelines.sinks.table_formats.formats import FORMATS
from tidelog_pipelines.sinks.tables import (
    RECORD,
    Batch,
    ChangingTables,
    Layout,
    Tables,
    unseen,
    within,
)
from tidelog_pipelines.sources.checkpoint import Checkpoint, Span
from tidelog_pipelines.sources.kafka import Topics, earliest, table_of_spans
from tidelog_pipelines.sources.unreadable import unreadable
from tidelog_pipelines.transformations.values.decoding import (
    Format,
    Json,
    Raw,
    decoded,
    quarantined,
    table_rows,
    with_deletes,
)

IN_QUARANTINE = ("topic", *RECORD)


class RecordsExpired(JobFailed):
    """Records were deleted before they were read."""


class Part(NamedTuple):
    """The records of one topic in a batch."""

    at: Destination
    records: DataFrame
    spans: list[Span]
    batch: Batch
    tables: Tables
    """The tables of the topic's format."""
    unreadable: DataFrame | None = None
    """Quarantine rows for the records that Spark cannot read."""

    @property
    def topic(self) -> str:
        return self.at.topic


@dataclass
class QueryRun:
    """The state kept between the batches of one run of the query."""

    spark: SparkSession
    tables: Tables
    """The tables of the job's format. The quarantine has this format."""
    checkpoint: Checkpoint
    identities: Identities
    query_id: str
    columns: dict[str, ValueColumns] = field(default_factory=dict)
    """The columns of each topic. All topics without their own plan share the entry ""."""
    ends: dict[str, dict[int, int]] = field(default_factory=dict)
    """For each topic and partition, the offset after the last row in its table or in quarantine."""
    clustered: set[str] = field(default_factory=set)
    """The tables that are known to have the chosen clustering."""
    others: dict[str, Tables] = field(default_factory=dict)
    """The tables of the formats that topics have chosen."""

    def tables_for(self, plan: Plan) -> Tables:
        """The tables of the format that a topic has."""
        if plan.format == self.tables.format:
            return self.tables
        if plan.format not in self.others:
            self.others[plan.format] = FORMATS[plan.format](self.spark, plan.out)
        return self.others[plan.format]


class Ingestion:
    """The function for foreachBatch."""

    def __init__(
        self,
        plan: Plan,
        plans: Mapping[str, Plan] | None = None,
        *,
        report: Callable[[str], None] = streams.say,
    ) -> None:
        """`plan` applies to every topic that is not in `plans`."""
        self._plan = plan
        self._plans = dict(plans or {})
        self._report = report
        self._run: QueryRun | None = None
        self.quarantined = 0
        """The number of bad records since the start."""
        self.rows = 0
        """The number of rows written to tables since the start."""

    def __reduce__(self) -> tuple[type["Ingestion"], tuple[Plan, dict[str, Plan]]]:
        return Ingestion, (self._plan, self._plans)  # unpickled as a new object

    def forget(self) -> None:
        """Drop the state about the tables. Call this before the query starts again."""
        self._run = None

    def __call__(self, records: DataFrame, number: int) -> None:
        with turn(self._plan.out):
            self._write(records, number)

    def _write(self, records: DataFrame, number: int) -> None:
        run = self._run = self._run or self._begin(records.sparkSession)
        batch = Batch(run.query_id, number, decoder_of(self._plan))
        covered = run.checkpoint.spans(number)
        spans = self._checked(run, covered, batch)
        plans = [self._plan_of(topic) for topic in spans]
        # Without `persist`, Spark would fetch a batch from Kafka again for each use.
        is_reread = len(spans) > 1 or any(
            plan.value is None or plan.registry is not None for plan in plans
        )
        records = records.persist() if is_reread else records
        try:
            for (topic, found), plan in zip(spans.items(), plans, strict=True):
                of_topic = records.where(f.col("topic") == topic) if len(covered) > 1 else records
                decoder = batch._replace(decoder=decoder_of(plan))
                at = destination_of(plan, topic)
                tables = run.tables_for(plan)
                self._write_part(run, Part(at, of_topic, found, decoder, tables))
        finally:
            if is_reread:
                records.unpersist()
        self._finish(run, spans, number)

    def _plan_of(self, topic: str) -> Plan:
        return self._plans.get(topic, self._plan)

    def _checked(
        self, run: QueryRun, spans: dict[str, list[Span]], batch: Batch
    ) -> dict[str, list[Span]]:
        """The spans to write.

        Raises if a topic was deleted and created again since it was last read.
        """
        run.identities.remember(run.identities.check(list(spans)), batch)
        return spans

    def _finish(self, run: QueryRun, spans: dict[str, list[Span]], number: int) -> None:
        """Check for expired records and compact, after all topics of a batch are written."""
        if self._plan.skips_deleted:
            self._check_expired(spans)
        if self._plan.compact_every and (number + 1) % self._plan.compact_every == 0:
            compact(run.tables, [destination_of(self._plan, topic) for topic in spans])

    def _check_expired(self, spans: dict[str, list[Span]]) -> None:
        """Raise if records have expired.

        Without failOnDataLoss, the connector skips expired records.
        """
        topics = Topics(self._plan.kafka)
        for topic, found in spans.items():
            for span in found if topics.exists(topic) else ():
                first = earliest(self._plan.kafka, topic, span.partition)
                if first > span.start:
                    raise RecordsExpired(
                        f"records of {topic}-{span.partition} that were not read yet no longer "
                        f"exist: offset {span.start} was next, and the first one is {first}."
                    )

    def _begin(self, spark: SparkSession) -> QueryRun:
        tables = FORMATS[self._plan.format](spark, self._plan.out)
        checkpoint = Checkpoint(spark, self._plan.checkpoint)
        identities = Identities(tables, Topics(self._plan.kafka), self._plan.table)
        return QueryRun(spark, tables, checkpoint, identities, checkpoint.query_id())

    def _columns_of(self, run: QueryRun, part: Part) -> ValueColumns:
        owner = part.topic if part.topic in self._plans else ""
        if owner not in run.columns:
            plan = self._plan_of(part.topic)
            run.columns[owner] = ValueColumns(plan, part.tables, run.tables)
        return run.columns[owner]

    def _write_part(self, run: QueryRun, part: Part) -> None:
        """Write a topic's records.

        If that fails, write them without the records that cause the failure.
        """
        topic, batch = part.topic, part.batch
        try:
            self._write_topic(run, part)
        except Exception as error:
            if not isolation.may_be_a_record(error):
                raise
            self._report(f"tidelog: batch {batch.number} of {topic} fails; searching the cause.")
            self._write_topic(run, self._isolated(part))

    def _isolated(self, part: Part) -> Part:
        """The part of a batch without its unreadable records, which go to quarantine."""
        spark, kafka = part.records.sparkSession, self._plan.kafka
        plan = self._plan_of(part.topic)
        value = plan.value or Json(StructType(), limits=plan.limits)
        if plan.registry is not None:
            value = Raw()
        may_vanish = self._plan.skips_deleted
        read = partial(table_of_spans, spark, kafka, part.topic, may_vanish=may_vanish)

        def complaint(span: Span) -> str | None:
            try:
                found = read([span])
                decoded(found, plan.key, value).write.format("noop").mode("append").save()
            except Exception as error:
                if not isolation.may_be_a_record(error):
                    raise
                return cause(str(error))
            return None

        culprits = isolation.culprits(part.spans, complaint)
        fine = isolation.without(part.spans, culprits)
        nothing = part.records.limit(0)
        return part._replace(
            records=read(fine) if fine else nothing,
            unreadable=unreadable(spark, kafka, part.topic, culprits),
        )

    def _write_topic(self, run: QueryRun, part: Part) -> None:
        plan = self._plan_of(part.topic)
        if plan.mode == APPEND:
            self._append(run, part, plan)
        else:
            self._apply(run, part, plan)
        name, columns = part.at.table, plan.layout.cluster_by
        if columns and name not in run.clustered and _changing(part.tables).cluster(name, columns):
            run.clustered.add(name)

    def _append(self, run: QueryRun, part: Part, plan: Plan) -> None:
        """Add a row for each of these records."""
        at, columns = part.at, self._columns_of(run, part)
        value, existing = columns.prepare(at, part.records, part.batch)
        rows = table_rows(decoded(part.records, plan.key, value, also=at.topic_column))
        old = None
        # An earlier run may have written a part of this run's first batch with another decoder.
        may_be_written = part.topic not in run.ends
        if existing is not None:
            at.check(existing.schema)
            check_mode(part.topic, existing.schema, Mode())
            check_columns(part.topic, existing.schema, rows.schema)
            if self._overlaps(run, part, existing):
                may_be_written = True
                before = part.tables.not_of(at.of_topic(existing), part.batch)
                old = before.where(within(part.spans))
                rows = unseen(rows, old)
        if may_be_written and (bad := self._in_quarantine(run, part)) is not None:
            rows = unseen(rows, bad)
        layout = plan.layout if existing is None else Layout()
        written = part.tables.append(at.table, rows, part.batch, at.part, layout)
        self.rows += written
        ends = run.ends.setdefault(part.topic, {})
        for span in part.spans:
            ends[span.partition] = max(span.end, ends.get(span.partition, 0))
        if written < sum(span.end - span.start for span in part.spans):
            # Fewer rows than offsets were written. So some offsets have bad records, were written
            # before, or have no record (compaction gaps, markers).
            self._quarantine(run, part, value, old)

    def _apply(self, run: QueryRun, part: Part, plan: Plan) -> None:
        """Apply these records to the rows of their keys."""
        columns = self._columns_of(run, part)
        value, existing = columns.prepare(part.at, part.records, part.batch)
        also = part.at.topic_column
        examined = decoded(with_deletes(part.records), key_of(plan), value, also)
        if (bad := self._quarantined_before(run, part)) is not None:
            examined = unseen(examined, bad)
        applied = keyed.apply(_changing(part.tables), target_of(plan, part.at), existing, examined)
        self.rows += applied.changed
        if applied.refused or part.unreadable is not None:
            moved = replayed.of_topic(run.tables, part.topic, part.spans)
            self._quarantine(run, part, value, moved)

    def _quarantined_before(self, run: QueryRun, part: Part) -> DataFrame | None:
        """The records of this part that an earlier run has put into quarantine."""
        name = f"{QUARANTINE}/{part.topic}"
        if name not in run.ends:
            existing = run.tables.rows(QUARANTINE)
            of_topic = None if existing is None else existing.where(f.col("topic") == part.topic)
            run.ends[name] = {} if of_topic is None else _ends(of_topic)
        return self._in_quarantine(run, part) if _begin_before(run.ends[name], part.spans) else None

    def _quarantine(
        self, run: QueryRun, part: Part, value: Format, in_table: DataFrame | None
    ) -> None:
        bad = quarantined(part.records, key_of(self._plan_of(part.topic)), value)
        if part.unreadable is not None:
            bad = bad.unionByName(part.unreadable)
        if (existing := self._in_quarantine(run, part)) is not None:
            bad = unseen(bad, existing, IN_QUARANTINE)
        if in_table is not None:
            bad = unseen(bad, in_table)  # `replay` has moved them to the table
        if not bad.isEmpty():
            if topic := self._plan.dead_letter_topic:
                # Send to the dead-letter topic first. In the other order, a crash between the two
                # steps would lose the letters, because a repeated batch skips records that are
                # already in quarantine.
                dead_letters.send(bad, self._plan.kafka, topic)
            self.quarantined += run.tables.append(QUARANTINE, bad, part.batch, part=part.topic)

    def _in_quarantine(self, run: QueryRun, part: Part) -> DataFrame | None:
        """The records of this part that are already in quarantine."""
        existing = run.tables.rows(QUARANTINE)
        if existing is None:
            return None
        of_topic = run.tables.not_of(existing, part.batch).where(f.col("topic") == part.topic)
        return of_topic.where(within(part.spans))

    def _overlaps(self, run: QueryRun, part: Part, existing: DataFrame) -> bool:
        """Whether a batch covers offsets of the topic that the table may already have."""
        if part.topic not in run.ends:
            run.ends[part.topic] = _ends(part.at.of_topic(existing))
        return _begin_before(run.ends[part.topic], part.spans)


def _changing(tables: Tables) -> ChangingTables:
    """The tables, whose rows can change. The settings allow no other format at this point."""
    assert isinstance(tables, ChangingTables)
    return tables


def _ends(rows: DataFrame) -> dict[int, int]:
    """For each partition, the offset after the last row."""
    last = rows.groupBy("partition").agg(f.max("offset").alias("last")).collect()
    return {row["partition"]: row["last"] + 1 for row in last}


def _begin_before(ends: dict[int, int], spans: list[Span]) -> bool:
    return any(span.start < ends.get(span.partition, 0) for span in spans)


def compact(tables: Tables, written: Iterable[Destination]) -> None:
    """Merge the small files in the tables of these topics."""
    names = [name for at in written for name in (at.table, deletes.name_of(at.topic))]
    for name in dict.fromkeys(names):
        if tables.rows(name) is not None:
            tables.compact(name)
