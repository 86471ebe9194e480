"""Measure how long a bystander waits while a node works on the longest requests of every API.

    python bench/freeze.py [--largest BYTES] [--clients N] [--apis NAME ...]

The cluster has three nodes on this machine. The bystander produces small records with acks=all to
node 1, one after the other. Hostile clients send node 1 the longest request that each API accepts,
and the longest that fits a frame of `--largest` bytes, in the oldest and the newest version. The
script prints the p50, the p99 and the longest time of the bystander for each API, slowest first.
It also prints the peak memory of each node, and how often a node was fenced.
"""

import argparse
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.cluster.hostile import Bystander, create_topics, outcome, peak_mib
from tests.hostile_messages import LongRequest, longest_requests

from tidelog.api.registry import REGISTRY
from tidelog.testing import Cluster


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=5_000_000, help="bytes of a frame")
    parser.add_argument("--clients", type=int, default=1, help="hostile clients at once")
    parser.add_argument("--apis", nargs="*", help="only these")
    options = parser.parse_args()
    with Cluster(3, network_faults=False) as cluster:
        create_topics(cluster)
        rows = [quiet(cluster)]
        for api in REGISTRY.values():
            if not options.apis or api.name in options.apis:
                requests = list(longest_requests(api, options.largest))
                rows.append(measured(cluster, api.name, requests, options.clients))
                print(f"{api.name}: {rows[-1][2]:.0f} ms", file=sys.stderr, flush=True)
        print(f"{'API':30}{'p50 ms':>9}{'p99 ms':>9}{'max ms':>9}{'requests':>10}{'answered':>10}")
        for name, p50, p99, most, count, answered in sorted(rows, key=lambda row: -row[2]):
            print(f"{name:30}{p50:9.1f}{p99:9.1f}{most:9.1f}{count:10}{answered:10}")
        for node in cluster.nodes.values():
            fenced = node.log_text().count(" is fenced")
            print(f"node {node.node_id}: peak {peak_mib(node.pid):.0f} MiB, fenced others {fenced}")


Row = tuple[str, float, float, float, int, int]


def quiet(cluster: Cluster) -> Row:
    with Bystander(cluster.port(1)) as bystander:
        time.sleep(3)
    return row("(nobody hostile)", bystander.took_ms, 0, 0)


def measured(cluster: Cluster, name: str, requests: list[LongRequest], clients: int) -> Row:
    with Bystander(cluster.port(1)) as bystander, ThreadPoolExecutor(clients) as pool:
        results = list(pool.map(lambda one: outcome(cluster, 1, one), requests * clients))
        time.sleep(0.2)
    return row(name, bystander.took_ms, len(results), results.count("answered"))


def row(name: str, took_ms: list[float], count: int, answered: int) -> Row:
    ordered = sorted(took_ms)
    p99 = ordered[min(len(ordered) - 1, 99 * len(ordered) // 100)]
    return name, ordered[len(ordered) // 2], p99, ordered[-1], count, answered


if __name__ == "__main__":
    main()
