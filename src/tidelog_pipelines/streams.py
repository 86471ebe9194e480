"""Runs streaming queries, reports each micro-batch, and retries after temporary failures."""

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from typing import Any, NamedTuple

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from tidelog_pipelines.failures import TEMPORARY, JobFailed, explain
from tidelog_pipelines.sources.checkpoint import Ends, parse_ends, spans_between

POLL_SECONDS = 1
RETRY_SECONDS = 2.0
OBSERVED, BAD = "observed", "bad"
"""The name of the Spark observation of a query, and of its metric that counts bad records."""


class Progress(NamedTuple):
    """The progress of one micro-batch."""

    query: str
    """The query's name, if it has one."""
    batch: int
    records: int
    seconds: float
    behind: int
    """The largest lag of a partition, in records, when Spark planned the batch."""
    late: int
    """How many records arrived too late for their window and were left out."""
    bad: int
    """How many records the query left out because they could not be decoded."""
    ends: Ends


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Caller(NamedTuple):
    """How the caller of a job follows and stops the job."""

    report: Callable[[str], None] = say
    """Called with each line about the progress."""
    started: Callable[[StreamingQuery], None] = lambda query: None
    """Called with each query that starts, including queries that start after a failure."""
    stop: Event | None = None
    """An event that ends the job. If it is given, Ctrl-C and SIGTERM do not end the job."""


COMMAND = Caller()
"""The caller on the command line."""


def run(
    start: Callable[[], Sequence[StreamingQuery]],
    each: Callable[[Progress], None],
    patience_seconds: float,
    caller: Caller = COMMAND,
    is_enough: Callable[[], bool] = lambda: False,
) -> bool:
    """Run the queries until they end, `is_enough` is true, or the job is interrupted.

    Returns False if the job was interrupted. If the cluster or a schema registry does not answer,
    the queries are retried from their checkpoints for `patience_seconds`. `is_enough` is called
    after each check of the queries.
    """
    patience = Patience(patience_seconds)
    with interruptions(caller.stop) as interrupted:
        while True:
            try:
                queries = start()
                for query in queries:
                    caller.started(query)
                if _run_once(queries, each, patience, interrupted, is_enough):
                    return True
                break
            except StreamingQueryException as error:
                if is_enough():
                    return True
                sentence = explain(str(error))
                if sentence is None:
                    raise
                if not sentence.startswith(TEMPORARY) or patience.is_over():
                    raise JobFailed(sentence) from None
                caller.report(f"tidelog: {sentence} Trying again.")
                if interrupted.wait(RETRY_SECONDS):
                    break
    caller.report("tidelog: interrupted; the next run continues from here.")
    return False


class Patience:
    """Limits how long failures may repeat without a success between them."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline: float | None = None

    def succeed(self) -> None:
        self._deadline = None

    def is_over(self) -> bool:
        """Call this after each failure; returns whether the time limit has passed.

        The first call since a success starts the time limit.
        """
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + self._seconds
        return now > self._deadline


@contextmanager
def interruptions(stop: Event | None = None) -> Iterator[Event]:
    """The event that ends the job: the caller's event, or one that Ctrl-C and SIGTERM set.

    Ctrl-C raises no exception here. An exception would break the connection to the JVM, and this
    connection cannot be opened again.
    """
    interrupted = stop or Event()
    if stop is not None or current_thread() is not main_thread():
        yield interrupted
        return
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: interrupted.set()) for number in numbers]
    try:
        yield interrupted
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class _Reports:
    """Reads the progress reports of a query, and passes on each micro-batch once."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._last_batch, self._last_timestamp = -1, ""

    def tell(self, each: Callable[[Progress], None]) -> bool:
        """Pass new micro-batches to `each`; returns whether the query has sent a new report.

        An idle query also sends reports, but these have no micro-batch.
        """
        before = self._last_timestamp
        for found in self._query.recentProgress:
            self._last_timestamp = max(self._last_timestamp, found.timestamp)
            progress = read_progress(found)
            if progress.batch > self._last_batch and progress.records:
                self._last_batch = progress.batch
                each(progress)
        return self._last_timestamp > before


def _run_once(
    queries: Sequence[StreamingQuery],
    each: Callable[[Progress], None],
    patience: Patience,
    interrupted: Event,
    is_enough: Callable[[], bool],
) -> bool:
    reports = [_Reports(query) for query in queries]
    try:
        while True:
            are_over = _are_over(queries)
            for report in reports:
                if report.tell(each):
                    patience.succeed()
            if are_over or interrupted.is_set() or is_enough():
                return not interrupted.is_set()
    finally:
        for query in queries:
            if query.isActive:
                query.stop()


def _are_over(queries: Sequence[StreamingQuery]) -> bool:
    """Wait briefly; returns whether all queries have ended. Raises if a query has failed."""
    if running := [query for query in queries if query.isActive]:
        running[0].awaitTermination(POLL_SECONDS)
    ended = [query for query in queries if not query.isActive]
    for query in ended:
        query.awaitTermination()  # raises if the query has failed
    return len(ended) == len(queries)


def read_progress(found: Any) -> Progress:
    """Parse the progress of a query from Spark's report."""
    report = json.loads(found.json)
    source = report["sources"][0]
    before, after = (
        parse_ends(offsets_text(source.get(key))) for key in ("startOffset", "endOffset")
    )
    spans = spans_between(before, after)
    behind = (source.get("metrics") or {}).get("maxOffsetsBehindLatest", "0")
    return Progress(
        query=report.get("name") or "",
        batch=report["batchId"],
        records=sum(span.end - span.start for spans_ in spans.values() for span in spans_),
        seconds=report["durationMs"].get("triggerExecution", 0) / 1000,
        behind=int(behind),
        late=sum(s.get("numRowsDroppedByWatermark", 0) for s in report["stateOperators"]),
        bad=((report.get("observedMetrics") or {}).get(OBSERVED) or {}).get(BAD, 0),
        ends=after,
    )


def line(progress: Progress) -> str:
    """The progress as one line of text."""
    rate = progress.records / progress.seconds if progress.seconds else 0.0
    text = (
        f"batch {progress.batch}: {progress.records:,} records in {progress.seconds:.1f} s "
        f"({rate:,.0f}/s)"
    )
    if progress.behind:
        text += f", up to {progress.behind:,} behind in a partition"
    if progress.late:
        text += f", {progress.late:,} too late for their window"
    if progress.bad:
        text += f", {progress.bad:,} left out because they could not be decoded"
    return text


def offsets_text(offsets: Any) -> str:
    """Offsets as JSON text. Spark reports offsets as nested JSON or as text."""
    return offsets if isinstance(offsets, str) else json.dumps(offsets)
