"""Reads the progress reports of a query, and prints them."""

import json
from types import SimpleNamespace

from tidelog_pipelines.streams import line, read_progress


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
