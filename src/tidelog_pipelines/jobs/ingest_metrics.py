"""The metrics of a running ingest over HTTP, in the Prometheus format.

Spark reports each micro-batch to a listener in a separate thread, so a scrape never waits for
Spark. The libraries for this are imported only if metrics are served.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.ingestion import Ingestion
from tidelog_pipelines.sources.checkpoint import Ends, parse_ends
from tidelog_pipelines.streams import offsets_text, read_progress


@dataclass(frozen=True)
class Measured:
    """The state after the last report. Each report replaces the whole state."""

    lag: Ends
    """For each topic and partition, the number of records after the last micro-batch."""
    batch: int = -1
    batches: int = 0
    seconds: float = 0.0
    records: int = 0


class ProgressListener(StreamingQueryListener):
    """Keeps the state of the query with this name."""

    def __init__(self, query: str) -> None:
        self._query = query
        self.measured = Measured({})

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802
        """Do nothing, because there is no micro-batch yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        progress = read_progress(event.progress)
        if progress.query != self._query:
            return
        found = replace(self.measured, lag=lag(json.loads(event.progress.json)))
        if progress.batch > found.batch and progress.records:  # an idle query reports as well
            found = replace(
                found,
                batch=progress.batch,
                batches=found.batches + 1,
                seconds=found.seconds + progress.seconds,
                records=found.records + progress.records,
            )
        self.measured = found

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Do nothing, because nothing has changed."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Do nothing, because the job itself reports how it ends."""


def lag(report: dict[str, Any]) -> Ends:
    """The number of records after the end of a micro-batch, from Spark's report."""
    source = report["sources"][0]
    ends, latest = (parse_ends(offsets_text(source.get(k))) for k in ("endOffset", "latestOffset"))
    return {
        topic: {
            partition: max(0, newest - ends.get(topic, {}).get(partition, 0))
            for partition, newest in partitions.items()
        }
        for topic, partitions in latest.items()
    }


class _Collector:
    def __init__(self, listener: ProgressListener, ingestion: Ingestion) -> None:
        self._listener = listener
        self._ingestion = ingestion

    def collect(self) -> Iterator[Any]:
        from prometheus_client import core

        found = self._listener.measured
        counts = {
            "records": (found.records, "Offsets that complete micro-batches cover."),
            "rows": (self._ingestion.rows, "Rows written to tables."),
            "quarantined": (self._ingestion.quarantined, "Records written to quarantine."),
        }
        for name, (count, meaning) in counts.items():
            yield core.CounterMetricFamily(f"tidelog_ingest_{name}", meaning, value=count)
        yield core.SummaryMetricFamily(
            "tidelog_ingest_batch_seconds",
            "Duration of micro-batches.",
            found.batches,
            found.seconds,
        )
        behind = core.GaugeMetricFamily(
            "tidelog_ingest_lag_records",
            "Records after the end of the last micro-batch.",
            labels=["topic", "partition"],
        )
        for topic, partitions in found.lag.items():
            for partition, count in partitions.items():
                behind.add_metric([topic, str(partition)], count)
        yield behind


@contextmanager
def served(
    spark: SparkSession, where: tuple[str, int], query: str, ingestion: Ingestion
) -> Iterator[None]:
    """Serve the metrics of a query at this address and port. With port 0, no metrics are served."""
    _, port = where
    if not port:
        yield
        return
    listener = ProgressListener(query)
    with scraped(where, _Collector(listener, ingestion)):
        spark.streams.addListener(listener)
        try:
            yield
        finally:
            spark.streams.removeListener(listener)


@contextmanager
def scraped(where: tuple[str, int], collector: Any) -> Iterator[None]:
    """Serve the metrics of a Prometheus collector. The collector runs at each scrape."""
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(collector)
    host, port = where
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise JobFailed(
            f"--metrics-host {host} --metrics-port {port} cannot be used: {error.strerror}."
        ) from None
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
