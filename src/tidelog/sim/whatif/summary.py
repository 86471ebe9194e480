"""Summarises the trials of one question, with a confidence bound."""

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

from tidelog.model.ids import Millis
from tidelog.sim.whatif.question import Question
from tidelog.sim.whatif.trial import WhatIfTrial


class WhatIfSummary(NamedTuple):
    question: Question
    runs: int
    lossy: int
    """The number of runs that lost acknowledged records."""
    median_lost: int
    """The median number of lost records in the lossy runs."""
    worst_lost: int
    median_unavailable_ms: Millis | None
    p99_unavailable_ms: Millis | None
    stuck: int
    """The number of runs in which not all replicas were in sync again within two minutes."""

    @property
    def share(self) -> float:
        return self.lossy / self.runs

    @property
    def bound(self) -> float:
        """The upper bound of the true share of lossy runs, with 95 % confidence.

        If no run lost records, the bound is 3/n (the rule of three). Otherwise the bound is the
        upper end of Wilson's interval.
        """
        n, p, z = self.runs, self.share, 1.96
        if not self.lossy:
            return min(1.0, 3 / n)
        centre = p + z * z / (2 * n)
        spread = z * sqrt((p * (1 - p) + z * z / (4 * n)) / n)
        return min(1.0, (centre + spread) / (1 + z * z / n))


def summarise(question: Question, trials: Sequence[WhatIfTrial]) -> WhatIfSummary:
    losses = sorted(trial.lost for trial in trials if trial.lost)
    waits = sorted(one.unavailable_ms for one in trials if one.unavailable_ms is not None)
    return WhatIfSummary(
        question,
        len(trials),
        len(losses),
        quantile(losses, 50),
        losses[-1] if losses else 0,
        quantile(waits, 50) if waits else None,
        quantile(waits, 99) if waits else None,
        sum(not trial.recovered for trial in trials),
    )


def quantile(ordered: Sequence[int], percent: int) -> int:
    """The smallest value that `percent` % of the values do not exceed; 0 if there are none."""
    if not ordered:
        return 0
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]
