"""Measure how the time and the memory of the audit grow with the number of records.

    .venv/bin/python bench/audit.py --work DIR [--rows 1000000 10000000 100000000]

Each size runs in its own process with the same heap. The script first writes segments, with 128
bytes a record, and a ledger in Parquet. The time for this is not measured. The segments have 7
lost, 5 duplicated, 3 reordered and 2 corrupted records, and every run must find exactly these
faults. Memory and CPU are summed over the JVM and Spark's Python workers. On a shared machine, CPU
is a better measure than time.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

# Python adds the directory of this script to sys.path, but not the root of the checkout.
from bench import audit_data  # noqa: E402
from bench.usage import Usage  # noqa: E402

HEAP = "1g"
EXPECTED = (
    f"lost {audit_data.LOST}, duplicated {audit_data.DUPLICATED}, "
    f"reordered {audit_data.REORDERED}, corrupted {audit_data.CORRUPTED}"
)


class Run(NamedTuple):
    rows: int
    seconds: float
    cpu_seconds: float
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
    print("\n| records | seconds | CPU seconds | peak memory, MiB | found |\n|---|---|---|---|---|")
    for run in runs:
        print(
            f"| {run.rows:,} | {run.seconds:.1f} | {run.cpu_seconds:.1f} | {run.peak_mib:,.0f} "
            f"| {run.verdict} |"
        )
    return 0 if all(EXPECTED in run.verdict for run in runs) else 1


def prepare(work: Path, rows: int) -> None:
    """Write the ledger in a separate process, so that its Spark has ended when the audit begins."""
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
    usage = Usage(process.pid)
    said, _ = process.communicate()
    seconds = time.monotonic() - began
    cpu, peak = usage.totals()
    shutil.rmtree(work)
    lines = said.strip().splitlines()
    return Run(rows, seconds, cpu, peak / 2**20, lines[-1] if lines else "nothing")


if __name__ == "__main__":
    sys.exit(main())
