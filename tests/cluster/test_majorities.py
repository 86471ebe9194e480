"""A topic under the quorum rule on real processes: a paused follower and a killed leader."""

from pathlib import Path

from tests.clients.librdkafka import producer_of, read_messages, send_values

from tidelog.testing import Cluster

EACH = 200


def test_f82_a_paused_follower_delays_no_write_and_a_killed_leader_loses_none(
    tmp_path: Path,
) -> None:
    values = [f"{number}".encode() for number in range(3 * EACH)]
    with Cluster(directory=tmp_path, network_faults=False) as cluster:
        cluster.create_topic("t", 1, 3, tidelog_commit_rule="quorum")
        leader = cluster.leader_of("t")
        slow, other = (node for node in cluster.nodes if node != leader)
        producer = producer_of(cluster, acks="all", enable_idempotence=True)
        send_values(producer, "t", values[:EACH])

        cluster.pause(slow)
        send_values(producer, "t", values[EACH : 2 * EACH])
        cluster.resume(slow)
        cluster.kill(leader)
        send_values(producer, "t", values[2 * EACH :])
        assert cluster.leader_of("t") in (slow, other)

        cluster.start(leader)
        cluster.wait_for_isr("t", 0, set(cluster.nodes))
        found = read_messages(cluster, "t", len(values))
        assert [message.value() for message in found] == values
        offsets = [message.offset() or 0 for message in found]
        assert offsets == sorted(set(offsets))
