"""Reads the progress reports of a query, prints them, and lets a caller stop the query."""

import json
from threading import Event
from types import SimpleNamespace
from typing import Any

from pyspark.errors import StreamingQueryException

from tidelog_pipelines.streams import Caller, line, read_progress, run


def progress(**more: object) -> SimpleNamespace:
    report = {
        "batchId": 3,
        "durationMs": {"triggerExecution": 500},
        "stateOperators": [],
        "sources": [
            {
                "startOffset": {"t": {"0": 5}},
                "endOffset": {"t": {"0": 1005, "1": 500}},
                "metrics": {"maxOffsetsBehindLatest": "0"},
            }
        ],
        **more,
    }
    return SimpleNamespace(json=json.dumps(report))


def test_a_batch_is_told_by_its_offsets() -> None:
    found = read_progress(progress())
    assert (found.batch, found.records, found.ends) == (3, 1500, {"t": {0: 1005, 1: 500}})
    assert found.query == ""
    assert line(found) == "batch 3: 1,500 records in 0.5 s (3,000/s)"


def test_lag_and_late_records_are_told() -> None:
    source = {
        "startOffset": None,
        "endOffset": '{"t":{"0":4}}',
        "metrics": {"maxOffsetsBehindLatest": "1200"},
    }
    found = read_progress(
        progress(
            sources=[source],
            stateOperators=[{"numRowsDroppedByWatermark": 2}],
            observedMetrics={"observed": {"bad": 3}},
        )
    )
    assert line(found) == (
        "batch 3: 4 records in 0.5 s (8/s), up to 1,200 behind in a partition, "
        "2 too late for their window, 3 left out because they could not be decoded"
    )


class Unreachable:
    """A query that ends because no broker answers."""

    isActive = False  # noqa: N815
    recentProgress: tuple[()] = ()  # noqa: N815

    def awaitTermination(self, timeout: int | None = None) -> bool:  # noqa: N802
        raise StreamingQueryException("TimeoutException: no answer")


def test_a_caller_stops_a_job_that_waits_for_the_cluster() -> None:
    stop, lines, queries = Event(), list[str](), list[Any]()

    def report(line: str) -> None:
        lines.append(line)
        stop.set()

    def start() -> list[Any]:
        return [Unreachable()]

    assert not run(start, lambda progress: None, 300, Caller(report, queries.append, stop))
    assert len(queries) == 1
    assert [line.partition(";")[0] for line in lines] == [
        "tidelog: no broker answers (TimeoutException: no answer)",
        "tidelog: interrupted",
    ]
