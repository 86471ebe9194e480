"""Maintains tables between micro-batches: expires rows, compacts, and removes unused files."""

import time
from collections.abc import Callable
from functools import partial
from threading import Event

from tidelog_pipelines import streams
from tidelog_pipelines.jobs.maintain import SAFE_HOURS
from tidelog_pipelines.jobs.topic_tables.book import Book
from tidelog_pipelines.jobs.topic_tables.table_settings import FOREVER
from tidelog_pipelines.jobs.topic_tables.topic_failures import topics_own
from tidelog_pipelines.jobs.topic_tables.watch import Look
from tidelog_pipelines.sinks import deletes
from tidelog_pipelines.sinks.claims import turn
from tidelog_pipelines.sinks.destinations import destination
from tidelog_pipelines.sinks.quarantine import QUARANTINE
from tidelog_pipelines.sinks.stored_formats import StoredFormats

A_DAY_SECONDS = 86_400.0


class TableUpkeep:
    def __init__(
        self,
        tables: StoredFormats,
        out: str,
        book: Book,
        every_seconds: float,
        vacuum_seconds: float = A_DAY_SECONDS,
    ) -> None:
        self._out = out
        self._tables = tables
        self._book = book
        self._every_seconds = every_seconds
        self._next = time.monotonic() + every_seconds
        self._vacuum_seconds = vacuum_seconds
        self._compacted: dict[str, float | None] = {}
        """For each table, the version that the table had when it was last compacted."""

    def if_due(self, look: Look, interrupted: Event) -> None:
        if time.monotonic() >= self._next:
            self.run(look, interrupted)
            self._next = time.monotonic() + self._every_seconds

    def run(self, look: Look, interrupted: Event) -> None:
        """Do the upkeep of each table. Stops early if the job is interrupted.

        If the upkeep of a table fails, the other tables are not delayed.
        """
        for topic, one in look.tables.items():
            if interrupted.is_set():
                return
            name, retention_ms = destination(topic).table, one.settings.retention_ms
            self._guarded(name, partial(self._keep, topic, name, retention_ms))
        bad = sum(state.quarantined for state in self._book.tables.values())
        self._guarded(QUARANTINE, partial(self._compact, QUARANTINE, bad))

    def _guarded(self, name: str, keep: Callable[[], None]) -> None:
        try:
            with turn(self._out):
                if self._tables.of(name).rows(name) is not None:
                    keep()
        except Exception as error:
            if (sentence := topics_own(error)) is None:
                raise
            streams.say(f"tidelog: the upkeep of {name} has failed: {sentence}")

    def _keep(self, topic: str, name: str, retention_ms: int) -> None:
        tables = self._tables.of(name)
        if retention_ms != FOREVER and (expired := tables.expire_older(name, retention_ms)):
            streams.say(f"{name}: {expired:,} rows expired")
            self._book.note(topic, rows=tables.existing(name).count())
        state = self._book.of(topic)
        self._compact(name, state.last_batch)
        if state.vacuumed is None:
            self._book.note(topic, vacuumed=time.time())  # a new table has no unused files
        elif time.time() - state.vacuumed > self._vacuum_seconds:
            for one in (name, deletes.name_of(topic)):
                if tables.rows(one) is not None:
                    tables.vacuum(one, SAFE_HOURS)
            self._book.note(topic, vacuumed=time.time())

    def _compact(self, name: str, version: float | None) -> None:
        """Merge small files, if the table has changed since the last compaction."""
        if self._compacted.get(name) != version:
            self._tables.of(name).compact(name)
            self._compacted[name] = version
