"""F33: replicas on a full, read-only or broken disk lose their leadership, but no records."""

import pytest
from tests.sim.replication import (
    Producer,
    Reader,
    check_healed,
    followers_of,
    isr_is_full,
    leader_of,
    make_topic,
    newest,
)
from tests.sim.talk import await_ready, await_true, running

from tidelog.sim.machines.disk import SimDisk


def fill(disk: SimDisk) -> None:
    disk.faults.capacity = disk.used


def make_read_only(disk: SimDisk) -> None:
    disk.faults.is_read_only = True


def break_sync(disk: SimDisk) -> None:
    disk.faults.fails_sync = True


def repair(disk: SimDisk) -> None:
    disk.faults.capacity = None
    disk.faults.is_read_only = disk.faults.fails_sync = False


FAULTS = {"full": fill, "read-only": make_read_only, "without a sync": break_sync}


@pytest.mark.parametrize("fault", FAULTS)
def test_f33_a_leader_whose_disk_fails_makes_way_at_once(seed: int, fault: str) -> None:
    cluster = running(seed)
    make_topic(cluster, flush_messages="1")
    producer, reader = Producer(cluster), Reader(cluster)
    cluster.world.run(500)
    leader = leader_of(cluster)

    FAULTS[fault](leader.disk)
    await_true(cluster, lambda: newest(cluster).leader not in (-1, leader.id), limit_ms=4_000)
    acknowledged = len(producer.acknowledged)
    await_true(cluster, lambda: len(producer.acknowledged) > acknowledged + 5)

    assert not leader.is_up, "its only log directory has failed"
    assert leader.exit is not None
    assert leader.exit.status == 1
    repair(leader.disk)
    leader.start()
    await_ready(cluster)
    check_healed(cluster, producer, reader)


@pytest.mark.parametrize("fault", FAULTS)
def test_f33_a_follower_whose_disk_fails_leaves_and_comes_back_whole(seed: int, fault: str) -> None:
    cluster = running(seed)
    make_topic(cluster, flush_messages="1")
    producer, reader = Producer(cluster), Reader(cluster)
    cluster.world.run(300)
    follower = followers_of(cluster)[seed % 2]

    FAULTS[fault](follower.disk)
    await_true(cluster, lambda: follower.id not in newest(cluster).isr, limit_ms=4_000)
    acknowledged = len(producer.acknowledged)
    await_true(cluster, lambda: len(producer.acknowledged) > acknowledged + 5)

    assert not follower.is_up
    repair(follower.disk)
    follower.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    check_healed(cluster, producer, reader)


def test_f33_every_disk_fills_up_and_nothing_acknowledged_is_lost(seed: int) -> None:
    cluster = running(seed)
    make_topic(cluster)
    producer = Producer(cluster)
    cluster.world.run(500)
    for host in cluster.hosts.values():
        host.disk.faults.capacity = host.disk.used + 20_000 + 3_000 * seed
    await_true(cluster, lambda: len(cluster.up) < 2)
    cluster.world.run(3_000)
    for host in cluster.hosts.values():
        repair(host.disk)
    cluster.start()
    await_ready(cluster)
    check_healed(cluster, producer)
