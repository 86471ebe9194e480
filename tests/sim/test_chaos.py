"""Random faults under load, then calm: nothing acknowledged is lost, and everything works again."""

import pytest
from tests.sim.chaos import Chaos
from tests.sim.messages import create_topic
from tests.sim.talk import Talk, await_true, running
from tests.sim.test_cluster import created, images_agree
from tests.sim.writers import Writer, read_all

from tidelog.model.ids import NO_NODE, NodeId, TopicPartition
from tidelog.sim.cluster import SimCluster


def test_topics_are_created_amid_faults(seed: int) -> None:
    cluster = running(seed)
    chaos = Chaos(cluster)
    acknowledged: list[str] = []
    for number in range(40):
        chaos.strike()
        name = f"topic-{number}"

        def answered(answer: object, name: str = name) -> None:
            if created(answer):
                acknowledged.append(name)

        talk = Talk(cluster, 1 + chaos.below(3), patience_ms=5_000)
        talk.begin(create_topic(name, 1 + chaos.below(2), 1 + chaos.below(3)), 4, answered)
        cluster.world.run(chaos.below(1_500))

    chaos.calm()

    await_true(cluster, lambda: images_agree(cluster))
    assert set(acknowledged) <= set(cluster.hosts[1].node.image.topics)
    assert len(cluster.controllers) == 1


def leader_of(cluster: SimCluster, partition: int) -> NodeId:
    """As the node with the newest image knows it; nobody when all have just begun to read it."""
    newest = max((host.node.image for host in cluster.up), key=lambda image: image.offset)
    placed = newest.partition(TopicPartition("orders", partition))
    return NO_NODE if placed is None else placed.leader


@pytest.mark.parametrize("power_loss", [False, True])
def test_records_are_written_amid_faults(seed: int, power_loss: bool) -> None:
    """With power loss a batch is flushed before it counts; without, the page cache is enough."""
    cluster = running(seed)
    flush = {"flush_messages": "1"} if power_loss else {}
    topic = create_topic("orders", 2, 3, min_insync_replicas="2", **flush)
    assert created(Talk(cluster, 1).ask(topic))
    await_true(cluster, lambda: images_agree(cluster))
    chaos = Chaos(cluster, power_loss=power_loss)
    writers = [Writer(cluster, "orders", partition) for partition in (0, 1)]
    for _ in range(60):
        if chaos.below(2):
            chaos.strike()
        for writer in writers:
            leader = leader_of(cluster, writer.partition)
            if leader != NO_NODE:
                writer.aim(leader)
                writer.write()
        cluster.world.run(chaos.below(400))

    chaos.calm()

    def is_whole() -> bool:
        topic = cluster.hosts[1].node.image.topics["orders"]
        return all(
            placed.has_leader and len(placed.isr) == 3 for placed in topic.partitions.values()
        )

    await_true(cluster, is_whole)
    cluster.world.run(2_000)
    for writer in writers:
        leader = leader_of(cluster, writer.partition)
        writer.check(read_all(Talk(cluster, leader), "orders", writer.partition))
