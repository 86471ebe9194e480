"""A replica whose durable records have gone bad is not trusted before it has them again (F47)."""

import pytest
from tests.sim.replication import (
    TOPIC,
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

from tidelog.sim.cluster import SimCluster
from tidelog.sim.host import SimHost

LOG = f"{TOPIC}-0/{0:020d}.log"
CHECKPOINT = {"log_flush_offset_checkpoint_interval_ms": "100"}


def rot(host: SimHost, seed: int) -> None:
    """A bit in the first half of the log changes while nobody looks."""
    host.disk.flip_bit(LOG, 8 * 100 + 8 * (seed * 977 % (host.disk.size(LOG) // 2 - 100)))


def written(seed: int) -> tuple[SimCluster, Producer, Reader]:
    """A cluster with records that are durable, and known to be."""
    cluster = running(seed, **CHECKPOINT)
    make_topic(cluster, flush_messages="1")
    producer, reader = Producer(cluster), Reader(cluster)
    cluster.world.run(1_500)
    return cluster, producer, reader


def test_f47_a_follower_with_a_hole_in_its_log_fetches_it_again(seed: int) -> None:
    cluster, producer, reader = written(seed)
    follower = followers_of(cluster)[seed % 2]
    follower.kill()
    await_true(cluster, lambda: follower.id not in newest(cluster).isr)
    rot(follower, seed)
    follower.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    check_healed(cluster, producer, reader)


def test_f47_a_leader_with_a_hole_in_its_log_leads_again_only_when_it_is_whole(seed: int) -> None:
    cluster, producer, reader = written(seed)
    leader = leader_of(cluster)
    leader.kill()
    rot(leader, seed)
    leader.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    for other in [host for host in cluster.hosts.values() if host is not leader]:
        other.kill()
        await_true(cluster, lambda gone=other: gone.id not in newest(cluster).isr)
        other.start()
        await_ready(cluster)
        await_true(cluster, lambda: isr_is_full(cluster))
    check_healed(cluster, producer, reader)


@pytest.mark.parametrize("last", [0, 1, 2])
def test_f47_a_replica_that_lost_its_end_after_a_clean_shutdown_is_not_elected(
    seed: int, last: int
) -> None:
    """All stop in order and each could lead again; one of them has lost what it had."""
    cluster, producer, _ = written(seed)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    hosts = [*followers_of(cluster), leader_of(cluster)]
    for host in hosts:
        host.shutdown()
        await_true(cluster, lambda gone=host: not gone.is_up)
    broken = hosts[last]
    log = broken.disk.open(LOG)
    log.truncate(log.size // 3)
    log.sync()
    broken.disk.kill()

    broken.start()
    cluster.world.run(500)
    cluster.start()
    await_ready(cluster)

    check_healed(cluster, producer)
