"""Three simulated nodes elect a controller, register, agree on every change, and restart."""

from tests.sim.cluster_steps import created, images_agree
from tests.sim.messages import create_topic, delete_topic
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.model.errors import ErrorCode


def test_three_nodes_elect_one_controller_and_are_all_unfenced(seed: int) -> None:
    cluster = running(seed)

    assert len(cluster.controllers) == 1
    await_true(cluster, lambda: images_agree(cluster))
    assert sorted(b.id for b in cluster.hosts[1].node.image.unfenced_brokers()) == [1, 2, 3]


def test_topics_are_created_through_any_node(seed: int) -> None:
    cluster = running(seed)

    for node in (1, 2, 3):
        assert created(Talk(cluster, node).ask(create_topic(f"from-{node}", 3, 3)))

    await_true(cluster, lambda: images_agree(cluster))
    for host in cluster.up:
        assert sorted(host.node.image.topics) == ["from-1", "from-2", "from-3"]


def test_a_deleted_topic_goes_everywhere_also_from_a_node_that_was_down() -> None:
    cluster = running(3)
    assert created(Talk(cluster, 1).ask(create_topic("orders", 1, 3, file_delete_delay_ms="1000")))
    cluster.hosts[3].kill()
    assert Talk(cluster, 1).ask(delete_topic("orders")).responses[0].error_code is ErrorCode.none

    cluster.start()
    await_ready(cluster)
    cluster.world.run(5_000)

    for host in cluster.up:
        assert [name for name in host.disk.list("") if name.startswith("orders")] == []


def test_the_whole_cluster_starts_again_after_a_power_cut(seed: int) -> None:
    cluster = running(seed)
    for number in range(5):
        assert created(Talk(cluster, 1).ask(create_topic(f"topic-{number}", 2, 3)))
    for host in cluster.hosts.values():
        host.lose_power()
    cluster.world.run(1_000)

    cluster.start()
    await_ready(cluster)

    await_true(cluster, lambda: images_agree(cluster))
    assert sorted(cluster.hosts[1].node.image.topics) == [f"topic-{n}" for n in range(5)]


def test_the_whole_cluster_shuts_down_in_order_and_starts_again() -> None:
    cluster = running(4)
    assert created(Talk(cluster, 1).ask(create_topic("orders", 3, 3)))
    for host in list(cluster.hosts.values()):
        host.shutdown()
        await_true(cluster, lambda host=host: not host.is_up)
        assert host.exit.status == 0

    cluster.start()
    await_ready(cluster)

    assert "orders" in cluster.hosts[2].node.image.topics
