"""Measure how long `query`, and `ingest --once` with nothing and with little to read, take.

Run by `.venv/bin/python -m bench.startup`. Each --source is a name and a `src` directory, so that
two versions can be compared in turns: `--source before=../other/src --source now=src`. The script
prints the seconds of each phase and the CPU seconds of the command with its JVM.
"""

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.usage import Usage
from tests.pipelines import records

from tidelog.testing import Cluster

ROOT = Path(__file__).parents[1]
RECORDS = 1_000
COMMANDS = ("query", "ingest-nothing", "ingest-little")
PHASES = ("imports", "before Spark", "session", "work", "stop")
TIMED = """
import json, sys, time
began = time.time()
import importlib
from pyspark.sql import SparkSession
job = importlib.import_module("tidelog_pipelines.jobs." + sys.argv[2])
marks = [began, time.time()]
make, stop = job.spark_session, SparkSession.stop
def timed_make(*given, **named):
    marks.append(time.time())
    try:
        return make(*given, **named)
    finally:
        marks.append(time.time())
def timed_stop(self):
    marks.append(time.time())
    stop(self)
    marks.append(time.time())
job.spark_session, SparkSession.stop = timed_make, timed_stop
status = job.main(sys.argv[3:])
marks.append(time.time())
with open(sys.argv[1], "w") as file:
    json.dump(marks, file)
sys.exit(status)
"""
Measured = dict[str, float]


def measure(source: Path, directory: Path, job: str, *arguments: str) -> Measured:
    marks = directory / "marks.json"
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", TIMED, str(marks), job, *arguments],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdout=subprocess.DEVNULL,
    )
    usage = Usage(process.pid)
    if process.wait() != 0:
        raise SystemExit(f"{job} ended with status {process.returncode}")
    total = time.monotonic() - began
    cpu, _ = usage.totals()
    times = json.loads(marks.read_text())
    phases = dict(zip(PHASES, (b - a for a, b in itertools.pairwise(times)), strict=False))
    return {"total": total, "CPU": cpu, **phases}


def commands(cluster: Cluster, lake: Path) -> dict[str, list[str]]:
    sql = "SELECT count(*), max(value.number) FROM orders"
    where = ["--bootstrap-server", cluster.bootstrap, "--topics", "orders", "--once", "--out"]
    return {
        "query": ["query", "--out", str(lake), "--sql", sql],
        "ingest-nothing": ["ingest", *where, str(lake)],
        "ingest-little": ["ingest", *where, str(lake.with_name("new"))],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", action="append", metavar="NAME=DIR")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--command", action="append", choices=COMMANDS)
    chosen = parser.parse_args()
    pairs = [one.partition("=") for one in chosen.source or [f"now={ROOT / 'src'}"]]
    sources = {name: Path(where).resolve() for name, _, where in pairs}
    found: dict[tuple[str, str], list[Measured]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="tidelog-bench-") as scratch,
        Cluster(1, directory=Path(scratch) / "cluster", network_faults=False) as cluster,
    ):
        records.create(cluster.bootstrap, "orders", 2, copies=1)
        values = [f'{{"number":{number}}}' for number in range(RECORDS)]
        records.produce(cluster.bootstrap, "orders", values)
        lake = Path(scratch) / "lake"
        runs = commands(cluster, lake)
        for source in sources.values():  # fill the lake, and the caches of each version
            measure(source, Path(scratch), *runs["ingest-nothing"])
        for number in range(chosen.rounds):
            for name in sources if number % 2 == 0 else reversed(sources):
                for label in chosen.command or COMMANDS:
                    shutil.rmtree(lake.with_name("new"), ignore_errors=True)
                    one = measure(sources[name], Path(scratch), *runs[label])
                    found.setdefault((label, name), []).append(one)
                    print(f"round {number + 1}: {label}, {name}: {one['total']:.1f} s", flush=True)
    for (label, name), all_of in sorted(found.items()):
        spread = [one["total"] for one in all_of]
        print(f"{label}, {name}: {statistics.median(spread):.1f} s", end="")
        print(f" ({min(spread):.1f} to {max(spread):.1f})", end="")
        for phase in ("CPU", *PHASES):
            if all(phase in one for one in all_of):
                print(f", {phase} {statistics.median(one[phase] for one in all_of):.1f}", end="")
        print()


if __name__ == "__main__":
    main()
