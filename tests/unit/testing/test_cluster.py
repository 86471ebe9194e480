"""The kit's methods refuse unknown values, and the error names the valid ones.

No node is started here.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidelog.testing import CLIENTS, Cluster, FaultRefused


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    cluster = Cluster(directory=tmp_path)
    yield cluster
    cluster.end(failed=False)


def test_properties_and_racks_of_single_brokers(tmp_path: Path) -> None:
    cluster = Cluster(
        directory=tmp_path,
        properties={"num.partitions": "2"},
        broker_properties={2: {"num.partitions": "5"}},
        racks=["a", "b", "c"],
    )
    assert cluster.layout.properties(1)["num.partitions"] == "2"
    assert cluster.layout.properties(2)["num.partitions"] == "5"
    assert [cluster.layout.properties(node)["broker.rack"] for node in (1, 2, 3)] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="2 racks"):
        Cluster(directory=tmp_path, racks=["a", "b"])
    with pytest.raises(ValueError, match="no node 4"):
        Cluster(directory=tmp_path, broker_properties={4: {}})


@pytest.mark.parametrize("brokers", [0, -1])
def test_a_cluster_without_brokers_is_refused(brokers: int) -> None:
    with pytest.raises(ValueError, match=f"a cluster has at least one, not {brokers}"):
        Cluster(brokers)


def test_a_directory_may_be_a_string(tmp_path: Path) -> None:
    assert Cluster(1, directory=str(tmp_path)).data(1) == tmp_path / "1" / "data"


@pytest.mark.parametrize(
    "act",
    [
        lambda cluster: cluster.start(1, 9),
        lambda cluster: cluster.stop(9),
        lambda cluster: cluster.kill(9),
        lambda cluster: cluster.pause(9),
        lambda cluster: cluster.resume(9),
        lambda cluster: cluster.restart(9),
        lambda cluster: cluster.partition([1], [2, 9]),
        lambda cluster: cluster.isolate(9),
        lambda cluster: cluster.slow(9, latency_ms=1),
        lambda cluster: cluster.fill_disk(9),
        lambda cluster: cluster.free_disk(9),
        lambda cluster: cluster.topics(9),
        lambda cluster: cluster.port(9),
        lambda cluster: cluster.controller_port(9),
        lambda cluster: cluster.data(9),
        lambda cluster: cluster.nodes[9],
    ],
)
def test_a_node_that_is_not_there_is_named_with_those_that_are(
    cluster: Cluster, act: Callable[[Cluster], object]
) -> None:
    with pytest.raises(ValueError, match="there is no node 9; there are 1, 2, 3"):
        act(cluster)
    assert not any(node.is_running for node in cluster.nodes.values())


def test_a_partition_that_would_cut_nothing_is_refused(cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="two sides or more"):
        cluster.partition([1, 2, 3])
    with pytest.raises(ValueError, match="each with at least one node"):
        cluster.partition([1], [])
    with pytest.raises(ValueError, match="two sides of a partition"):
        cluster.partition([1, 2], [2, CLIENTS])
    with pytest.raises(ValueError, match="only: 'broker' or 'controller', not 'brokers'"):
        cluster.partition([1], [2, 3], only="brokers")


def test_a_slowness_that_is_none_is_refused(cluster: Cluster) -> None:
    for slowness in ({"latency_ms": 0}, {"bytes_per_second": 0}, {"latency_ms": -1.5}):
        with pytest.raises(ValueError, match="must be greater than 0"):
            cluster.slow(1, **slowness)


def test_faults_of_a_network_that_is_not_there_are_refused(
    cluster: Cluster, tmp_path: Path
) -> None:
    with pytest.raises(FaultRefused, match="slow: the cluster does not run"):
        cluster.slow(1)
    without = Cluster(directory=tmp_path, network_faults=False)
    with pytest.raises(FaultRefused, match=r"partition: .* made with network_faults=False"):
        without.partition([1], [2])
    with pytest.raises(FaultRefused, match=r"heal: .* made with network_faults=False"):
        without.heal()


def test_a_cluster_that_has_ended_does_not_start_again(cluster: Cluster) -> None:
    cluster.end(failed=False)
    with pytest.raises(RuntimeError, match="has ended"):
        cluster.start()
