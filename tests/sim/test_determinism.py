"""The same seed gives the same trace: in one process, and under any PYTHONHASHSEED."""

import os
import subprocess
import sys
from pathlib import Path

from tests.sim.eventful_run import eventful_trace

ROOT = Path(__file__).parents[2]


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    assert eventful_trace(7) == eventful_trace(7)
    assert eventful_trace(7) != eventful_trace(8)


def test_the_trace_does_not_depend_on_the_hash_seed() -> None:
    program = "from tests.sim.eventful_run import eventful_trace; print(eventful_trace(7))"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    traces = [process.communicate()[0].strip() for process in processes]
    assert traces == [eventful_trace(7)] * 2
