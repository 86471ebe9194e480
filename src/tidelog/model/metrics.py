"""Metrics as values: the measurements that a node returns, independent of any export format."""

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
    """The name without the `_total` suffix, which the export adds."""
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
    """The number of observations in each bucket; the last bucket has no bound."""
    total: int


@dataclass(frozen=True, slots=True)
class Histogram:
    name: str
    help: str
    bounds: Sequence[int]
    samples: tuple[HistogramSample, ...]


Metric: TypeAlias = Gauge | Counter | Summary | Histogram
