"""The summary of a run of `ingest`, one JSON object.

The numbers are counted after the run, from the checkpoint and the tables. So a summary does not
slow down micro-batches, and includes all of them.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.failures import JobFailed, sentence_for
from tidelog_pipelines.sinks.destinations import Destination, destination
from tidelog_pipelines.sinks.identities import destinations
from tidelog_pipelines.sinks.quarantine import QUARANTINE
from tidelog_pipelines.sinks.tables import Tables, within
from tidelog_pipelines.sources.checkpoint import Checkpoint, Ends, Span, spans_between

COMPLETE, INTERRUPTED, FAILED = "complete", "interrupted", "failed"


@dataclass
class Ending:
    """How the run has ended. The job changes this value if it was interrupted."""

    exit: str = COMPLETE


class Ingested(NamedTuple):
    """What a run has written."""

    batches: int
    """The number of micro-batches."""
    records: int
    """The number of offsets that the micro-batches cover."""
    rows: int
    """The number of rows in the tables that come from these offsets."""
    quarantined: dict[str, int]
    """The number of records from these offsets that are in quarantine, by reason."""
    seconds: float
    offsets: Ends
    """For each topic and partition, the offset after the last record."""


@dataclass
class Start:
    """The state before the run."""

    ends: Ends
    batch: int
    time: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> "Start":
        last = checkpoint.last_committed()
        return cls(checkpoint.committed_ends(), -1 if last is None else last)


@contextmanager
def summarized(where: str, checkpoint: Checkpoint, tables: Tables | None) -> Iterator[Ending]:
    """Write a summary at the end, to a file, or to stdout for "-".

    For "", no summary is written. Without tables, the run must read nothing.
    """
    ending = Ending()
    if not where:
        yield ending
        return
    _check(where)
    start = Start.of(checkpoint)
    try:
        yield ending
    except Exception as error:
        found = _counted_if_possible(start, checkpoint, tables)
        _write(where, {**found, "exit": FAILED, "error": sentence_for(error) or str(error)})
        raise
    found = counted(start, checkpoint, tables)._asdict()
    _write(where, {**found, "exit": ending.exit, "error": None})


def _counted_if_possible(
    start: Start, checkpoint: Checkpoint, tables: Tables | None
) -> dict[str, Any]:
    try:
        return counted(start, checkpoint, tables)._asdict()
    except Exception:  # Spark has failed too, so report only the first error
        return {"seconds": round(time.monotonic() - start.time, 3)}


def counted(start: Start, checkpoint: Checkpoint, tables: Tables | None) -> Ingested:
    """What was written since the start, counted in the tables."""
    seconds = time.monotonic() - start.time
    last, ends = checkpoint.last_committed(), checkpoint.committed_ends()
    before = start.ends if start.batch >= 0 else checkpoint.first_starts()
    spans = spans_between(before, ends)
    known = (tables and destinations(tables)) or {}
    return Ingested(
        batches=(-1 if last is None else last) - start.batch,
        records=sum(one.end - one.start for found in spans.values() for one in found),
        rows=sum(
            _rows(tables, known.get(topic, destination(topic)), found)
            for topic, found in spans.items()
        )
        if tables
        else 0,
        quarantined=_quarantined(tables, spans) if tables and spans else {},
        seconds=round(seconds, 3),
        offsets=ends,
    )


def _rows(tables: Tables, at: Destination, spans: Sequence[Span]) -> int:
    found = tables.rows(at.table)
    return 0 if found is None else at.of_topic(found).where(within(spans)).count()


def _quarantined(tables: Tables, spans: Mapping[str, Sequence[Span]]) -> dict[str, int]:
    rows: DataFrame | None = tables.rows(QUARANTINE)
    if rows is None:
        return {}
    inside = f.lit(False)
    for topic, found in spans.items():
        inside |= (f.col("topic") == topic) & within(found)
    counts = rows.where(inside).groupBy("reason").count().collect()
    return {row["reason"]: row["count"] for row in sorted(counts)}


def _check(where: str) -> None:
    """Raise if the file cannot be written. This check does not change an earlier summary."""
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
