"""Measure how fast `ingest` fills a table from Tidelog and from Apache Kafka, in turns.

Run by `bench/run ingest`. A topic with 6 partitions and one replica is filled with records of 1
KiB. The records have no key, or one of --keys different keys. For each --mode, one run of the job
then reads all records in its own process. The rate is computed from the micro-batches, so it does
not include the start of Java. With --source LABEL=DIR, several versions of the pipeline take turns,
and with --system, several systems do. The script prints the ratios of each to the first one,
round by round, because the speed of a machine changes from minute to minute. The script also prints
the CPU time of the broker and of the whole job. On a shared machine, CPU time is a better measure
than the rate.
"""

import argparse
import re
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

from bench.usage import Usage, cpu_seconds
from tests.cluster.apache import KafkaCluster
from tests.pipelines import records
from tests.pipelines.chaos import Driver, Load

from tidelog.testing import Cluster

ROOT = Path(__file__).parents[1]
SYSTEMS = ("tidelog", "kafka")
MODES = ("append", "upsert", "history")
PARTITIONS = 6
SIZE = 1024
JVM = (
    *("-Xms1g", "-Xmx1g", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    "-XX:MaxInlineLevel=15",
)
BATCH = re.compile(r"^batch \d+: ([\d,]+) records in ([\d.]+) s", re.MULTILINE)


class Kafka(KafkaCluster):
    """Apache Kafka with the JVM options of its start script, not the options for short tests."""

    def java(self, main: str) -> list[str]:
        return ["java", *JVM, "-cp", f"{self.libs}/*", main]


@contextmanager
def source(system: str, directory: Path) -> Iterator[Cluster]:
    if system == "kafka":
        done = subprocess.run(
            [ROOT / "tools" / "kafka-jars"], stdout=subprocess.PIPE, text=True, check=True
        )
        with Kafka(Path(done.stdout.strip()), 1, directory=directory) as cluster:
            yield cluster
    else:
        with Cluster(1, directory=directory, network_faults=False) as cluster:
            yield cluster


class Measured(NamedTuple):
    rate: float
    """Records per second over all micro-batches."""
    best: float
    """Records per second of the best micro-batch."""
    broker_cpu: float
    """CPU seconds of the broker while the job ran."""
    job_cpu: float


class Side(NamedTuple):
    """A system and a version of the pipeline."""

    system: str
    label: str
    source: Path
    """The directory of the packages of this version."""
    mode: str

    def __str__(self) -> str:
        return f"{self.system}, {self.label}, {self.mode}"


def measure(side: Side, count: int, value_format: str, keys: int) -> Measured:
    with (
        tempfile.TemporaryDirectory(prefix="tidelog-bench-") as directory,
        source(side.system, Path(directory) / "cluster") as cluster,
    ):
        records.create(cluster.bootstrap, "source", PARTITIONS, copies=1)
        with Load(cluster.bootstrap, "source", count, PARTITIONS, SIZE, keys):
            pass
        driver = Driver(
            [
                *("--bootstrap-server", cluster.bootstrap, "--topics", "source", "--once"),
                *("--out", f"{directory}/out", "--value-format", value_format, "--mode", side.mode),
                *("--schema", "number BIGINT, filler STRING" if value_format == "json" else ""),
                *("--max-per-batch", str(count // 4), "--compact-every", "0"),
            ],
            Path(directory) / "driver.log",
            source=side.source,
        )
        broker = cluster.nodes[1].pid
        before = cpu_seconds(broker)
        driver.start()
        usage = Usage(driver.pid)
        if driver.wait() != 0:
            raise SystemExit(driver.said())
        broker_cpu, (job_cpu, _) = cpu_seconds(broker) - before, usage.totals()
        batches = [
            (int(found[1].replace(",", "")), float(found[2]))
            for found in BATCH.finditer(driver.said())
        ]
    assert sum(number for number, _ in batches) == count
    seconds = sum(seconds for _, seconds in batches)
    best = max(number / seconds for number, seconds in batches)
    return Measured(count / seconds, best, broker_cpu, job_cpu)


def versions(given: list[str]) -> dict[str, Path]:
    """The directories of packages by label, from arguments such as before=DIR/src."""
    found = {}
    for entry in given:
        label, _, directory = entry.partition("=")
        found[label] = Path(directory).resolve()
        if not (found[label] / "tidelog_pipelines").is_dir():
            raise SystemExit(f"bench: --source {entry}: {directory} has no tidelog_pipelines")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--value-format", choices=("raw", "string", "json"), default="raw")
    parser.add_argument("--system", choices=SYSTEMS, action="append")
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument("--keys", type=int, default=0, help=f"a multiple of {PARTITIONS}")
    parser.add_argument(
        "--source",
        action="append",
        metavar="LABEL=DIR",
        help="a version of the packages, such as before=../old/src; this one if left out",
    )
    chosen = parser.parse_args()
    modes = chosen.mode or ["append"]
    if chosen.keys % PARTITIONS or (modes != ["append"] and not chosen.keys):
        parser.error(f"--keys is a multiple of {PARTITIONS}, and not 0 if rows change by key")
    labels = versions(chosen.source or [f"now={ROOT / 'src'}"]).items()
    sides = [
        Side(system, label, path, mode)
        for mode, system, (label, path) in product(modes, chosen.system or SYSTEMS, labels)
    ]
    found: dict[Side, list[Measured]] = {side: [] for side in sides}
    for number in range(chosen.rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            one = measure(side, chosen.records, chosen.value_format, chosen.keys)
            found[side].append(one)
            print(
                f"round {number + 1}: {side}: {one.rate:,.0f} records/s, "
                f"best batch {one.best:,.0f}/s, "
                f"CPU of the broker {one.broker_cpu:.1f} s, of the job {one.job_cpu:.1f} s",
                flush=True,
            )
    for side, all_of in found.items():
        rate, best, broker, job = (statistics.median(one) for one in zip(*all_of, strict=True))
        print(
            f"{side}: {rate:,.0f} records/s, best batch {best:,.0f}/s, "
            f"CPU {broker:.1f} s and {job:.1f} s (medians of {len(all_of)})"
        )
    for mode in modes:
        print_ratios([side for side in sides if side.mode == mode], found)


def print_ratios(sides: list[Side], found: dict[Side, list[Measured]]) -> None:
    """Print the ratios of each side to the first one, round by round."""
    base = sides[0]
    for side in sides[1:]:
        shown = []
        for name in ("rate", "broker_cpu", "job_cpu"):
            ratios = [
                getattr(one, name) / getattr(first, name)
                for one, first in zip(found[side], found[base], strict=True)
                if getattr(first, name)
            ]
            if ratios:
                middle = statistics.median(ratios)
                shown.append(f"{name} {middle:.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        print(f"{side} / {base}: {', '.join(shown)}")


if __name__ == "__main__":
    main()
