"""F33 on real processes and file systems: a full disk causes a failover, and nothing is lost."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResponse
from tests.clients.librdkafka import read_messages
from tests.cluster.creations import assign_topic
from tests.cluster.foreground import await_seen, tidelog
from tests.cluster.load import NUMBER, NumberedLoad

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NodeId
from tidelog.testing import Cluster
from tidelog.testing.disk import SmallDisk

MEGABYTES = 1 << 20
IS_ROOT = os.geteuid() == 0
MEND_2 = "Repair or replace the log directory of broker 2, and start it again."


def check(cluster: Cluster, load: NumberedLoad) -> None:
    """Assert that every acknowledged record is at its acknowledged offset, and nowhere else."""
    end = max(load.acked.values()) + 1
    found = [
        NUMBER.unpack_from(message.value() or b"")
        for message in read_messages(cluster, load.topic, end)
    ]
    lost = [number for number, offset in load.acked.items() if found[offset] != (1, number)]
    print(f"acknowledged {len(load.acked)}, lost {len(lost)}, read {len(found)}")
    assert not lost
    assert len(set(found)) == len(found)


@contextmanager
def small_disk(directory: Path) -> Iterator[SmallDisk | None]:
    """A separate file system if the test runs as root; otherwise None."""
    directory.mkdir(parents=True)
    disk = SmallDisk(directory, 64 * MEGABYTES) if IS_ROOT else None
    try:
        yield disk
    finally:
        if disk is not None:
            disk.remove()


def test_f33_a_leader_whose_disk_is_full_makes_way_and_comes_back(tmp_path: Path) -> None:
    with small_disk(tmp_path / "2" / "data") as disk, Cluster(directory=tmp_path) as cluster:
        assign_topic(cluster, "filled", [2, 1, 3])
        cluster.wait_for_isr("filled", 0, {1, 2, 3})
        with NumberedLoad(cluster, "filled", 1, {"enable.idempotence": True}) as load:
            load.await_acks(200)
            if disk is not None:
                disk.fill()
            else:
                cluster.fill_disk(2)
            cluster.wait_for_isr("filled", 0, {1, 3})
            assert cluster.leader_of("filled") != 2
            load.await_acks(200)
            cluster.wait_for(lambda: None if cluster.nodes[2].is_running else True, "its end")
        if disk is not None:
            disk.free()
        cluster.start(2)
        cluster.wait_for_isr("filled", 0, {1, 2, 3})
        check(cluster, load)


def described(cluster: Cluster, node: NodeId) -> dict[str, tuple[ErrorCode, set[str]]]:
    """The error of each log directory and the topics in it."""
    answer = cluster.ask(DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse, node)
    return {
        one.log_dir: (one.error_code, {topic.name for topic in one.topics})
        for one in answer.results
    }


def explained(cluster: Cluster, topic: str) -> str:
    return tidelog("explain", f"{topic}-0", "--bootstrap-server", cluster.bootstrap)


@pytest.mark.parametrize("leads", [True, False], ids=["leader", "follower"])
def test_f33_one_of_two_log_directories_fails_and_the_other_serves_on(
    tmp_path: Path, leads: bool
) -> None:
    """Without root, the test limits the size of all files instead, so both directories fail."""
    first, second = tmp_path / "2" / "data", tmp_path / "second"
    own = {2: {"log.dirs": f"{first},{second}"}}
    # With a long session, a slow machine causes no election. Only the failed disk can cause one.
    patient = {"broker.session.timeout.ms": "30000"}
    with (
        small_disk(second) as disk,
        Cluster(directory=tmp_path, properties=patient, broker_properties=own) as cluster,
    ):
        order = [2, 1, 3] if leads else [1, 2, 3]
        for topic in ("one", "two"):
            assign_topic(cluster, topic, order)
            cluster.wait_for_isr(topic, 0, {1, 2, 3})
        assert set(described(cluster, 2)) == {str(first), str(second)}
        [hit] = described(cluster, 2)[str(second)][1]
        [spared] = described(cluster, 2)[str(first)][1]
        with NumberedLoad(cluster, hit, 1, {"enable.idempotence": True}) as load:
            load.await_acks(200)
            if disk is not None:
                disk.fill()
            else:
                cluster.fill_disk(2)
            cluster.wait_for_isr(hit, 0, {1, 3})
            load.await_acks(200)
        check(cluster, load)
        assert cluster.leader_of(hit) != 2
        if disk is not None:
            cluster.wait_for_isr(spared, 0, {1, 2, 3})
            assert (cluster.leader_of(spared) == 2) == leads
            assert described(cluster, 2)[str(second)][0] is ErrorCode.kafka_storage_error
            await_seen(lambda: explained(cluster, hit), lambda said: MEND_2 in said)
            disk.free()
        cluster.restart(2)
        cluster.wait_for_isr(hit, 0, {1, 2, 3})
        assert described(cluster, 2)[str(second)] == (ErrorCode.none, {hit})
