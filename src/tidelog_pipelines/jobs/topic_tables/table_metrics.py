"""The metrics of topics' tables, in the Prometheus format."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from tidelog_pipelines.jobs.ingest_metrics import scraped
from tidelog_pipelines.jobs.topic_tables.book import ERROR, OFF, RUNNING, WAITING, Book
from tidelog_pipelines.sources.checkpoint import Ends


def lag(ends: Ends, offsets: Ends) -> Ends:
    """For each topic and partition, the number of records that are not in a table yet."""
    return {
        topic: {
            partition: max(0, end - offsets.get(topic, {}).get(partition, 0))
            for partition, end in partitions.items()
        }
        for topic, partitions in ends.items()
    }


class TablesCollector:
    def __init__(self, book: Book, ends: Callable[[], Ends]) -> None:
        self._book = book
        self._ends = ends

    def collect(self) -> Iterator[Any]:
        from prometheus_client import core

        def gauge(name: str, meaning: str, *labels: str) -> Any:
            return core.GaugeMetricFamily(f"tidelog_tables_{name}", meaning, labels=labels)

        rows = gauge("rows", "Rows of the table.", "topic")
        bad = gauge("quarantined", "Records of the topic in quarantine.", "topic")
        failures = gauge("failures", "Failures since the topic was last written.", "topic")
        states = gauge("state", "1 for the state that the table is in.", "topic", "state")
        for topic, one in self._book.tables.items():
            rows.add_metric([topic], one.rows)
            bad.add_metric([topic], one.quarantined)
            failures.add_metric([topic], one.failures)
            for state in (RUNNING, WAITING, ERROR, OFF):
                states.add_metric([topic, state], int(one.state == state))
        behind = gauge("lag_records", "Records that are not in the table.", "topic", "partition")
        for topic, partitions in lag(self._ends(), self._book.offsets()).items():
            for partition, count in partitions.items():
                behind.add_metric([topic, str(partition)], count)
        yield from (rows, bad, failures, states, behind)


def served_tables(
    where: tuple[str, int], book: Book, ends: Callable[[], Ends]
) -> AbstractContextManager[None, bool | None]:
    """Serve the metrics at this address and port. With port 0, no metrics are served."""
    _, port = where
    return scraped(where, TablesCollector(book, ends)) if port else nullcontext()
