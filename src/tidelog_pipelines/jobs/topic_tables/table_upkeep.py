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

    def if_due(self, look: Look) -> None:
        if time.monotonic() >= self._next:
            self.run(look)
            self._next = time.monotonic() + self._every_seconds

    def run(self, look: Look) -> None:
        """Keep up each table. A table whose upkeep fails does not hold up the others."""
        for topic, one in look.tables.items():
            self._keep(table_of(topic), one.settings.retention_ms, topic)
        self._keep(QUARANTINE, FOREVER)

    def _keep(self, name: str, retention_ms: int, topic: str = "") -> None:
        path = self._tables.path(name)
        try:
            with turn(self._out):
                if (found := self._tables.rows(name)) is None:
                    return
                if retention_ms != FOREVER:
                    expired = upkeep.expire_older(self._spark, path, retention_ms)
                    if expired:
                        streams.say(f"{name}: {expired:,} rows expired")
                        self._book.note(topic, rows=found.count())
                upkeep.compact(self._spark, path, ())
                upkeep.vacuum(self._spark, path, SAFE_HOURS)
        except Exception as error:
            sentence = sentence_for(error)
            if sentence is None:
                raise
            streams.say(f"tidelog: the upkeep of {name} has failed: {sentence}")
