"""Followers leave the in-sync set and return. The tests print the times and check upper bounds.

Tests of the lag time use a long broker session. Otherwise the broker would be fenced before its
replica leaves because of its lag.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from tests.clients.librdkafka import producer_of, send_values
from tests.clients.samples import numbered
from tests.cluster.foreground import await_seen, tidelog
from tests.cluster.stream import Stream

from tidelog.client.client import Client
from tidelog.client.replica_offsets import look
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster

LAG_MS = 2_000
LAG_ONLY = {"replica.lag.time.max.ms": str(LAG_MS), "broker.session.timeout.ms": "60000"}
LEAVES_MS = 1.5 * LAG_MS
RETURNS_MS = 1_000
"""The longest time between catching up and being in the in-sync set again."""
SLACK_MS = 4_000
"""Additional time for a busy machine."""
PATIENT_MS = 10_000
"""A lag time so long that a busy machine does not make a follower exceed it."""

NARROW = 50_000
"""A rate in bytes per second that is below any load in these tests."""

Report = Callable[[str], None]


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Report:
    def say(sentence: str) -> None:
        with capsys.disabled():
            print(f"\n  {sentence}", end="")

    return say


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(directory=tmp_path, properties=LAG_ONLY) as cluster:
        yield cluster


def bystander(cluster: Cluster, topic: str) -> NodeId:
    """A follower that is not the active controller."""
    busy = {cluster.leader_of(topic), cluster.controller()}
    return next(node for node in cluster.nodes if node not in busy)


def ms_until(cluster: Cluster, topic: str, members: set[NodeId]) -> float:
    began = time.monotonic()
    cluster.wait_for_isr(topic, 0, members)
    return 1000 * (time.monotonic() - began)


def lag_of(cluster: Cluster, topic: str, node: NodeId) -> int | None:
    with Client(cluster.bootstrap) as client:
        (partition,) = look(client, [topic])
    return next(partition.lag(one) for one in partition.replicas if one.node == node)


def under_replicated(cluster: Cluster, asked: Iterable[NodeId]) -> str:
    """The output of `topics --describe --under-replicated-partitions`, which asks only these nodes.

    If the command asked a paused node, it would wait a minute.
    """
    bootstrap = ",".join(f"127.0.0.1:{cluster.port(node)}" for node in asked)
    where = ("--bootstrap-server", bootstrap)
    return tidelog("topics", "--describe", "--under-replicated-partitions", *where)


def test_a_paused_follower_leaves_is_missed_and_returns(cluster: Cluster, report: Report) -> None:
    cluster.create_topic("t", 1, 3)
    stuck = bystander(cluster, "t")
    others = set(cluster.nodes) - {stuck}
    with Stream(cluster.bootstrap, "t", in_flight=100) as stream:
        stream.await_acks(100)
        cluster.pause(stuck)
        left = ms_until(cluster, "t", others)
        await_seen(
            lambda: under_replicated(cluster, others),
            lambda shown: "Topic: t\tPartition: 0\t" in shown,
        )
        stream.await_acks(100)
        cluster.resume(stuck)
        resumed = time.monotonic()
        cluster.wait_for(
            lambda: True if lag_of(cluster, "t", stuck) in range(200) else None, "it to catch up"
        )
        caught_up = 1000 * (time.monotonic() - resumed)
        returned = ms_until(cluster, "t", set(cluster.nodes))
    await_seen(
        lambda: under_replicated(cluster, cluster.nodes), lambda shown: "Topic: t\t" not in shown
    )
    report(
        f"paused follower: left after {left:.0f} ms (1.5 x replica.lag.time.max.ms is "
        f"{LEAVES_MS:.0f}), had caught up {caught_up:.0f} ms after it went on, "
        f"was in sync again {returned:.0f} ms later"
    )
    assert left < LEAVES_MS + SLACK_MS
    assert returned < RETURNS_MS + SLACK_MS


def test_a_slow_follower_that_always_fetches_leaves_and_returns_when_it_is_fast(
    cluster: Cluster, report: Report
) -> None:
    cluster.create_topic("t", 1, 3)
    slow = bystander(cluster, "t")
    others = set(cluster.nodes) - {slow}
    # With acks=all the load would be as slow as the follower, so the follower would not lag.
    careless = {"acks": 1, "enable_idempotence": False}
    with Stream(cluster.bootstrap, "t", **careless) as stream:
        stream.await_acks(100)
        cluster.slow(slow, bytes_per_second=NARROW)
        left = ms_until(cluster, "t", others)
        lag = lag_of(cluster, "t", slow)
        assert cluster.running == list(cluster.nodes)
    cluster.heal()
    returned = ms_until(cluster, "t", set(cluster.nodes))
    report(
        f"slow follower: left after {left:.0f} ms, {lag} records behind; "
        f"in sync again {returned:.0f} ms after the load and the slowness ended"
    )


def test_the_follower_of_an_idle_partition_never_leaves(tmp_path: Path, report: Report) -> None:
    properties = {**LAG_ONLY, "replica.lag.time.max.ms": str(PATIENT_MS)}
    with Cluster(directory=tmp_path, properties=properties) as cluster:
        cluster.create_topic("idle", 1, 3)
        cluster.create_topic("busy", 1, 3)
        send_values(producer_of(cluster), "idle", numbered(10))
        everyone = frozenset(cluster.nodes)
        with Stream(cluster.bootstrap, "busy", in_flight=100):
            # A lagging replica leaves after at most 1.5 times the lag time.
            until = time.monotonic() + 1.6 * PATIENT_MS / 1000
            looks = 0
            while time.monotonic() < until:
                assert cluster.isr_of("idle") == everyone
                looks += 1
                time.sleep(0.02)
    report(f"idle partition: in sync in each of {looks} looks over 1.6 x {PATIENT_MS} ms")
