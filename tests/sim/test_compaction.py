"""Compaction on three replicas, during elections, truncations and power loss."""

import pytest
from tests.sim.keyed_producer import KEYS, KeyedProducer, check_last_values, log_of, records_of
from tests.sim.replication import followers_of, isr_is_full, leader_of, make_topic
from tests.sim.talk import await_ready, await_true, running

from tidelog.log.cleaner.cleaning_pass import CleaningSlice
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

COMPACTED = {
    "cleanup_policy": "compact",
    "internal_segment_bytes": "1500",
    "min_cleanable_dirty_ratio": "0.1",
    "delete_retention_ms": "2000",
}
NODES = (1, 2, 3)


def compacting(seed: int) -> tuple[SimCluster, KeyedProducer]:
    cluster = running(seed, log_cleaner_backoff_ms="50")
    make_topic(cluster, **COMPACTED)
    return cluster, KeyedProducer(cluster)


def settle(cluster: SimCluster, producer: KeyedProducer) -> None:
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    await_true(cluster, lambda: isr_is_full(cluster))
    ends = lambda: {log_of(cluster, node).log_end_offset for node in NODES}  # noqa: E731
    await_true(cluster, lambda: len(ends()) == 1)
    cluster.world.run(3_000)


def restart(cluster: SimCluster, host: SimHost) -> None:
    host.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))


def test_every_replica_compacts_and_keeps_the_last_value_of_each_key() -> None:
    cluster, producer = compacting(seed=1)
    await_true(cluster, lambda: producer.acknowledged > 400)
    settle(cluster, producer)
    check_last_values(cluster, producer, NODES)
    for node in NODES:
        assert log_of(cluster, node).log_end_offset > 400
        assert len(records_of(log_of(cluster, node))) < 100


@pytest.mark.parametrize("crash", ["kill", "lose_power"])
def test_f79_nodes_that_die_within_a_pass_lose_no_last_value(seed: int, crash: str) -> None:
    cluster, producer = compacting(seed)
    for turn in range(4):
        host = leader_of(cluster) if turn % 2 else followers_of(cluster)[0]
        await_true(cluster, lambda host=host: host.jobs.count(CleaningSlice) > 0)
        cluster.world.run(cluster.world.dice.below(12))
        getattr(host, crash)()
        cluster.world.run(500 + cluster.world.dice.below(3_000))
        restart(cluster, host)
        check_last_values_so_far(cluster, producer)
    settle(cluster, producer)
    check_last_values(cluster, producer, NODES)


def test_f79_elections_and_truncations_within_passes_lose_no_last_value(seed: int) -> None:
    cluster, producer = compacting(seed)
    dice = cluster.world.dice
    for turn in range(4):
        leader = leader_of(cluster)
        await_true(cluster, lambda leader=leader: leader.jobs.count(CleaningSlice) > 0)
        # The leader appends records that nobody else has. It truncates them when it returns.
        cluster.network.isolate(leader.name)
        cluster.world.run(4_000 + dice.below(4_000))
        if turn % 2:
            leader.lose_power()
            cluster.network.heal()
            restart(cluster, leader)
        else:
            cluster.network.heal()
            await_true(cluster, lambda: isr_is_full(cluster))
        check_last_values_so_far(cluster, producer)
    settle(cluster, producer)
    check_last_values(cluster, producer, NODES)
    for node in NODES:
        assert len(records_of(log_of(cluster, node))) < 100


def check_last_values_so_far(cluster: SimCluster, producer: KeyedProducer) -> None:
    leader = log_of(cluster, leader_of(cluster).id)
    last = {record.key: record for record in records_of(leader)}
    for key, (offset, value) in producer.last.items():
        found = last.get(key)
        assert found is not None or value is None
        assert found is None or found.offset >= offset


def test_a_replica_that_was_away_follows_a_compacted_leader_across_its_gaps(seed: int) -> None:
    cluster, producer = compacting(seed)
    await_true(cluster, lambda: producer.acknowledged > 50)
    away = followers_of(cluster)[0]
    away.kill()
    await_true(cluster, lambda: producer.acknowledged > 400)
    cluster.world.run(5_000)
    restart(cluster, away)
    settle(cluster, producer)
    check_last_values(cluster, producer, NODES)
    away.kill()
    away.wipe()
    restart(cluster, away)
    cluster.world.run(3_000)
    check_last_values(cluster, producer, NODES)
    assert log_of(cluster, away.id).damages == ()
    assert log_of(cluster, away.id).was_cleaned


def test_after_a_clean_stop_a_compacted_log_counts_as_complete() -> None:
    cluster, producer = compacting(seed=2)
    await_true(cluster, lambda: producer.acknowledged > 300)
    settle(cluster, producer)
    for host in cluster.hosts.values():
        host.shutdown()
    await_true(cluster, lambda: not cluster.up)
    for host in cluster.hosts.values():
        host.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    check_last_values(cluster, producer, NODES)
    assert all(log_of(cluster, node).recovery.is_proven for node in NODES)
    assert len(producer.last) == KEYS
