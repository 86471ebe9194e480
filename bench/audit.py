"""Measure the audit at growing sizes: is it linear, and is its memory bounded?

    .venv/bin/python bench/audit.py --work DIR [--rows 1000000 10000000 100000000]

Each size is a process of its own with the same heap. Segments of 128 bytes a record and a ledger in
Parquet are written first, untimed, with 7 records lost, 5 duplicated, 3 reordered and 2 corrupted;
every run must find exactly those. Memory is that of the JVM and of Spark's Python workers together.
"""

import argparse
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from bench import audit_data  # noqa: E402  (the checkout is not on the path of a script in it)

HEAP = "1g"
SAMPLE_SECONDS = 0.5
EXPECTED = (
    f"lost {audit_data.LOST}, duplicated {audit_data.DUPLICATED}, "
    f"reordered {audit_data.REORDERED}, corrupted {audit_data.CORRUPTED}"
)


class Run(NamedTuple):
    rows: int
    seconds: float
    peak_mib: float
    verdict: str


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    options.add_argument("--work", type=Path, required=True, help="a directory on a large disk")
    options.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    options.add_argument("--prepare", type=int, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.prepare:
        prepare(given.work, given.prepare)
        return 0
    runs = [measure(given.work / str(rows), rows) for rows in given.rows]
    print("\n| records | seconds | records/s | peak memory, MiB | found |\n|---|---|---|---|---|")
    for run in runs:
        speed = run.rows / run.seconds
        print(
            f"| {run.rows:,} | {run.seconds:.1f} | {speed:,.0f} | {run.peak_mib:,.0f} "
            f"| {run.verdict} |"
        )
    return 0 if all(EXPECTED in run.verdict for run in runs) else 1


def prepare(work: Path, rows: int) -> None:
    """The ledger, in a process of its own, so that its Spark is gone when the audit is timed."""
    from tidelog_pipelines.session import spark_session
    from tidelog_pipelines.settings import SparkSettings

    spark = spark_session(SparkSettings(conf=(f"spark.driver.memory={HEAP}",)))
    audit_data.write_ledger(spark, str(work / "ledger"), rows)


def measure(work: Path, rows: int) -> Run:
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    began = time.monotonic()
    audit_data.write_segments(work / "replica", rows, audit_data.plan(rows))
    script = [sys.executable, __file__, "--work", str(work), "--prepare", str(rows)]
    subprocess.run(script, check=True)
    print(f"{rows:,} records are written in {time.monotonic() - began:.0f} s", file=sys.stderr)
    audit = [
        *(sys.executable, "-P", "-m", "tidelog_pipelines.jobs.audit"),
        *("--ledger", str(work / "ledger"), "--replica", f"1={work / 'replica'}"),
        *("--events", "none", "--conf", f"spark.driver.memory={HEAP}"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    began = time.monotonic()
    process = subprocess.Popen(audit, stdout=subprocess.PIPE, text=True, env=environment)
    memory = Memory(process.pid)
    said, _ = process.communicate()
    seconds = time.monotonic() - began
    shutil.rmtree(work)
    lines = said.strip().splitlines()
    return Run(rows, seconds, memory.peak() / 2**20, lines[-1] if lines else "nothing")


class Memory:
    """The most that a process and all that it started held at once."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def peak(self) -> int:
        self._thread.join()
        return self._peak

    def _watch(self) -> None:
        while held := self._held():
            self._peak = max(self._peak, held)
            time.sleep(SAMPLE_SECONDS)

    def _held(self) -> int:
        parents, sizes = {}, {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                except OSError:
                    continue
                parents[int(entry.name)] = int(fields[1])
                sizes[int(entry.name)] = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
        ours = {self._pid} & sizes.keys()
        while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
            ours |= more
        return sum(sizes[pid] for pid in ours)


if __name__ == "__main__":
    sys.exit(main())
