"""A damaged metadata log or snapshot is detected, never applied, and fetched again (F57)."""

from random import Random

import pytest
from tests.sim.cluster_steps import created, images_agree
from tests.sim.messages import create_topic
from tests.sim.metadata_damage import KINDS, damage
from tests.sim.replication import Producer, check_healed, isr_is_full, make_topic
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.node.metadata.snapshot_files import DIRECTORY
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost
from tidelog.sim.stage.cast import Cast
from tidelog.sim.stage.stage import Stage

SNAPSHOTS = {
    "metadata_log_max_record_bytes_between_snapshots": "2000",
    "metadata_log_max_snapshot_interval_ms": "0",
    "metadata_max_retention_bytes": "6000",
}


def written(seed: int, topics: int = 12, **settings: str) -> tuple[SimCluster, list[str]]:
    cluster = running(seed, **settings)
    names = [f"topic-{number}" for number in range(topics)]
    for name in names:
        assert created(Talk(cluster, 1 + len(name) % 3).ask(create_topic(name, 2, 2)))
    await_true(cluster, lambda: images_agree(cluster))
    return cluster, names


def stop(cluster: SimCluster, host: SimHost, *, cleanly: bool) -> None:
    if cleanly:
        host.shutdown()
        await_true(cluster, lambda: not host.is_up)
    else:
        host.kill()
    host.disk.kill()


def check_whole(cluster: SimCluster, names: list[str]) -> None:
    await_ready(cluster)
    await_true(cluster, lambda: images_agree(cluster))
    for host in cluster.up:
        assert set(names) <= set(host.node.image.topics)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cleanly", [True, False])
def test_f57_one_of_three_with_damaged_metadata_has_it_again(
    seed: int, kind: str, cleanly: bool
) -> None:
    random = Random(f"{seed} {kind} {cleanly}")
    settings = SNAPSHOTS if random.random() < 0.7 else {}
    cluster, names = written(seed, **settings)
    make_topic(cluster)
    producer = Producer(cluster)
    host = random.choice(list(cluster.hosts.values()))
    for _ in range(3):
        stop(cluster, host, cleanly=cleanly)
        done = damage(host.disk, kind, random, lambda path: True)
        host.start()
        assert host.is_up, (done, host.exit)
        check_whole(cluster, names)
    await_true(cluster, lambda: isr_is_full(cluster))
    check_healed(cluster, producer)


def test_f57_a_damaged_log_is_kept_beside_the_one_that_is_fetched_again(seed: int) -> None:
    cluster, names = written(seed)
    host = cluster.hosts[1 + seed % 3]
    stop(cluster, host, cleanly=bool(seed % 2))
    path = f"{DIRECTORY}/{0:020d}.log"
    host.disk.flip_bit(path, 8 * 300 + seed * 97)
    spoilt = host.disk.read_file(path)

    host.start()
    check_whole(cluster, names)

    kept = [name for name in host.disk.list(DIRECTORY) if name.endswith(".damaged")]
    assert spoilt in [host.disk.read_file(f"{DIRECTORY}/{name}") for name in kept]


def test_f57_a_voter_that_lost_records_elects_nobody_who_lacks_them(seed: int) -> None:
    """The lagging voter lacks a record that the leader and the damaged voter have committed."""
    cluster, _ = written(seed, topics=3)
    [leader] = cluster.controllers
    lagging, damaged = [host for host in cluster.hosts.values() if host is not leader]
    cluster.network.isolate(lagging.name)
    assert created(Talk(cluster, leader.id).ask(create_topic("orders", 1, 1)))
    leader.lose_power()  # its unsent messages are lost
    stop(cluster, damaged, cleanly=False)
    kinds = ("flip", "empty", "delete", "garbage", "directory gone")
    is_log = lambda path: path.endswith(".log")  # noqa: E731
    damage(damaged.disk, kinds[seed % len(kinds)], Random(seed), is_log)
    cluster.network.heal()

    for _ in range(3):  # restarts make no difference
        damaged.start()
        cluster.world.run(10_000)
        assert cluster.controllers == [], "elected with the vote of a voter that lost its log"
        stop(cluster, damaged, cleanly=False)

    leader.start()
    damaged.start()
    check_whole(cluster, ["orders"])


@pytest.mark.parametrize("cleanly", [True, False])
def test_f57_when_all_have_lost_their_metadata_nothing_starts_as_an_empty_cluster(
    seed: int, cleanly: bool
) -> None:
    cluster, _ = written(seed, topics=3)
    make_topic(cluster)
    producer = Producer(cluster)
    cluster.world.run(500)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    hosts = list(cluster.hosts.values())
    for host in hosts:
        stop(cluster, host, cleanly=cleanly and host is not hosts[-1])
    held = {host.id: host.disk.read_file(f"orders-0/{0:020d}.log") for host in hosts}
    for host in hosts:
        host.disk.remove_tree(DIRECTORY)
        if seed % 2:
            host.disk.remove("metadata-log-mark")
            host.disk.remove("recovery-point-offset-checkpoint")
    cluster.start()
    cluster.world.run(60_000)

    assert cluster.controllers == []
    for host in hosts:
        assert host.disk.read_file(f"orders-0/{0:020d}.log") == held[host.id]


def test_f57_an_observer_with_a_damaged_log_fetches_it_again(seed: int) -> None:
    stage = Stage(Cast(brokers=2, controllers=1, seed=seed))
    stage.begin()
    for number in range(4):
        assert stage.ask(1, create_topic(f"topic-{number}")) is not None
    stage.run(1_000)
    observer = stage.hosts[2]
    for kind in KINDS:
        observer.kill()
        observer.disk.kill()
        damage(observer.disk, kind, Random(seed), lambda path: True)
        observer.start()
        assert stage.run_until(lambda: stage.is_ready, 60_000)
        assert len(observer.node.image.topics) >= 4


def test_f40_a_wiped_voter_that_restarts_while_it_fetches_elects_nobody(seed: int) -> None:
    cluster, names = written(seed, topics=6)
    [leader] = cluster.controllers
    lagging, wiped = [host for host in cluster.hosts.values() if host is not leader]
    cluster.network.isolate(lagging.name)
    assert created(Talk(cluster, leader.id).ask(create_topic("orders", 1, 1)))
    stop(cluster, wiped, cleanly=False)
    wiped.wipe()
    wiped.start()
    cluster.world.run(seed * 3)  # so that the wiped node is stopped while it fetches
    leader.kill()
    if wiped.is_up:
        stop(cluster, wiped, cleanly=False)
    cluster.network.heal()
    wiped.start()
    cluster.world.run(20_000)
    if cluster.controllers:  # a new controller must have all records
        assert "orders" in cluster.controllers[0].node.image.topics

    leader.start()
    check_whole(cluster, [*names, "orders"])
