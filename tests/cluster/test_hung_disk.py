"""F33 under load: a hanging disk blocks only requests that need it, and nothing is lost."""

from pathlib import Path

from tests.clients.librdkafka import read_messages
from tests.cluster.creations import assign_topic
from tests.cluster.frozen_disk import disk_that_can_hang, hanging
from tests.cluster.load import NUMBER, NumberedLoad

from tidelog.testing import Cluster

MEGABYTES = 1 << 20


def lost(cluster: Cluster, load: NumberedLoad) -> list[int]:
    end = max(load.acked.values()) + 1
    found = [
        NUMBER.unpack_from(message.value() or b"")
        for message in read_messages(cluster, load.topic, end)
    ]
    assert len(set(found)) == len(found)
    return [number for number, offset in load.acked.items() if found[offset] != (1, number)]


def test_f33_a_leader_whose_disk_hangs_makes_way_and_goes_on_later(tmp_path: Path) -> None:
    directory, image = tmp_path / "2" / "data", tmp_path / "image"
    with (
        disk_that_can_hang(directory, image, 512 * MEGABYTES) as disk,
        Cluster(directory=tmp_path, network_faults=False) as cluster,
    ):
        assign_topic(cluster, "hung", [2, 1, 3])
        assign_topic(cluster, "other", [1, 3])
        cluster.wait_for_isr("hung", 0, {1, 2, 3})
        cluster.wait_for_isr("other", 0, {1, 3})
        with (
            NumberedLoad(cluster, "hung", 1, {"enable.idempotence": True}) as hung,
            NumberedLoad(cluster, "other", 1, {"enable.idempotence": True}) as other,
        ):
            hung.await_acks(200)
            with hanging(cluster, 2, disk):
                other.await_acks(1_000)
                cluster.wait_for_isr("hung", 0, {1, 3})
                hung.await_acks(200)
                other.await_acks(1_000)
            cluster.wait_for_isr("hung", 0, {1, 2, 3})
            hung.await_acks(200)
        assert lost(cluster, hung) == []
        assert lost(cluster, other) == []
        assert cluster.nodes[2].is_running
