"""Writes micro-batches to the tables of topics. A failing topic does not delay other topics.

If a topic fails, the batch continues without the topic. The book stores the offset of the topic's
first unwritten record, and a later query begins at this offset.
"""

import threading
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from pyspark.sql import DataFrame

from tidelog_pipelines import streams
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.ingestion import Ingestion, Part, QueryRun, compact
from tidelog_pipelines.jobs.plan import Plan
from tidelog_pipelines.jobs.topic_tables.book import Book
from tidelog_pipelines.jobs.topic_tables.topic_failures import topics_own
from tidelog_pipelines.sinks.destinations import destination
from tidelog_pipelines.sinks.identities import TopicReplaced
from tidelog_pipelines.sinks.stored_formats import check_format, stored_format
from tidelog_pipelines.sinks.tables import Batch
from tidelog_pipelines.sources.checkpoint import Span
from tidelog_pipelines.sources.log_offsets import LogOffsets

T = TypeVar("T")


class QueryChanges(JobFailed):
    """Raised to end a query before its next micro-batch, because another query replaces it."""


class TableIngestion(Ingestion):
    def __init__(self, plan: Plan, plans: Mapping[str, Plan], book: Book) -> None:
        super().__init__(plan, plans)
        self._book = book
        self._log_offsets = LogOffsets(plan.kafka)
        self._held: set[str] = set()
        self._formats_checked: set[str] = set()
        self._batches: Counter[str] = Counter()
        self._closing = threading.Lock()
        self.is_closed = False
        self.is_idle = True
        self.first_records = 0
        """How many offsets the first micro-batch covers. Spark does not report this number."""

    def close(self) -> None:
        """Prevent further micro-batches. If a micro-batch is running, it is completed."""
        with self._closing:
            self.is_closed = True

    def __call__(self, records: DataFrame, number: int) -> None:
        with self._closing:
            if self.is_closed:
                raise QueryChanges("the query changes.")
            self.is_idle = False
        try:
            super().__call__(records, number)
        finally:
            self.is_idle = True

    def _checked(
        self, run: QueryRun, spans: dict[str, list[Span]], batch: Batch
    ) -> dict[str, list[Span]]:
        if batch.number == 0:
            found = (one for of_topic in spans.values() for one in of_topic)
            self.first_records = sum(span.end - span.start for span in found)
        while True:
            rest = {topic: found for topic, found in spans.items() if topic not in self._held}
            try:
                return super()._checked(run, rest, batch)
            except TopicReplaced as error:
                self._hold(error.topic, str(error), spans[error.topic])

    def _write_part(self, run: QueryRun, part: Part) -> None:
        before = (self.rows, self.quarantined)
        try:
            self._check_format(run, part)
            super()._write_part(run, part)
        except Exception as error:
            if (sentence := topics_own(error)) is None:
                raise
            self._hold(part.topic, sentence, part.spans)
            return
        rows, quarantined = self.rows - before[0], self.quarantined - before[1]
        self._batches[part.topic] += 1
        loss = ""
        if rows + quarantined < sum(span.end - span.start for span in part.spans):
            loss = self._report_loss(part)
        known = self._book.of(part.topic)
        count = self._guarded(part.topic, lambda: _count(part))
        self._book.written(
            part.topic,
            {span.partition: span.end for span in part.spans},
            loss,
            rows=known.rows if count is None else count,
            quarantined=known.quarantined + quarantined,
        )

    def _check_format(self, run: QueryRun, part: Part) -> None:
        """Raise if the topic's table exists in another format, once per topic and query."""
        if part.topic not in self._formats_checked:
            stored = stored_format(run.spark, part.tables.path(part.at.table))
            check_format(part.at, stored, part.tables.format)
            self._formats_checked.add(part.topic)

    def _finish(self, run: QueryRun, spans: dict[str, list[Span]], number: int) -> None:
        every = self._plan.compact_every
        due = [topic for topic, count in self._batches.items() if every and count >= every]
        for topic in due:
            self._guarded(
                topic, partial(compact, run.tables_for(self._plan_of(topic)), [destination(topic)])
            )
            del self._batches[topic]

    def _guarded(self, topic: str, work: Callable[[], T]) -> T | None:
        """Do some work for a topic after its records are written.

        If the work fails, report the failure and return None.
        """
        try:
            return work()
        except Exception as error:
            if (sentence := topics_own(error)) is None:
                raise
            streams.say(f"tidelog: {topic}: {sentence}")
            return None

    def _hold(self, topic: str, sentence: str, spans: list[Span]) -> None:
        self._held.add(topic)
        self._book.hold(topic, sentence, {span.partition: span.start for span in spans})
        streams.say(f"tidelog: {topic}: {sentence}")

    def _report_loss(self, part: Part) -> str:
        """Report if records were deleted before they were read. Returns the last sentence."""
        partitions = [span.partition for span in part.spans]
        first = self._log_offsets.first(part.topic, partitions)
        loss = ""
        for span in part.spans:
            if (begin := first.get(span.partition, 0)) > span.start:
                loss = (
                    f"records of {part.topic}-{span.partition} may have been deleted before they "
                    f"were read: offset {span.start} was next, and the first one is {begin}."
                )
                streams.say(f"tidelog: {loss}")
        return loss


def _count(part: Part) -> int:
    table = part.tables.rows(part.at.table)
    return 0 if table is None else table.count()
