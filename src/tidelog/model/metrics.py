"""Metrics as values: what a node says of itself when it is asked, and nobody has to agree how."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

Labels: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Gauge:
    name: str
    help: str
    samples: tuple[tuple[Labels, int], ...]


@dataclass(frozen=True, slots=True)
class Counter:
    name: str
    """Without the `_total` that its sample has."""
    help: str
    samples: tuple[tuple[Labels, int], ...]


@dataclass(frozen=True, slots=True)
class Summary:
    name: str
    help: str
    count: int
    total: int


@dataclass(frozen=True, slots=True)
class HistogramSample:
    labels: Labels
    places: Sequence[int]
    """How many fell into each place; the last has no bound."""
    total: int


@dataclass(frozen=True, slots=True)
class Histogram:
    name: str
    help: str
    bounds: Sequence[int]
    samples: tuple[HistogramSample, ...]


Metric: TypeAlias = Gauge | Counter | Summary | Histogram
