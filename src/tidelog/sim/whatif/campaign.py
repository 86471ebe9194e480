"""Simulates each of several questions many times, on several processes."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor

from tidelog.sim.machines.silence import silenced
from tidelog.sim.whatif.faults import FAULTS
from tidelog.sim.whatif.question import ACKS, Question
from tidelog.sim.whatif.summary import WhatIfSummary, summarise
from tidelog.sim.whatif.trial import WhatIfTrial, run_trial

LARGEST_FACTOR = 3
CHUNK = 4
"""The number of runs that a process takes at a time."""

Progress = Callable[[int], None]


def questions(
    factors: Iterable[int] = (),
    minimums: Iterable[int] = (),
    acks: Iterable[str] = (),
    faults: Iterable[str] = (),
    *,
    unclean: bool = False,
    flush: bool = False,
) -> list[Question]:
    """One question for each valid combination of values. An empty argument means all values."""
    factors = sorted(set(factors)) or list(range(1, LARGEST_FACTOR + 1))
    minimums = sorted(set(minimums)) or list(range(1, max(factors) + 1))
    chosen = [
        Question(factor, minimum, one, fault, unclean, flush)
        for factor in factors
        for one in ACKS
        if not set(acks) or one in set(acks)
        for minimum in minimums
        for fault in FAULTS
        if not set(faults) or fault in set(faults)
    ]
    return [question for question in chosen if _makes_sense(question)]


def _makes_sense(question: Question) -> bool:
    return (
        question.min_insync_replicas <= question.replication_factor
        and question.replication_factor >= FAULTS[question.fault].replicas
    )


def ask_all(
    asked: Sequence[Question], runs: int, jobs: int, seed: int, progress: Progress
) -> list[WhatIfSummary]:
    """One summary per question, in the same order. Calls `progress` after every few runs."""
    pieces = [
        (question, range(first, min(first + CHUNK, seed + runs)))
        for question in asked
        for first in range(seed, seed + runs, CHUNK)
    ]
    trials: dict[Question, list[WhatIfTrial]] = {question: [] for question in asked}
    if jobs == 1:
        results: Iterable[list[WhatIfTrial]] = map(_try, pieces)
        _gather(pieces, results, trials, progress)
    else:
        with ProcessPoolExecutor(jobs) as pool:
            _gather(pieces, pool.map(_try, pieces), trials, progress)
    return [summarise(question, trials[question]) for question in asked]


def _gather(
    pieces: Sequence[tuple[Question, range]],
    results: Iterable[list[WhatIfTrial]],
    trials: dict[Question, list[WhatIfTrial]],
    progress: Progress,
) -> None:
    for (question, _), done in zip(pieces, results, strict=True):
        trials[question] += done
        progress(len(done))


@silenced()
def _try(piece: tuple[Question, range]) -> list[WhatIfTrial]:
    question, seeds = piece
    return [run_trial(question, seed) for seed in seeds]
