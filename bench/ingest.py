"""How fast `ingest` fills a table, with Tidelog and with Apache Kafka as its source, by turns.

Run by `bench/run ingest`. One topic of 6 partitions and one copy, records of 1 KiB written before
the clock starts; then, in a process of its own, one run of the job that reads them all. The rate is
that of its micro-batches, so it leaves out how long Java takes to start.
"""

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.apache import KafkaCluster
from tests.pipelines import records
from tests.pipelines.chaos import Driver, Load

from tidelog.testing import Cluster

ROOT = Path(__file__).parents[1]
SYSTEMS = ("tidelog", "kafka")
PARTITIONS = 6
SIZE = 1024
BATCH = re.compile(r"^batch \d+: ([\d,]+) records in ([\d.]+) s", re.MULTILINE)


@contextmanager
def source(system: str, directory: Path) -> Iterator[Cluster]:
    if system == "kafka":
        done = subprocess.run(
            [ROOT / "tools" / "kafka-jars"], stdout=subprocess.PIPE, text=True, check=True
        )
        with KafkaCluster(Path(done.stdout.strip()), 1, directory=directory) as cluster:
            yield cluster
    else:
        with Cluster(1, directory=directory) as cluster:
            yield cluster


def measure(system: str, count: int, value_format: str) -> tuple[float, float]:
    """Records per second of all micro-batches, and of the best one."""
    with (
        tempfile.TemporaryDirectory(prefix="tidelog-bench-") as directory,
        source(system, Path(directory) / "cluster") as cluster,
    ):
        records.create(cluster.bootstrap, "source", PARTITIONS, copies=1)
        with Load(cluster.bootstrap, "source", count, PARTITIONS, SIZE):
            pass
        driver = Driver(
            [
                *("--bootstrap-server", cluster.bootstrap, "--topics", "source", "--once"),
                *("--out", f"{directory}/out", "--value-format", value_format),
                *("--schema", "number BIGINT, filler STRING" if value_format == "json" else ""),
                *("--max-per-batch", str(count // 4), "--compact-every", "0"),
            ],
            Path(directory) / "driver.log",
        )
        driver.start()
        if driver.wait() != 0:
            raise SystemExit(driver.said())
        batches = [
            (int(found[1].replace(",", "")), float(found[2]))
            for found in BATCH.finditer(driver.said())
        ]
    assert sum(number for number, _ in batches) == count
    seconds = sum(seconds for _, seconds in batches)
    return count / seconds, max(number / seconds for number, seconds in batches)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--value-format", choices=("raw", "string", "json"), default="raw")
    parser.add_argument("--system", choices=SYSTEMS, action="append")
    chosen = parser.parse_args()
    systems = chosen.system or SYSTEMS
    found: dict[str, list[tuple[float, float]]] = {system: [] for system in systems}
    for number in range(chosen.rounds):
        for system in systems if number % 2 == 0 else reversed(systems):
            rate, best = measure(system, chosen.records, chosen.value_format)
            found[system].append((rate, best))
            print(f"round {number + 1}: {system}: {rate:,.0f} records/s, best batch {best:,.0f}/s")
            sys.stdout.flush()
    for system, rates in found.items():
        middle = statistics.median(rate for rate, _ in rates)
        print(f"{system}: {middle:,.0f} records/s (median of {len(rates)})")


if __name__ == "__main__":
    main()
