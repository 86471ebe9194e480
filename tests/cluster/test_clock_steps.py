"""The clocks of real processes are moved by hours, forward and back, while records are written."""

import time
from pathlib import Path

import pytest
from tests.clients.librdkafka import producer_of, send
from tests.clients.samples import Sample
from tests.cluster.settable_clock import SettableCluster
from tests.cluster.stream import Stream

HOURS = 3_600.0
PATIENT = {"broker.session.timeout.ms": "18000"}
"""A long session, so that a busy machine causes no fencing."""


def sent_at(cluster: SettableCluster, topic: str, seconds: float) -> None:
    """Write a record whose timestamp is this far from the true time; the broker must accept it."""
    timestamp = int((time.time() + seconds) * 1000)
    send(producer_of(cluster), topic, [Sample(None, b"now", (), timestamp)])


@pytest.mark.parametrize("step", [30 * HOURS, -30 * HOURS])
def test_clocks_are_set_on_one_node_and_on_all_and_nobody_notices(
    tmp_path: Path, step: float
) -> None:
    with SettableCluster(directory=tmp_path, properties=PATIENT, network_faults=False) as cluster:
        # Real clients send the true time, which differs from the brokers' time in this test.
        cluster.create_topic("flow", 1, 3, message_timestamp_after_max_ms=2**62)
        cluster.create_topic("strict", 1, 3, message_timestamp_after_max_ms=60_000)
        leader, controller = cluster.leader_of("flow"), cluster.controller()
        epochs = {
            node: next(iter(cluster.topics(node)["flow"].values())).leader_epoch
            for node in cluster.nodes
        }
        with Stream(cluster.bootstrap, "flow", in_flight=100) as stream:
            stream.await_acks(200)
            for seconds in (step, 0.0, step):
                cluster.set_clock(leader, seconds)
                stream.await_acks(200)
            for node in cluster.nodes:
                cluster.set_clock(node, step)
            stream.await_acks(200)
            # The brokers accept a record with their own time as soon as their clocks are set.
            sent_at(cluster, "strict", step)
        assert not stream.strays
        assert not stream.failed
        assert cluster.leader_of("flow") == leader
        assert cluster.controller() == controller
        assert cluster.isr_of("flow") == set(cluster.nodes)
        for node, epoch in epochs.items():
            [seen] = cluster.topics(node)["flow"].values()
            assert seen.leader_epoch == epoch
            assert "fenced" not in cluster.nodes[node].log_text()
