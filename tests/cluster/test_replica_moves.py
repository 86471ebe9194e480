"""Reassignments, controlled shutdowns and unregistered brokers, including the files on disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.describe_cluster.v2.request import DescribeClusterRequest
from kio.schema.describe_cluster.v2.response import DescribeClusterResponse
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
from tests.clients.librdkafka import producer_of, send_values
from tests.clients.samples import numbered
from tests.cluster.reassignments import change, moves, reassign

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster

Move = tuple[tuple[NodeId, ...], tuple[NodeId, ...]]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(
        directory=tmp_path,
        properties={"log.segment.delete.delay.ms": "0", "min.insync.replicas": "1"},
    ) as cluster:
        yield cluster


def known_brokers(cluster: Cluster) -> dict[NodeId, bool]:
    """Every registered broker, and whether it is fenced."""
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False, include_fenced_brokers=True
    )
    answer = cluster.ask(request, DescribeClusterResponse)
    return {broker.broker_id: broker.is_fenced for broker in answer.brokers}


def await_brokers(cluster: Cluster, expected: dict[NodeId, bool]) -> None:
    """Wait until exactly these brokers are registered, with these fenced states."""
    cluster.wait_for(
        lambda: True if known_brokers(cluster) == expected else None, f"the brokers {expected}"
    )


def await_moves(cluster: Cluster, expected: list[Move]) -> None:
    """Wait until exactly these reassignments, given as (adding, removing), are in progress."""

    def as_expected() -> bool | None:
        found = [(one.adding_replicas, one.removing_replicas) for one in moves(cluster)]
        return True if found == expected else None

    cluster.wait_for(as_expected, f"the moves {expected}")


def test_a_move_waits_for_the_new_replica_and_deletes_the_old_one(cluster: Cluster) -> None:
    cluster.create_topic("moved", assignment=[[1, 2]])
    send_values(producer_of(cluster), "moved", numbered(1000), 0)
    assert (cluster.data(2) / "moved-0").is_dir()
    cluster.kill(3)
    assert reassign(cluster, "moved", [1, 3]) is ErrorCode.none
    await_moves(cluster, [((3,), (2,))])

    cluster.start(3)
    cluster.wait_for_replicas("moved", 0, [1, 3])
    cluster.wait_for_isr("moved", 0, {1, 3})
    await_moves(cluster, [])
    cluster.wait_for(
        lambda: None if any(cluster.data(2).glob("moved-0*")) else True, "the old replica's end"
    )
    cluster.kill(1)
    cluster.wait_for_isr("moved", 0, {3})
    send_values(producer_of(cluster), "moved", numbered(10), 0)


def test_a_move_that_is_cancelled_leaves_things_as_they_were(cluster: Cluster) -> None:
    cluster.create_topic("stays", assignment=[[1, 2]])
    assert reassign(cluster, "stays", None) is ErrorCode.no_reassignment_in_progress
    cluster.kill(3)
    assert reassign(cluster, "stays", [3, 1]) is ErrorCode.none
    assert reassign(cluster, "stays", None) is ErrorCode.none
    await_moves(cluster, [])
    cluster.wait_for_replicas("stays", 0, [1, 2])
    cluster.start(3)
    send_values(producer_of(cluster), "stays", numbered(10), 0)
    cluster.wait_for_isr("stays", 0, {1, 2})
    cluster.wait_for(
        lambda: None if (cluster.data(3) / "stays-0").exists() else True,
        "the end of the new replica",
    )


def test_a_controlled_shutdown_hands_its_leaders_over_first(cluster: Cluster) -> None:
    cluster.create_topic("led", assignment=[[1, 2, 3]])
    cluster.wait_for_isr("led", 0, {1, 2, 3})
    assert cluster.leader_of("led") == 1
    assert cluster.stop(1) == 0
    cluster.wait_for(lambda: cluster.leader_of("led") != 1 or None, "another leader")
    cluster.wait_for_isr("led", 0, {2, 3})
    send_values(producer_of(cluster), "led", numbered(10), 0)
    cluster.start(1)
    cluster.wait_for_isr("led", 0, {1, 2, 3})


def test_an_unregistered_broker_is_forgotten_until_it_comes_back(cluster: Cluster) -> None:
    await_brokers(cluster, {1: False, 2: False, 3: False})
    cluster.stop(3)
    await_brokers(cluster, {1: False, 2: False, 3: True})
    forgotten = change(cluster, UnregisterBrokerRequest(broker_id=3), UnregisterBrokerResponse)
    assert forgotten.error_code is ErrorCode.none
    await_brokers(cluster, {1: False, 2: False})
    cluster.start(3)
    await_brokers(cluster, {1: False, 2: False, 3: False})
