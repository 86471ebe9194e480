"""Faults of partitions on three simulated nodes, with their numbers in docs/faults.md."""

from tests.sim.cluster_steps import created, images_agree
from tests.sim.controllers import another, await_new_controller, only_controller
from tests.sim.messages import create_topic, delete_topic
from tests.sim.reassignments import reassign
from tests.sim.talk import Talk, await_ready, await_true, running
from tests.sim.writers import Writer, read_all

from tidelog.controller.image.image import PartitionImage
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost


def placed(host: SimHost, topic: str = "orders", partition: int = 0) -> PartitionImage:
    return host.node.image.topics[topic].partitions[partition]


def write(cluster: SimCluster, writer: Writer, batches: int, seen_by: SimHost) -> None:
    """Send batches to the leader that this node knows, and wait for the answers."""
    await_true(cluster, lambda: writer.topic in seen_by.node.image.topics)
    writer.connect(placed(seen_by, writer.topic, writer.partition).leader)
    for _ in range(batches):
        writer.write()
    cluster.world.run(500)


def test_f28_a_change_of_the_in_sync_set_outlives_the_controller_that_it_was_sent_to(
    seed: int,
) -> None:
    """The leader sends its request to a cut-off controller, and repeats it at the new one."""
    cluster = running(seed)
    controller = only_controller(cluster)
    leader = another(cluster, controller)
    follower = another(cluster, controller, leader)
    on = [[leader.id, follower.id, controller.id]]
    assert created(Talk(cluster, leader.id).ask(create_topic("orders", on=on)))
    writer = Writer(cluster, "orders")
    write(cluster, writer, 5, leader)
    follower.kill()
    await_true(cluster, lambda: follower.id not in placed(leader).isr)

    follower.start()
    await_true(cluster, lambda: leader.node.image.brokers[follower.id].is_active)
    cluster.network.isolate(controller.name)  # the leader is about to add the follower
    await_new_controller(cluster, controller)
    await_true(cluster, lambda: set(placed(leader).isr) == {leader.id, follower.id})
    write(cluster, writer, 5, leader)
    cluster.network.heal()
    await_true(cluster, lambda: len(placed(leader).isr) == 3)

    assert len(writer.acknowledged) == len(writer.sent)
    writer.check(read_all(Talk(cluster, placed(leader).leader), "orders"))


def test_f05_a_new_epoch_under_the_same_leader_is_followed_on(seed: int) -> None:
    """One follower learns of the new epoch late, and its leader refuses the old epoch."""
    cluster = running(seed)
    controller = only_controller(cluster)
    leader = another(cluster, controller)
    follower = another(cluster, controller, leader)
    on = [[leader.id, follower.id, controller.id]] * 2
    assert created(Talk(cluster, leader.id).ask(create_topic("orders", on=on)))
    writer = Writer(cluster, "orders")
    write(cluster, writer, 5, leader)
    epoch = placed(leader).leader_epoch

    if seed % 2:
        cluster.network.cut(controller.name, follower.name)
    Talk(cluster, controller.id).begin(reassign("orders", [leader.id, follower.id]))
    await_true(cluster, lambda: placed(leader).leader_epoch == epoch + 1)
    cluster.world.run(300)
    cluster.network.heal()
    cluster.world.run(300)
    write(cluster, writer, 5, leader)

    assert placed(leader).leader == leader.id
    assert sorted(placed(leader).isr) == sorted([leader.id, follower.id])
    assert len(writer.acknowledged) == len(writer.sent)


def test_f30_a_topic_made_again_while_a_replica_was_down_has_nothing_of_the_old_one(
    seed: int,
) -> None:
    """Both topics have the same directory name, but the new topic must not get old records."""
    cluster = running(seed)
    away = another(cluster, only_controller(cluster))
    here = another(cluster, away)
    on = [[here.id, away.id, another(cluster, here, away).id]]
    assert created(Talk(cluster, here.id).ask(create_topic("orders", on=on)))
    write(cluster, Writer(cluster, "orders"), 5, here)
    away.kill()
    await_true(cluster, lambda: away.id not in placed(here).isr)
    Talk(cluster, here.id).ask(delete_topic("orders"))
    on = [[away.id, here.id]]
    assert created(Talk(cluster, here.id).ask(create_topic("orders", on=on)))
    writer = Writer(cluster, "orders")
    write(cluster, writer, 20, here)

    away.start()
    await_ready(cluster)
    await_true(cluster, lambda: away.id in placed(here).isr)
    here.kill()
    await_true(cluster, lambda: placed(away).leader == away.id)

    assert len(writer.acknowledged) == len(writer.sent)
    writer.check(read_all(Talk(cluster, away.id), "orders"))


def test_f30_a_delete_that_a_sleeping_replica_missed_does_not_take_the_new_topic(
    seed: int,
) -> None:
    """The paused replica gets both changes at once, and must keep the new topic's records."""
    cluster = running(seed)
    sleeping = another(cluster, only_controller(cluster))
    here = another(cluster, sleeping)
    soon = {"file_delete_delay_ms": "1000"}
    assert created(Talk(cluster, here.id).ask(create_topic("orders", 1, 3, **soon)))
    write(cluster, Writer(cluster, "orders"), 5, here)
    sleeping.pause()
    await_true(cluster, lambda: sleeping.id not in placed(here).isr)
    Talk(cluster, here.id).ask(delete_topic("orders"))
    assert created(Talk(cluster, here.id).ask(create_topic("orders", 1, 2)))
    writer = Writer(cluster, "orders")
    write(cluster, writer, 20, here)

    sleeping.resume()
    await_ready(cluster)
    cluster.world.run(3_000)  # longer than the deletion delay
    await_true(cluster, lambda: images_agree(cluster))

    assert len(writer.acknowledged) == len(writer.sent)
    writer.check(read_all(Talk(cluster, placed(here).leader), "orders"))


def test_an_acknowledged_write_survives_its_leader(seed: int) -> None:
    cluster = running(seed)
    assert created(Talk(cluster, 1).ask(create_topic("orders", 1, 3, min_insync_replicas="2")))
    writer = Writer(cluster, "orders")
    for _ in range(3):
        write(cluster, writer, 8, cluster.hosts[1])
        leader = cluster.hosts[placed(cluster.hosts[1]).leader]
        survivor = another(cluster, leader)
        writer.connect(leader.id)
        writer.write()

        leader.kill()
        await_true(cluster, lambda old=leader, on=survivor: placed(on).leader not in (-1, old.id))
        cluster.world.run(1_000)  # the other follower's fetches advance the high watermark
        writer.check(read_all(Talk(cluster, placed(survivor).leader), "orders"))

        cluster.start()
        await_true(cluster, lambda on=survivor: len(placed(on).isr) == 3)
