"""One simulated node crashes during writes: acknowledged records are kept."""

import pytest
from tests.sim.cluster_steps import created
from tests.sim.messages import create_topic
from tests.sim.talk import Talk, await_ready, running
from tests.sim.writers import Writer, read_all

from tidelog.sim.machines.cluster import SimCluster

CRASHES = 6
EVERY_BATCH = {"flush_messages": "1"}


def write_and_crash(cluster: SimCluster, writer: Writer, *, power_loss: bool) -> None:
    """Write some batches, and crash at a random moment."""
    [host] = cluster.hosts.values()
    dice = cluster.world.dice
    writer.connect(host.id)
    for _ in range(3 + dice.below(8)):
        writer.write()
        cluster.world.run(dice.below(8))
    if power_loss:
        host.lose_power()
    else:
        host.kill()
    cluster.world.run(100)
    cluster.start()
    await_ready(cluster)


@pytest.mark.parametrize("acks", [1, -1])
def test_what_was_flushed_before_its_acknowledgement_survives_power_loss(
    seed: int, acks: int
) -> None:
    cluster = running(seed, nodes=1)
    assert created(Talk(cluster, 1).ask(create_topic("orders", **EVERY_BATCH)))
    writer = Writer(cluster, "orders", acks=acks)

    for _ in range(CRASHES):
        write_and_crash(cluster, writer, power_loss=True)
        writer.check(read_all(Talk(cluster, 1), "orders"))

    assert writer.acknowledged


@pytest.mark.parametrize("acks", [1, -1])
def test_whatever_was_acknowledged_survives_the_end_of_the_process(seed: int, acks: int) -> None:
    cluster = running(seed, nodes=1)
    assert created(Talk(cluster, 1).ask(create_topic("orders")))
    writer = Writer(cluster, "orders", acks=acks)

    for _ in range(CRASHES):
        write_and_crash(cluster, writer, power_loss=False)
        writer.check(read_all(Talk(cluster, 1), "orders"))

    assert writer.acknowledged


def test_after_power_loss_without_flushes_the_log_is_whole_as_far_as_it_goes(seed: int) -> None:
    """Only records at the end of the log may be lost, and records that were read are kept."""
    cluster = running(seed, nodes=1)
    assert created(Talk(cluster, 1).ask(create_topic("orders", segment_ms="15")))
    writer = Writer(cluster, "orders")

    for _ in range(CRASHES):
        write_and_crash(cluster, writer, power_loss=True)
        writer.acknowledged.clear()
        writer.check(read_all(Talk(cluster, 1), "orders"))


def test_what_a_consumer_read_after_a_crash_is_not_taken_back_by_the_next(seed: int) -> None:
    """F11: recovery syncs records before they can be read."""
    cluster = running(seed, nodes=1)
    assert created(Talk(cluster, 1).ask(create_topic("orders")))
    writer = Writer(cluster, "orders")
    write_and_crash(cluster, writer, power_loss=False)
    seen = read_all(Talk(cluster, 1), "orders")

    cluster.hosts[1].lose_power()
    cluster.start()
    await_ready(cluster)

    assert read_all(Talk(cluster, 1), "orders")[: len(seen)] == seen


def test_partitions_of_several_topics_come_back_each_with_its_own(seed: int) -> None:
    cluster = running(seed, nodes=1)
    writers = []
    for topic in ("orders", "payments"):
        assert created(Talk(cluster, 1).ask(create_topic(topic, 2, **EVERY_BATCH)))
        writers += [Writer(cluster, topic, partition) for partition in (0, 1)]
    for writer in writers:
        writer.connect(1)
    for _ in range(10):
        for writer in writers:
            writer.write()
        cluster.world.run(5)
    cluster.hosts[1].lose_power()
    cluster.start()
    await_ready(cluster)

    talk = Talk(cluster, 1)
    for writer in writers:
        writer.check(read_all(talk, writer.topic, writer.partition))


def test_a_clean_shutdown_keeps_everything_and_is_known_for_one(seed: int) -> None:
    cluster = running(seed, nodes=1)
    assert created(Talk(cluster, 1).ask(create_topic("orders")))
    writer = Writer(cluster, "orders")
    writer.connect(1)
    for _ in range(10):
        writer.write()
    cluster.world.run(200)
    host = cluster.hosts[1]

    host.shutdown()
    assert cluster.world.run_until(lambda: not host.is_up, 5_000)
    assert host.exit.status == 0
    assert host.disk.exists(".kafka_cleanshutdown")
    host.lose_power()  # this loses nothing, because everything is synced
    cluster.start()
    await_ready(cluster)

    writer.check(read_all(Talk(cluster, 1), "orders"))
    assert len(writer.acknowledged) == len(writer.sent)
