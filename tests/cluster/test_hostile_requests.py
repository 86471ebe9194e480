"""Three real nodes under the longest requests of every API (F63).

A node answers each of these requests or closes its connection. Meanwhile a well-behaved client
(the bystander) is served, no broker is fenced, and memory stays bounded. `bench/freeze.py` measures
how long the bystander waits.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.cluster.hostile import Bystander, create_topics, outcome, peak_mib
from tests.hostile_messages import ALL, LongRequest, Shape, hostile_requests, long_request

from tidelog.api.registry import REGISTRY
from tidelog.testing import Cluster

MOST_MIB = 256
AT_ONCE = 50


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as running:
        create_topics(running)
        yield running


def check(cluster: Cluster, bystander: Bystander) -> None:
    for node in cluster.nodes.values():
        assert node.is_running
        assert "Traceback" not in node.log_text()
        assert " is fenced" not in node.log_text()
        assert peak_mib(node.pid) < MOST_MIB
    assert not bystander.failed


def test_f63_every_api_survives_its_longest_requests(cluster: Cluster) -> None:
    pids = [node.pid for node in cluster.nodes.values()]
    with Bystander(cluster.port(1)) as bystander:
        for request in hostile_requests():
            before = len(bystander.took_ms)
            result = outcome(cluster, 1, request)
            assert result == "closed" or request.is_plausible, request.name
            cluster.wait_for(
                lambda before=before: len(bystander.took_ms) > before, "the bystander is served"
            )
    check(cluster, bystander)
    assert [node.pid for node in cluster.nodes.values()] == pids


def longest(key: int) -> LongRequest:
    api = REGISTRY[key]
    return long_request(api, api.max_version, Shape.WIDE, ALL)


def test_f63_fifty_clients_with_long_requests_hold_nobody_up(cluster: Cluster) -> None:
    requests = [longest(key) for key in (1, 2, 3, 8, 9, 10, 15, 32, 35, 42)]
    with Bystander(cluster.port(1)) as bystander, ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(
            pool.map(
                lambda number: outcome(cluster, 1, requests[number % len(requests)]),
                range(AT_ONCE),
            )
        )
    assert len(results) == AT_ONCE
    check(cluster, bystander)
