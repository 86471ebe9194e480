"""A start that is interrupted at any step loses nothing, and does not count as unclean (F17).

The clean-shutdown mark must survive an interruption, unless the process has already changed a log
or the controller has registered the process.
"""

import logging
from collections.abc import Callable

import pytest
from tests.sim.replication import (
    Producer,
    check_healed,
    isr_is_full,
    make_topic,
)
from tests.sim.talk import await_ready, await_true, running

from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost


def hurry(host: SimHost) -> None:
    """Send Ctrl-C twice in quick succession."""
    host.shutdown()
    host.stop_now()


INTERRUPTIONS: dict[str, Callable[[SimHost], None]] = {
    "shutdown": SimHost.shutdown,
    "hurried": hurry,
    "kill": SimHost.kill,
    "power": SimHost.lose_power,
}
STEPS = 9
"""How many interruptions of each kind a seed tries, at moments spread over a start."""
ALARMS = ("elected uncleanly", "may be lost", "are lost", "has found damage")


def stopped(seed: int) -> tuple[SimCluster, Producer]:
    """A cluster with acknowledged records, cleanly stopped."""
    cluster = running(seed)
    make_topic(cluster)
    producer = Producer(cluster)
    cluster.world.run(300)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle and isr_is_full(cluster))
    stop_all(cluster)
    return cluster, producer


def stop_all(cluster: SimCluster) -> None:
    for host in cluster.up:
        host.shutdown()
    await_true(cluster, lambda: not cluster.up)


def check_quiet(caplog: pytest.LogCaptureFixture) -> None:
    logged = [record.getMessage() for record in caplog.records]
    assert not [line for line in logged if any(alarm in line for alarm in ALARMS)], logged


def events_of_a_start(seed: int) -> int:
    cluster, _ = stopped(seed)
    before = cluster.world.events
    cluster.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    return cluster.world.events - before


def interrupt(cluster: SimCluster, how: str, victims: list[SimHost]) -> None:
    for host in victims:
        if host.is_up:
            INTERRUPTIONS[how](host)
    await_true(cluster, lambda: not any(host.is_up for host in victims))


def start_until(cluster: SimCluster, events: int) -> None:
    """Start all nodes, and run this many events."""
    before = cluster.world.events
    cluster.start()
    cluster.world.run_until(lambda: cluster.world.events - before >= events, 60_000)


@pytest.mark.parametrize("how", list(INTERRUPTIONS))
@pytest.mark.parametrize("which", ["one", "all"])
def test_f17_an_interrupted_start_is_no_unclean_end(
    seed: int, how: str, which: str, caplog: pytest.LogCaptureFixture
) -> None:
    whole = events_of_a_start(seed)
    for step in range(STEPS):
        cluster, producer = stopped(seed)
        victims = list(cluster.hosts.values())
        if which == "one":
            victims = [victims[(seed + step) % len(victims)]]
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            start_until(cluster, whole * step // STEPS + seed % (whole // STEPS))
            interrupt(cluster, how, victims)
            cluster.start()
            await_ready(cluster)
            check_healed(cluster, producer)
        check_quiet(caplog)


def test_f17_starts_that_are_interrupted_again_and_again_are_no_unclean_ends(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    whole = events_of_a_start(seed)
    cluster, producer = stopped(seed)
    dice = cluster.world.dice.fork("interruptions")
    with caplog.at_level(logging.WARNING):
        for _ in range(12):
            start_until(cluster, dice.below(whole))
            victims = [host for host in cluster.up if dice.below(4)]
            kinds = list(INTERRUPTIONS)
            for host in victims:
                INTERRUPTIONS[kinds[dice.below(len(kinds))]](host)
            await_true(cluster, lambda ended=victims: not any(host.is_up for host in ended))
        cluster.start()
        await_ready(cluster)
        check_healed(cluster, producer)
    check_quiet(caplog)
