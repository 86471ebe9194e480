"""The upkeep of the tables of topics between micro-batches: expiry, compaction, unused files."""

import time

from pyspark.sql import SparkSession

from tidelog_pipelines import streams
from tidelog_pipelines.failures import sentence_for
from tidelog_pipelines.jobs.ingestion import QUARANTINE
from tidelog_pipelines.jobs.maintain import SAFE_HOURS
from tidelog_pipelines.jobs.plan import table_of
from tidelog_pipelines.jobs.topic_tables.book import Book
from tidelog_pipelines.jobs.topic_tables.table_settings import FOREVER
from tidelog_pipelines.jobs.topic_tables.watch import Look
from tidelog_pipelines.sinks import upkeep
from tidelog_pipelines.sinks.claims import turn
from tidelog_pipelines.sinks.tables import DeltaTables


class TableUpkeep:
    def __init__(self, spark: SparkSession, out: str, book: Book, every_seconds: float) -> None:
        self._spark = spark
        self._out = out
        self._tables = DeltaTables(spark, out)
        self._book = book
        self._every_seconds = every_seconds
        self._next = time.monotonic() + every_seconds
        self._kept: dict[str, float | None] = {}
        """By table, its version at the last upkeep."""

    def if_due(self, look: Look) -> None:
        if time.monotonic() >= self._next:
            self.run(look)
            self._next = time.monotonic() + self._every_seconds

    def run(self, look: Look) -> None:
        """Keep up each table. A table whose upkeep fails does not hold up the others."""
        for topic, one in look.tables.items():
            state = self._book.of(topic)
            self._keep(table_of(topic), state.last_batch, one.settings.retention_ms, topic)
        bad = sum(state.quarantined for state in self._book.tables.values())
        self._keep(QUARANTINE, float(bad))

    def _keep(
        self, name: str, version: float | None, retention_ms: int = FOREVER, topic: str = ""
    ) -> None:
        """Expire rows; if something has changed since the last time, merge and remove files."""
        is_changed = self._kept.get(name) != version
        if not is_changed and retention_ms == FOREVER:
            return
        path = self._tables.path(name)
        try:
            with turn(self._out):
                if (found := self._tables.rows(name)) is None:
                    return
                expired = 0
                if retention_ms != FOREVER:
                    expired = upkeep.expire_older(self._spark, path, retention_ms)
                if expired:
                    streams.say(f"{name}: {expired:,} rows expired")
                    self._book.note(topic, rows=found.count())
                if is_changed or expired:
                    upkeep.compact(self._spark, path, ())
                    upkeep.vacuum(self._spark, path, SAFE_HOURS)
            self._kept[name] = version
        except Exception as error:
            sentence = sentence_for(error)
            if sentence is None:
                raise
            streams.say(f"tidelog: the upkeep of {name} has failed: {sentence}")
