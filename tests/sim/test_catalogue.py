"""Faults of docs/faults.md that clients see."""

from typing import Any

from kio.schema.metadata.v12.request import MetadataRequestTopic
from tests.sim.cluster_steps import created
from tests.sim.messages import ask, batch, create_topic, produce_to
from tests.sim.reassignments import reassign
from tests.sim.replication import (
    TOPIC,
    Producer,
    Reader,
    check_healed,
    followers_of,
    isr_is_full,
    latest_at,
    leader_of,
    make_topic,
    newest,
)
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.cluster import SimCluster

METADATA = 3


def test_f07_an_idle_replica_without_its_epoch_file_is_in_sync_again(seed: int) -> None:
    """The epoch file is missing, as after a manual move. The epochs are read from the records."""
    cluster = running(seed)
    make_topic(cluster)
    for number in range(3):
        leader = leader_of(cluster)
        answer = Talk(cluster, leader.id).ask(produce_to(TOPIC, batch(b"%d" % number)))
        assert answer.topics[0][1][0].error is ErrorCode.none
        leader.shutdown()
        await_true(cluster, lambda down=leader: not down.is_up)
        await_true(cluster, lambda old=leader: newest(cluster).leader not in (-1, old.id))
        leader.disk.remove(f"{TOPIC}-0/leader-epoch-checkpoint")
        cluster.start()
        await_ready(cluster)
        await_true(cluster, lambda: isr_is_full(cluster))

    check_healed(cluster)


def test_f45_in_a_healthy_cluster_nothing_is_stuck_lost_or_at_offset_zero_again(seed: int) -> None:
    cluster = running(seed)
    make_topic(cluster)
    producer, reader = Producer(cluster), Reader(cluster)
    for _ in range(10):
        written, read = len(producer.acknowledged), len(reader.seen)
        cluster.world.run(500)
        await_true(cluster, lambda n=written: len(producer.acknowledged) > n, 5_000)
        await_true(cluster, lambda n=read: len(reader.seen) > n, 5_000)
        error, end = latest_at(cluster, leader_of(cluster).id)
        assert error is ErrorCode.none
        assert end >= len(reader.seen), "the end has moved back"

    check_healed(cluster, producer, reader)
    assert set(producer.errors) == {ErrorCode.none}


def test_f48_one_slow_node_slows_only_what_waits_for_it_and_that_not_for_long(seed: int) -> None:
    """Only partitions with a replica on the slow node wait, and at most for the lag time."""
    cluster = running(seed, replica_lag_time_max_ms="2000", broker_session_timeout_ms="30000")
    make_topic(cluster)
    leader, [follower, slow] = leader_of(cluster), followers_of(cluster)
    apart = create_topic("apart", on=[[leader.id, follower.id]], min_insync_replicas="2")
    assert created(Talk(cluster, leader.id).ask(apart))
    cluster.world.run(500)
    slow.pause()

    def write(topic: str) -> int:
        """The time until a write with acks=all is acknowledged."""
        began = cluster.world.now
        answer = Talk(cluster, leader.id).ask(produce_to(topic, batch(b"0"), timeout_ms=30_000))
        [(_, [produced])] = answer.topics
        assert produced.error is ErrorCode.none
        return cluster.world.now - began

    assert write("apart") < 50
    assert write(TOPIC) < 3_500, "one lag time, and half of one until it is looked at"
    assert write(TOPIC) < 50, "it is out of the in-sync set now"

    slow.resume()
    check_healed(cluster)


def test_f49_what_is_acknowledged_in_a_partition_of_the_network_is_kept_when_it_heals(
    seed: int,
) -> None:
    """The network separates two nodes, one of which is the leader, from the other three."""
    cluster = running(seed, nodes=5)
    make_topic(cluster, (1, 2, 3))
    producer, reader = Producer(cluster), Reader(cluster)
    for _ in range(3):
        cluster.world.run(500)
        minority = [leader_of(cluster), followers_of(cluster)[seed % 2]]
        for one in minority:
            for other in cluster.hosts.values():
                if other not in minority:
                    cluster.network.partition(one.name, other.name)
        cluster.world.run(4_000)
        cluster.network.heal()
        await_ready(cluster)
        await_true(cluster, lambda: isr_is_full(cluster))

    check_healed(cluster, producer, reader)
    assert len(producer.acknowledged) > 100


def test_f51_a_partition_is_in_every_list_while_it_moves(seed: int) -> None:
    """A reader that gets an empty list of partitions starts again from the earliest offset."""
    cluster = running(seed, nodes=4)
    make_topic(cluster, (1, 2, 3))
    producer = Producer(cluster)
    lists: list[Any] = []
    _watch_metadata(cluster, lists)
    for replicas in ([2, 3, 4], [4, 1], [1, 2, 3]):
        Talk(cluster, leader_of(cluster).id).ask(reassign(TOPIC, replicas))
        await_true(cluster, lambda wanted=replicas: set(newest(cluster).replicas) == set(wanted))
        cluster.world.run(300)

    assert len(lists) > 20
    for topic in lists:
        assert topic.error_code is ErrorCode.none
        [partition] = topic.partitions
        assert partition.replica_nodes
        assert partition.error_code is ErrorCode.none
    check_healed(cluster, producer)


def _watch_metadata(cluster: SimCluster, lists: list[Any]) -> None:
    """Repeatedly ask every node for the metadata of the topic."""
    topics = (MetadataRequestTopic(name=TOPIC, topic_id=None),)
    wish = ask(METADATA, topics=topics, allow_auto_topic_creation=False)
    talks = [Talk(cluster, node) for node in cluster.hosts]

    def received(answer: Any) -> None:
        if answer is not None:
            lists.extend(answer.topics)

    def look() -> None:
        for talk in talks:
            talk.begin(wish, then=received)
        cluster.world.after(40, look)

    look()


def test_f53_consumers_go_on_after_a_restart_and_after_a_change_of_leader(seed: int) -> None:
    cluster = running(seed)
    make_topic(cluster)
    producer, reader = Producer(cluster), Reader(cluster)
    cluster.world.run(500)

    def reads_on(after: str) -> None:
        end = len(producer.acknowledged)
        await_true(cluster, lambda: len(reader.seen) > end + 5)
        assert len(reader.seen) > end, after

    for stop in ("kill", "shutdown", "lose_power"):
        leader = leader_of(cluster)
        getattr(leader, stop)()
        await_true(cluster, lambda down=leader: not down.is_up)
        await_true(cluster, lambda old=leader: newest(cluster).leader not in (-1, old.id))
        reads_on(f"{stop} of the leader")
        cluster.start()
        await_true(cluster, lambda: isr_is_full(cluster) and cluster.is_ready)
        reads_on("its return")

    check_healed(cluster, producer, reader)
