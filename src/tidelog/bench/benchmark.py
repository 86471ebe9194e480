"""Runs the repeats: the systems take turns, and only one cluster runs at a time."""

import os
import platform
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from tidelog import __version__
from tidelog.bench.measured_cluster import MeasuredCluster
from tidelog.bench.measures import GROUPS, BenchRun, Effort, Measure, start, warm_up
from tidelog.bench.results import Results
from tidelog.client.client import Client

START = "start"
GROUP_NAMES = (START, *GROUPS)

Clusters = Mapping[str, Callable[[Path], MeasuredCluster]]
"""Makes the cluster of a system in a directory, by the name of the system."""
Tell = Callable[[str], None]


def measure(
    clusters: Clusters, groups: Collection[str], effort: Effort, work: Path | None, tell: Tell
) -> Results:
    """Measure each system `effort.repeats` times. `tell` gets a line for each figure."""
    results = Results(tuple(clusters), about(effort))
    for repeat in range(effort.repeats):
        # The order alternates, so that a drift of the machine affects all systems alike.
        names = list(clusters) if repeat % 2 == 0 else list(clusters)[::-1]
        for name in names:
            label = f"[{repeat + 1}/{effort.repeats}] {name}"

            def report(
                measure: Measure, value: float, others: float, name: str = name, at: str = label
            ) -> None:
                results.add(name, measure, value, others)
                tell(f"{at}: {measure.name}: {value:.4g} {measure.unit}")

            with tempfile.TemporaryDirectory(prefix="tidelog-bench-", dir=work) as directory:
                tell(f"{label}: starting three brokers")
                with clusters[name](Path(directory) / name) as cluster:
                    _measure_cluster(cluster, groups, effort, report)
    return results


def _measure_cluster(
    cluster: MeasuredCluster,
    groups: Collection[str],
    effort: Effort,
    report: Callable[[Measure, float, float], None],
) -> None:
    wanted = report if START in groups else _ignore
    start(cluster, wanted, effort.seconds / 2 if START in groups else 0.01)
    with Client(cluster.bootstrap) as client:
        run = BenchRun(cluster, client, effort, report)
        chosen = [group for name, group in GROUPS.items() if name in groups]
        if chosen:
            warm_up(run)
        for group in chosen:
            group(run)


def _ignore(_measure: Measure, _value: float, _others: float) -> None:
    """Drop a figure of a group that was not chosen."""


def about(effort: Effort) -> dict[str, str]:
    """What a reader needs to know about the machine and the run."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "date": time.strftime("%Y-%m-%d"),
        "tidelog": f"{__version__} on {python} ({platform.python_compiler()})",
        "machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, Linux {platform.release()}",
        "cluster": "three brokers, each also a controller; six partitions, three copies, acks=all",
        "repeats": f"{effort.repeats}, {effort.seconds:g} s for each load, "
        f"{effort.warm_seconds:g} s of load before",
    }
