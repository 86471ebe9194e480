"""Many runs on several processes, and their combined counts."""

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from time import process_time
from typing import NamedTuple

from tidelog.sim.machines.silence import silenced
from tidelog.sim.runs.outcome import Counts, Failure
from tidelog.sim.runs.plan import Plan
from tidelog.sim.runs.run import simulate


class Result(NamedTuple):
    """The result of one run."""

    seed: int
    nodes: int
    trace_hash: str
    failure: Failure | None
    counts: Counts
    acknowledged: int
    read: int
    lost: int
    """The number of records that were acknowledged with acks=all and then reported as lost."""
    cpu_seconds: float


@dataclass
class CampaignSummary:
    seeds: int = 0
    simulated_ms: int = 0
    cpu_seconds: float = 0.0
    events: int = 0
    acknowledged: int = 0
    read: int = 0
    lost: int = 0
    nodes: Counter[int] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    held_back: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[int, Failure]] = field(default_factory=list)

    @property
    def speed(self) -> float:
        """Simulated seconds per second of one core."""
        return self.simulated_ms / 1_000 / max(self.cpu_seconds, 1e-9)

    def add(self, result: Result) -> None:
        self.seeds += 1
        self.simulated_ms += result.counts.simulated_ms
        self.cpu_seconds += result.cpu_seconds
        self.events += result.counts.events
        self.acknowledged += result.acknowledged
        self.read += result.read
        self.lost += result.lost
        self.nodes[result.nodes] += 1
        self.faults += result.counts.faults
        self.held_back += result.counts.held_back
        self.checks += result.counts.checks
        if result.failure is not None:
            self.failures.append((result.seed, result.failure))


@silenced()
def one(plan: Plan) -> Result:
    """Run one plan without terminal output."""
    # A run creates few reference cycles, so garbage collection would only cost time.
    gc.collect()
    gc.disable()
    began = process_time()
    try:
        outcome = simulate(plan)
    finally:
        gc.enable()
    history = outcome.history
    return Result(
        plan.seed,
        outcome.plan.nodes or 0,
        outcome.trace_hash,
        outcome.failure,
        outcome.counts,
        history.records_acknowledged,
        history.records_read,
        sum(lost.records for lost in history.lost if lost.acks == -1),
        process_time() - began,
    )


def run_all(
    plans: Iterator[Plan], jobs: int, may_go_on: Callable[[], bool] = lambda: True
) -> Iterator[Result]:
    """Run plans while `may_go_on` allows it; yield their results in order of completion."""
    if jobs == 1:
        for plan in plans:
            if not may_go_on():
                return
            yield one(plan)
        return
    with ProcessPoolExecutor(jobs) as pool:
        running: set[Future[Result]] = set()
        while True:
            while len(running) < 2 * jobs and may_go_on():
                following = next(plans, None)
                if following is None:
                    break
                running.add(pool.submit(one, following))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
