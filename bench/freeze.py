"""Measure how long a bystander waits while a node handles the longest requests of every API.

    python bench/freeze.py [--largest BYTES] [--clients N] [--apis NAME ...] [--crowds]

The cluster has three nodes on this machine. The bystander produces small records with acks=all to
node 1, one after the other. Hostile clients send node 1 the longest request that each API accepts,
and the longest that fits a frame of `--largest` bytes, in the oldest and the newest version. The
script prints the p50, the p99 and the longest time of the bystander for each API, slowest first,
and the peak memory of node 1 during that time. At the end it prints how often a node was fenced.
With `--crowds`, crowds of clients (`crowds.py`) send many requests instead of the longest ones.
"""

import argparse
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from crowds import CROWDS, send
from tests.cluster.hostile import Bystander, create_topics, outcome, peak_mib
from tests.hostile_messages import LongRequest, longest_requests

from tidelog.api.registry import REGISTRY
from tidelog.testing import Cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=5_000_000, help="bytes of a frame")
    parser.add_argument("--clients", type=int, default=1, help="hostile clients at once")
    parser.add_argument("--apis", nargs="*", help="only these")
    parser.add_argument("--crowds", action="store_true", help="crowds of clients instead")
    options = parser.parse_args()
    with Cluster(3, network_faults=False) as cluster:
        create_topics(cluster)
        rows = [quiet(cluster)]
        for crowd in CROWDS if options.crowds else ():
            if options.apis and crowd.name not in options.apis:
                continue
            rows.append(measured(cluster, crowd.name, partial(send, cluster, crowd)))
        for api in () if options.crowds else REGISTRY.values():
            if not options.apis or api.name in options.apis:
                requests = list(longest_requests(api, options.largest))
                work = partial(send_all, cluster, requests, options.clients)
                rows.append(measured(cluster, api.name, work))
        print(
            f"{'API':30}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}{'MiB':>6}"
            f"{'requests':>10}{'answered':>10}"
        )
        for row in sorted(rows, key=lambda row: -row.p99):
            print(
                f"{row.name:30}{row.p50:9.1f}{row.p99:9.1f}{row.longest:9.1f}{row.peak_mib:6.0f}"
                f"{row.requests:10}{row.answered:10}"
            )
        for node in cluster.nodes.values():
            print(f"node {node.node_id}: fenced others {node.log_text().count(' is fenced')}")


class Row(NamedTuple):
    name: str
    p50: float
    p99: float
    longest: float
    peak_mib: float
    requests: int
    answered: int


def quiet(cluster: Cluster) -> Row:
    with Bystander(cluster.port(1)) as bystander:
        time.sleep(3)
    return summary(cluster, "(nobody hostile)", bystander.took_ms, [])


def measured(cluster: Cluster, name: str, work: Callable[[], list[str]]) -> Row:
    forget_peak(cluster.nodes[1].pid)
    with Bystander(cluster.port(1)) as bystander:
        results = work()
        time.sleep(0.2)
    row = summary(cluster, name, bystander.took_ms, results)
    print(f"{name}: {row.p99:.0f} ms, {row.peak_mib:.0f} MiB", file=sys.stderr, flush=True)
    return row


def send_all(cluster: Cluster, requests: list[LongRequest], clients: int) -> list[str]:
    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(lambda one: outcome(cluster, 1, one), requests * clients))


def forget_peak(pid: int) -> None:
    """Reset the peak memory that the kernel records for a process."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def summary(cluster: Cluster, name: str, took_ms: list[float], results: list[str]) -> Row:
    ordered = sorted(took_ms)
    p99 = ordered[min(len(ordered) - 1, 99 * len(ordered) // 100)]
    peak, answered = peak_mib(cluster.nodes[1].pid), results.count("answered")
    half = ordered[len(ordered) // 2]
    return Row(name, half, p99, ordered[-1], peak, len(results), answered)


if __name__ == "__main__":
    main()
