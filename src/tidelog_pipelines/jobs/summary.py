"""The summary of a run of `ingest`, one JSON object.

It is counted at the end, from the checkpoint and the tables, so that a micro-batch costs the same
with and without it, and no micro-batch is missed.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.failures import JobFailed, sentence_for
from tidelog_pipelines.jobs.ingestion import QUARANTINE
from tidelog_pipelines.jobs.plan import table_of
from tidelog_pipelines.sinks.tables import Tables, within
from tidelog_pipelines.sources.checkpoint import Checkpoint, Ends, Span, spans_between

COMPLETE, INTERRUPTED, FAILED = "complete", "interrupted", "failed"


@dataclass
class Ending:
    """How the run has ended, which the job sets if it was interrupted."""

    exit: str = COMPLETE


@dataclass
class Start:
    """The state before the run."""

    ends: Ends
    batch: int
    time: float = field(default_factory=time.monotonic)


@contextmanager
def summarized(where: str, checkpoint: Checkpoint, tables: Tables) -> Iterator[Ending]:
    """Write a summary at the end, to a file, or to stdout for "-"; "" writes none."""
    ending = Ending()
    if not where:
        yield ending
        return
    _check(where)
    last = checkpoint.last_committed()
    start = Start(checkpoint.committed_ends(), -1 if last is None else last)
    try:
        yield ending
    except Exception as error:
        found = _counted_if_possible(start, checkpoint, tables)
        _write(where, {**found, "exit": FAILED, "error": sentence_for(error) or str(error)})
        raise
    _write(where, {**_counted(start, checkpoint, tables), "exit": ending.exit, "error": None})


def _counted_if_possible(start: Start, checkpoint: Checkpoint, tables: Tables) -> dict[str, Any]:
    try:
        return _counted(start, checkpoint, tables)
    except Exception:  # Spark itself has failed: the error that follows is the one to report
        return {"seconds": round(time.monotonic() - start.time, 3)}


def _counted(start: Start, checkpoint: Checkpoint, tables: Tables) -> dict[str, Any]:
    seconds = time.monotonic() - start.time
    last, ends = checkpoint.last_committed(), checkpoint.committed_ends()
    before = start.ends if start.batch >= 0 else checkpoint.first_starts()
    spans = spans_between(before, ends)
    return {
        "batches": (-1 if last is None else last) - start.batch,
        "records": sum(one.end - one.start for found in spans.values() for one in found),
        "rows": sum(_rows(tables, topic, found) for topic, found in spans.items()),
        "quarantined": _quarantined(tables, spans),
        "seconds": round(seconds, 3),
        "offsets": ends,
    }


def _rows(tables: Tables, topic: str, spans: Sequence[Span]) -> int:
    found = tables.rows(table_of(topic))
    return 0 if found is None else found.where(within(spans)).count()


def _quarantined(tables: Tables, spans: Mapping[str, Sequence[Span]]) -> dict[str, int]:
    rows: DataFrame | None = tables.rows(QUARANTINE)
    if rows is None or not spans:
        return {}
    inside = f.lit(False)
    for topic, found in spans.items():
        inside |= (f.col("topic") == topic) & within(found)
    counts = rows.where(inside).groupBy("reason").count().collect()
    return {row["reason"]: row["count"] for row in sorted(counts)}


def _check(where: str) -> None:
    """Raise before the run if the file cannot be written; an earlier summary stays for now."""
    if where != "-":
        try:
            with open(where, "a", encoding="utf-8"):
                pass
        except OSError as error:
            raise JobFailed(f"--summary {where} cannot be written: {error.strerror}.") from None


def _write(where: str, found: dict[str, Any]) -> None:
    text = json.dumps(found)
    if where == "-":
        print(text, file=sys.stdout, flush=True)
        return
    with open(where, "w", encoding="utf-8") as file:
        file.write(text + "\n")
