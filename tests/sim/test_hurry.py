"""A follower with a new partition to fetch does not wait until its leader answers a held fetch."""

from tests.sim.cluster_steps import created
from tests.sim.messages import batch, create_topic, produce_to
from tests.sim.replication import TOPIC, followers_of, isr_is_full, leader_of, make_topic, newest
from tests.sim.talk import Talk, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.cluster import SimCluster

HELD_MS = 5_000
PROMPT_MS = 200


def running_with_long_fetches(seed: int) -> SimCluster:
    """A cluster in which a leader holds the fetch of an idle follower for 5 s."""
    return running(seed, replica_fetch_wait_max_ms=str(HELD_MS))


def took_to_write(cluster: SimCluster, topic: str) -> int:
    """How long a write with acks=all to the present leader takes."""
    leader = cluster.up[0].node.image.topics[topic].partitions[0].leader
    began = cluster.world.now
    wish = produce_to(topic, batch(b"value"), timeout_ms=2 * HELD_MS)
    [(_, [produced])] = Talk(cluster, leader).ask(wish, limit_ms=2 * HELD_MS).topics
    assert produced.error is ErrorCode.none
    return cluster.world.now - began


def test_a_new_partition_of_a_leader_is_followed_while_it_holds_a_fetch(seed: int) -> None:
    cluster = running_with_long_fetches(seed)
    make_topic(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    leader = leader_of(cluster)
    followers = [follower.id for follower in followers_of(cluster)]
    cluster.world.run(1_000)  # by now the leader holds the followers' fetches

    new = create_topic("new", on=[(leader.id, *followers)], min_insync_replicas="3")
    assert created(Talk(cluster, leader.id).ask(new))

    assert took_to_write(cluster, "new") < PROMPT_MS


def test_after_a_failover_the_other_follower_asks_the_new_leader_at_once(seed: int) -> None:
    """The new leader already leads another partition and holds the follower's fetch for it."""
    cluster = running_with_long_fetches(seed)
    make_topic(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    dead, [second, third] = leader_of(cluster), followers_of(cluster)
    for leader, follower in ((second, third), (third, second)):
        name = f"other-{leader.id}"
        assert created(
            Talk(cluster, second.id).ask(create_topic(name, on=[(leader.id, follower.id)]))
        )
    cluster.world.run(1_000)

    dead.kill()
    await_true(cluster, lambda: newest(cluster).leader in (second.id, third.id))
    await_true(cluster, lambda: len({host.node.image.offset for host in cluster.up}) == 1)

    assert took_to_write(cluster, TOPIC) < PROMPT_MS


def test_a_partition_that_was_flushed_is_asked_for_while_the_leader_holds_a_fetch(
    seed: int,
) -> None:
    """With flush.messages=1, a partition is not in the fetch session while it is flushed."""
    cluster = running_with_long_fetches(seed)
    make_topic(cluster, flush_messages="1")
    idle = create_topic("idle", on=[(leader_of(cluster).id, followers_of(cluster)[0].id)])
    assert created(Talk(cluster, 1).ask(idle))
    await_true(cluster, lambda: isr_is_full(cluster))
    cluster.world.run(1_000)

    for _ in range(3):
        assert took_to_write(cluster, TOPIC) < PROMPT_MS
