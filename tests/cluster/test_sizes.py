"""Sizes on real processes: small limits, batches near 100 MB, groups with huge metadata."""

import re
import time
from datetime import timedelta
from pathlib import Path

import pytest
from kio.schema.join_group.v5.request import JoinGroupRequest, JoinGroupRequestProtocol
from kio.schema.join_group.v5.response import JoinGroupResponse
from kio.schema.list_groups.v4.request import ListGroupsRequest
from kio.schema.list_groups.v4.response import ListGroupsResponse
from tests.clients.librdkafka import producer_of, read, send_values
from tests.cluster.coordinators import coordinator_of
from tests.cluster.stream import Stream

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster, NodeStuck

MEGABYTE = 1 << 20
LARGE = 100 * MEGABYTE
PATIENT = {"broker.session.timeout.ms": "18000"}
"""A long session, so that a busy machine causes no fencing."""


def peak_megabytes(cluster: Cluster, node: NodeId) -> float:
    status = Path(f"/proc/{cluster.nodes[node].pid}/status").read_text()
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) / 1024


def end_of(cluster: Cluster, node: NodeId, topic: str, partition: int) -> int:
    """The number of bytes of the partition on this node."""
    directory = cluster.data(node) / f"{topic}-{partition}"
    return sum(file.stat().st_size for file in directory.glob("*.log"))


def await_equal(cluster: Cluster, topic: str, partitions: int, size: int) -> None:
    def sizes() -> list[int]:
        return [
            end_of(cluster, node, topic, partition)
            for node in cluster.nodes
            for partition in range(partitions)
        ]

    cluster.wait_for(lambda: min(sizes()) >= size or None, "every replica to be whole")
    assert len(set(sizes())) == 1


def test_f60_with_a_limit_of_two_megabytes_a_restarted_broker_catches_up(tmp_path: Path) -> None:
    limits = {"socket.request.max.bytes": str(2 * MEGABYTE), **PATIENT}
    with Cluster(directory=tmp_path, properties=limits, network_faults=False) as cluster:
        cluster.create_topic("wide", assignment=[(1, 2, 3)] * 12)
        cluster.kill(3)
        producer = producer_of(cluster, linger_ms=0, batch_size=MEGABYTE)
        for partition in range(12):
            values = [bytes(500_000) for _ in range(6)]
            assert len(send_values(producer, "wide", values, partition)) == 6

        cluster.start(3)

        for partition in range(12):
            cluster.wait_for_isr("wide", partition, {1, 2, 3})
        await_equal(cluster, "wide", 12, 3_000_000)


def test_f61_a_batch_near_a_hundred_megabytes_is_replicated_and_disturbs_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(directory=tmp_path, properties=PATIENT, network_faults=False) as cluster:
        cluster.create_topic("large", assignment=[(1, 2, 3)], max_message_bytes=LARGE)
        cluster.create_topic("other", assignment=[(1, 2, 3)])
        producer = producer_of(cluster, message_max_bytes=LARGE + MEGABYTE, acks="all")
        with Stream(cluster.bootstrap, "other", in_flight=100) as stream:
            stream.await_acks(100)
            began = time.monotonic()
            assert send_values(producer, "large", [bytes(LARGE - 10_000)]) == [0]
            took = time.monotonic() - began
            assert cluster.isr_of("other") == {1, 2, 3}
            await_equal(cluster, "large", 1, LARGE - 10_000)
            stream.await_acks(100)
        cluster.wait_for_isr("large", 0, {1, 2, 3})
        assert cluster.isr_of("other") == {1, 2, 3}
        assert not stream.strays
        peaks = [round(peak_megabytes(cluster, node)) for node in cluster.nodes]
        assert max(peaks) < 256
        with capsys.disabled():
            gap = f"the other topic waited {stream.longest_gap:.1f} s at most"
            print(f"\n  acknowledged in {took:.1f} s; {gap}; peak MB {peaks}", end="")


def join(cluster: Cluster, node: NodeId, group: str, metadata: bytes) -> ErrorCode:
    request = JoinGroupRequest(
        group_id=group,
        session_timeout=timedelta(seconds=30),
        rebalance_timeout=timedelta(seconds=30),
        member_id="",
        group_instance_id=None,
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol(name="range", metadata=metadata),),
    )
    return cluster.ask(request, JoinGroupResponse, node).error_code


def test_f61_members_with_huge_metadata_are_refused_and_leave_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Cluster(directory=tmp_path, properties=PATIENT, network_faults=False) as cluster:
        node = coordinator_of(cluster, "group")
        cluster.wait_for(
            lambda: join(cluster, node, "group", b"") is ErrorCode.member_id_required or None,
            "the coordinator to serve",
        )
        for _ in range(2):
            assert join(cluster, node, "group", bytes(5 * MEGABYTE)) is (
                ErrorCode.unknown_server_error
            )
            with pytest.raises(NodeStuck, match=r"closed the connection|Connection reset"):
                # The request exceeds the limit of this API, so the broker does not decode it.
                join(cluster, node, "group", bytes(55 * MEGABYTE))

        listed = cluster.ask(ListGroupsRequest(states_filter=()), ListGroupsResponse, node)
        assert [one.group_id for one in listed.groups] == ["group"]
        offsets = [*cluster.data(node).glob("__consumer_offsets-*/*.log")]
        assert sum(file.stat().st_size for file in offsets) < MEGABYTE
        peak = peak_megabytes(cluster, node)
        assert peak < 256
        with capsys.disabled():
            print(f"\n  peak {peak:.0f} MB", end="")


def test_f62_a_partition_that_is_damaged_on_its_leader_does_not_hold_up_the_others(
    tmp_path: Path,
) -> None:
    """A follower that was down fetches a batch whose checksum is wrong on the leader."""
    with Cluster(directory=tmp_path, properties=PATIENT, network_faults=False) as cluster:
        cluster.create_topic("t", assignment=[(1, 2, 3)] * 4)
        cluster.kill(3)
        producer = producer_of(cluster)
        for partition in range(4):
            send_values(producer, "t", [bytes(1_000) for _ in range(50)], partition)
        segment = cluster.data(1) / "t-2" / f"{0:020}.log"
        with segment.open("r+b") as file:
            file.seek(-100, 2)
            file.write(b"damage")

        cluster.start(3)

        for partition in (0, 1, 3):
            cluster.wait_for_isr("t", partition, {1, 2, 3})
            send_values(producer, "t", [b"more"], partition)
        assert 3 not in cluster.isr_of("t", 2)
        assert len(read(cluster, "t", 51, 3)) == 51
