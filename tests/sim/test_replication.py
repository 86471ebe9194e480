"""Three nodes, one partition on all of them, min ISR 2, acks=all, one node in trouble at a time.

At the end nothing that was acknowledged is missing on any replica, and their files are equal.
"""

import pytest
from tests.sim.replication import (
    Producer,
    Reader,
    check_healed,
    isr_is_full,
    leader_of,
    make_topic,
)
from tests.sim.talk import await_true, running

from tidelog.sim.cluster import SimCluster
from tidelog.sim.dice import SeededDice
from tidelog.sim.host import SimHost

TROUBLES = ("kill", "power", "isolate", "pause", "one way", "reset", "shutdown")


def begin(cluster: SimCluster, host: SimHost, trouble: str, dice: SeededDice) -> None:
    match trouble:
        case "kill":
            host.kill()
        case "power":
            host.lose_power()
        case "isolate":
            cluster.network.isolate(host.name)
        case "pause":
            host.pause()
        case "one way":
            others = [other for other in cluster.hosts.values() if other is not host]
            other = others[dice.below(len(others))]
            cluster.network.cut(*sorted((host.name, other.name), reverse=dice.below(2) == 1))
        case "reset":
            for other in cluster.hosts.values():
                cluster.network.reset(host.name, other.name)
        case "shutdown":
            host.shutdown()
            await_true(cluster, lambda: not host.is_up)
        case _:
            raise AssertionError(trouble)


def mend(cluster: SimCluster) -> None:
    cluster.network.heal()
    for host in cluster.up:
        if host.is_paused:
            host.resume()
    cluster.start()


def in_turn(seed: int, troubles: list[str], **configs: str) -> None:
    cluster = running(seed, replica_lag_time_max_ms="3000")
    make_topic(cluster, **configs)
    dice = cluster.world.dice.fork("troubles")
    producer, reader = Producer(cluster), Reader(cluster)
    for trouble in troubles:
        cluster.world.run(300 + dice.below(500))
        # The leader most of the time: it is where most can go wrong.
        host = leader_of(cluster) if dice.below(3) else cluster.hosts[1 + dice.below(3)]
        begin(cluster, host, trouble, dice)
        cluster.world.run(dice.below(4_000))
        mend(cluster)
        await_true(cluster, lambda: isr_is_full(cluster) and cluster.is_ready)

    check_healed(cluster, producer, reader)
    assert len(producer.acknowledged) > 100
    assert len(reader.seen) > 50


@pytest.mark.parametrize("trouble", TROUBLES)
def test_nothing_acknowledged_is_lost_by_one_kind_of_trouble(trouble: str, seed: int) -> None:
    in_turn(seed, [trouble] * 4)


def test_nothing_acknowledged_is_lost_by_troubles_in_turn(seed: int) -> None:
    dice = SeededDice(seed)
    in_turn(seed, [TROUBLES[dice.below(len(TROUBLES))] for _ in range(8)])


def test_nothing_acknowledged_is_lost_where_every_write_is_flushed(seed: int) -> None:
    in_turn(seed, ["power", "kill", "pause", "power"], flush_messages="1")
