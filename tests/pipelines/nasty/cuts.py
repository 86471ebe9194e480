"""Decodes records batch by batch as `ingest` does, but without Spark and tables."""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from pyspark.sql.types import StructType

from tidelog_pipelines.transformations.values.json_growth import Observer, Seen, grow
from tidelog_pipelines.transformations.values.python_decoding import JsonDecoder
from tidelog_pipelines.transformations.values.strict_json import DEFAULT_LIMITS, Parser, Refused


class Outcome(NamedTuple):
    type: StructType
    rows: dict[int, tuple[Any, str | None]]
    """Offset -> (the value in the columns, the text in `_rescued`)."""
    refused: dict[int, str]


def ingested(batches: Iterable[Sequence[tuple[int, bytes | None]]], most_fields: int) -> Outcome:
    """Decode these batches of (offset, value) one after the other, and return the outcome."""
    known = StructType()
    rows: dict[int, tuple[Any, str | None]] = {}
    refused: dict[int, str] = {}
    for batch in batches:
        seen = _seen(batch, known, most_fields)
        grown = grow(known, seen, most_fields, widens=True)
        known = grown.type
        decoder = JsonDecoder(known, grown.since, Parser(DEFAULT_LIMITS))
        for offset, raw in batch:
            try:
                rows[offset] = (None, None) if raw is None else decoder.decode(raw, (0, offset))
            except Refused as refusal:
                refused[offset] = str(refusal)
    return Outcome(known, rows, refused)


def _seen(batch: Sequence[tuple[int, bytes | None]], known: StructType, most_fields: int) -> Seen:
    """Observe the batch as two Spark tasks would; the task with the later records ends first."""
    half = len(batch) // 2
    parser, seen = Parser(DEFAULT_LIMITS), Seen()
    for part in (batch[half:], batch[:half]):
        observer = Observer(known, 10 * most_fields)
        for offset, raw in part:
            try:
                if raw is not None:
                    observer.observe(parser.parse(raw), (0, offset))
            except Refused:
                continue
        seen.merge(Seen.of_tuple(observer.seen.as_tuple()))
    return seen


def random_cuts(dice: random.Random, count: int, cuts: int) -> Iterator[slice]:
    """Consecutive slices, cut at random positions, that cover `count` records."""
    ends = sorted({0, count, *(dice.randrange(count + 1) for _ in range(cuts))})
    yield from (slice(start, end) for start, end in pairwise(ends))
