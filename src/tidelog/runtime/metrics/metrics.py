"""A node's metrics over HTTP, in the Prometheus format.

The loop's thread reads the node's metrics, between two events. The thread that serves the scrape
formats the metrics. A failed scrape is reported to the scraper only.
"""

import logging
from collections.abc import Callable, Iterator
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from tidelog.model.metrics import Counter, Gauge, Histogram, Metric, Summary

PATIENCE_SECONDS = 5.0

log = logging.getLogger(__name__)

RunSoon = Callable[[Callable[[], None]], None]
"""A function that schedules a call in the loop's thread."""


def serve(host: str, port: int, look: Callable[[], list[Metric]], run_soon: RunSoon) -> None:
    """Serve scrapes at this address, in threads that end with the process."""
    Thread(target=_serve, args=(host, port, look, run_soon), daemon=True).start()


def _serve(host: str, port: int, look: Callable[[], list[Metric]], run_soon: RunSoon) -> None:
    # Imported here, so that a node without metrics does not load this library.
    from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app

    from tidelog.runtime.metrics.scrapes import server_at

    registry = CollectorRegistry()
    registry.register(_Collector(look, run_soon))
    ProcessCollector(registry=registry)
    try:
        server = server_at(host, port, make_wsgi_app(registry))
    except OSError as error:
        log.error("no metrics: cannot listen on port %d: %s", port, error.strerror)
    else:
        log.debug("metrics are on port %d", port)
        server.serve_forever()


class _Collector:
    def __init__(self, look: Callable[[], list[Metric]], run_soon: RunSoon) -> None:
        self._look = look
        self._run_soon = run_soon

    def describe(self) -> list[Any]:
        """Returns no metrics, because the node is queried only for a scrape."""
        return []

    def collect(self) -> Iterator[Any]:
        answers: SimpleQueue[list[Metric] | Exception] = SimpleQueue()

        def answer() -> None:
            try:
                answers.put(self._look())
            except Exception as bug:  # a bug: the scraper gets the error, and the node goes on
                answers.put(bug)

        self._run_soon(answer)
        try:
            found = answers.get(timeout=PATIENCE_SECONDS)
        except Empty:
            raise TimeoutError("the node is too busy to report its metrics") from None
        if isinstance(found, Exception):
            raise found
        yield from map(_family, found)


def _family(metric: Metric) -> Any:
    from prometheus_client import core

    match metric:
        case Gauge() | Counter():
            kind = core.GaugeMetricFamily if isinstance(metric, Gauge) else core.CounterMetricFamily
            names = [name for name, _ in metric.samples[0][0]] if metric.samples else []
            family = kind(metric.name, metric.help, labels=names)
            for labels, value in metric.samples:
                family.add_metric([text for _, text in labels], value)
            return family
        case Summary():
            return core.SummaryMetricFamily(metric.name, metric.help, metric.count, metric.total)
        case Histogram():
            return _histogram(metric)


def _histogram(metric: Histogram) -> Any:
    from prometheus_client import core

    names = [name for name, _ in metric.samples[0].labels] if metric.samples else []
    family = core.HistogramMetricFamily(metric.name, metric.help, labels=names)
    for sample in metric.samples:
        below, buckets = 0, []
        for bound, count in zip((*metric.bounds, "+Inf"), sample.places, strict=True):
            below += count
            buckets.append((str(bound), below))
        family.add_metric([text for _, text in sample.labels], buckets, sample.total)
    return family
