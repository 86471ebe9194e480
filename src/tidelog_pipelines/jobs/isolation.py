"""Finds the records that make a micro-batch fail, by bisection.

Spark fails a whole micro-batch if it cannot read one record of it. The other records must not wait
for this record. So the record is found, and the rest of the micro-batch is written without it.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from tidelog_pipelines.failures import explain
from tidelog_pipelines.sources.checkpoint import Span

STOPPED = re.compile(
    r"InterruptedException|cancell?ed|SparkContext (was|has been) shut ?down|stopped SparkContext",
    re.IGNORECASE,
)
"""Error texts which mean that the job is ending, and that no record is the cause."""


class Culprit(NamedTuple):
    """A record that cannot be read."""

    partition: int
    offset: int
    why: str


def may_be_a_record(error: Exception) -> bool:
    """Whether a record may cause this failure, rather than the cluster, the disk or a stop."""
    if not isinstance(error, PySparkException | Py4JError) or isinstance(error, Py4JNetworkError):
        return False
    words = str(error)
    return explain(words) is None and STOPPED.search(words) is None


def culprits(spans: Sequence[Span], complaint: Callable[[Span], str | None]) -> list[Culprit]:
    """The records that fail by themselves.

    `complaint` reads a span. It returns the reason if the span fails, otherwise None.
    """
    found: list[Culprit] = []
    to_try = list(reversed(spans))
    while to_try:
        span = to_try.pop()
        why = complaint(span)
        if why is None:
            continue
        if span.end - span.start == 1:
            found.append(Culprit(span.partition, span.start, why))
            continue
        middle = (span.start + span.end) // 2
        to_try += [Span(span.partition, middle, span.end), Span(span.partition, span.start, middle)]
    return found


def without(spans: Sequence[Span], left_out: Sequence[Culprit]) -> list[Span]:
    """The spans without these records. A span is split at each record that is left out."""
    found: list[Span] = []
    for partition, start, end in spans:
        for culprit in sorted(left_out):
            if culprit.partition == partition and start <= culprit.offset < end:
                found.append(Span(partition, start, culprit.offset))
                start = culprit.offset + 1
        found.append(Span(partition, start, end))
    return [span for span in found if span.start < span.end]
