"""Replication events have the right reason, report real changes, and are not repeated."""

from typing import Any

import pytest
from tests.sim.cluster_steps import created
from tests.sim.event_topic import check_events, events, leader_of_events
from tests.sim.messages import create_topic
from tests.sim.node_faults import NODE_FAULTS, begin, mend
from tests.sim.reassignments import reassign
from tests.sim.replication import (
    TOPIC,
    Producer,
    followers_of,
    isr_is_full,
    leader_of,
    make_topic,
    newest,
)
from tests.sim.talk import Talk, await_true, running

from tidelog.model.replication_events import REPLICATION_EVENTS
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost


def telling(seed: int = 1, nodes: int = 3, **settings: str) -> SimCluster:
    cluster = running(
        seed,
        nodes=nodes,
        tidelog_replication_events_enable="true",
        offsets_topic_replication_factor="3",
        **settings,
    )
    make_topic(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    await_event(cluster, "leader_elected", reason="created")
    return cluster


def await_event(cluster: SimCluster, kind: str, **fields: Any) -> dict[str, Any]:
    """Wait for the first event of this kind with these fields, about the topic or a broker."""

    def found() -> list[dict[str, Any]]:
        return [
            one
            for one in events(cluster, kind)
            if one.get("topic", TOPIC) == fields.get("topic", TOPIC)
            and all(one[name] == value for name, value in fields.items())
        ]

    await_true(cluster, lambda: bool(found()))
    return found()[0]


def bystander(cluster: SimCluster) -> SimHost:
    """A follower that is not the active controller and does not lead the topic of events."""
    busy = {leader_of_events(cluster), *(host.id for host in cluster.controllers)}
    return next(host for host in followers_of(cluster) if host.id not in busy)


def test_the_topic_is_made_when_first_needed_and_takes_events_from_one_replica_on() -> None:
    cluster = telling()

    image = cluster.hosts[1].node.image
    assert len(image.topics[REPLICATION_EVENTS].partitions[0].replicas) == 3
    config = image.config(2, REPLICATION_EVENTS)
    assert (config["min.insync.replicas"], config["retention.ms"]) == ("1", "604800000")


def test_a_cluster_with_too_few_brokers_gets_what_it_has_room_for() -> None:
    cluster = running(
        1, nodes=1, tidelog_replication_events_enable="true", offsets_topic_replication_factor="3"
    )

    await_true(cluster, lambda: bool(events(cluster, "broker_unfenced")))

    assert cluster.hosts[1].node.image.topics[REPLICATION_EVENTS].partitions[0].replicas == (1,)


def test_without_the_key_there_is_neither_topic_nor_event() -> None:
    cluster = running(1)
    make_topic(cluster)
    followers_of(cluster)[0].kill()

    cluster.world.run(20_000)

    assert REPLICATION_EVENTS not in cluster.up[0].node.image.topics


def test_a_follower_that_is_killed_is_dead_and_one_that_is_back_has_joined() -> None:
    cluster = telling()
    leader, follower = leader_of(cluster), followers_of(cluster)[0]
    follower.kill()

    shrunk = await_event(cluster, "isr_shrink")
    fenced = await_event(cluster, "broker_fenced", broker=follower.id)

    assert [(one["broker"], one["reason"]) for one in shrunk["left"]] == [(follower.id, "dead")]
    assert fenced["reason"] == "connection-refused"
    assert 0 <= fenced["silent_ms"] < 1_000
    assert shrunk["min_isr"] == 2
    cluster.start()
    expanded = await_event(cluster, "isr_expand")
    assert (expanded["joined"], expanded["node"]) == ([follower.id], leader.id)
    await_event(cluster, "broker_unfenced", broker=follower.id, reason="registered")
    check_events(cluster)


def test_a_leader_that_is_silent_is_dead_and_has_returned_when_it_is_heard_again() -> None:
    cluster = telling()
    leader = leader_of(cluster)
    leader.pause()

    elected = await_event(cluster, "leader_elected", leader_before=leader.id)
    fenced = await_event(cluster, "broker_fenced", broker=leader.id)
    leader.resume()
    await_event(cluster, "broker_unfenced", broker=leader.id, reason="returned")

    assert (elected["reason"], elected["clean"]) == ("dead", True)
    assert fenced["reason"] == "session-expired"
    assert fenced["silent_ms"] >= leader.settings.broker_session_timeout_ms
    check_events(cluster)


@pytest.mark.parametrize("removed", ["leader", "follower"])
def test_the_end_of_a_reassignment_is_told_as_it_was_made(removed: str) -> None:
    """The controller adds the last replica and removes the old ones in one change."""
    cluster = telling(nodes=4)
    before = newest(cluster)
    gone = before.leader if removed == "leader" else followers_of(cluster)[0].id
    [added] = set(cluster.hosts) - set(before.replicas)
    wanted = [added if one == gone else one for one in before.replicas]
    Talk(cluster, leader_of(cluster).id).ask(reassign(TOPIC, wanted))

    await_true(cluster, lambda: newest(cluster).replicas == tuple(wanted))
    await_true(cluster, lambda: isr_is_full(cluster))
    after = newest(cluster)
    if removed == "leader":
        event = await_event(cluster, "leader_elected", leader_before=gone)
        assert (event["reason"], event["clean"]) == ("reassigned", True)
    else:
        event = await_event(cluster, "isr_expand", joined=[added])
        assert event["isr_before"] == sorted(before.isr)
    assert sorted(event["isr"]) == sorted(after.isr) == sorted(wanted)
    assert sorted(event["replicas"]) == sorted(wanted)
    assert event["leader_epoch"] == after.leader_epoch
    check_events(cluster)


def test_a_follower_that_does_not_fetch_at_all_is_stuck() -> None:
    cluster = telling(replica_lag_time_max_ms="2000", broker_session_timeout_ms="60000")
    producer = Producer(cluster)
    follower = bystander(cluster)
    follower.pause()

    shrunk = await_event(cluster, "isr_shrink")

    (left,) = shrunk["left"]
    assert (left["broker"], left["reason"], shrunk["node"]) == (
        follower.id,
        "stuck",
        leader_of(cluster).id,
    )
    assert 2_000 < left["lag_ms"] <= 3_100
    assert left["end_offset"] <= shrunk["high_watermark"] <= shrunk["leader_end_offset"]
    producer.stop()
    follower.resume()
    await_event(cluster, "isr_expand", joined=[follower.id])
    check_events(cluster)


def test_a_broker_that_shuts_down_says_so() -> None:
    cluster = telling()
    leader = leader_of(cluster)
    leader.shutdown()

    elected = await_event(cluster, "leader_elected", leader_before=leader.id)
    shrunk = await_event(cluster, "isr_shrink")
    fenced = await_event(cluster, "broker_fenced", broker=leader.id)

    assert elected["reason"] == fenced["reason"] == "shutting-down"
    assert [(one["broker"], one["reason"]) for one in shrunk["left"]] == [
        (leader.id, "shutting-down")
    ]
    check_events(cluster)


def test_a_partition_that_nobody_can_lead_says_so_and_when_somebody_can_again() -> None:
    cluster = telling()
    leader = leader_of(cluster)
    assert created(Talk(cluster, leader.id).ask(create_topic("alone", on=[(leader.id,)])))
    await_event(cluster, "leader_elected", topic="alone", reason="created")
    leader.shutdown()

    lost = await_event(cluster, "leader_elected", topic="alone", leader_before=leader.id)
    await_true(cluster, lambda: not leader.is_up)
    cluster.start()
    back = await_event(cluster, "leader_elected", topic="alone", reason="returned")

    assert (lost["leader"], lost["isr"], lost["elr"]) == (-1, [], [leader.id])
    assert (back["leader"], back["clean"]) == (leader.id, True)
    check_events(cluster)


def test_what_a_follower_cuts_is_told(seed: int) -> None:
    """A cut-off leader writes records that no other replica has, and is replaced."""
    cluster = telling(seed)
    producer = Producer(cluster)
    cluster.world.run(500)
    leader = leader_of(cluster)
    cluster.network.isolate(leader.name)
    await_true(cluster, lambda: newest(cluster).leader != leader.id)
    cluster.network.heal()

    await_true(cluster, lambda: isr_is_full(cluster))
    producer.stop()
    cluster.world.run(3_000)

    for cut in events(cluster, "truncated", topic=TOPIC):
        assert cut["from_offset"] > cut["to_offset"] >= cut["high_watermark"]
    assert not events(cluster, "unclean_loss")
    check_events(cluster)


def test_the_state_of_replicas_is_told_when_it_moves_and_once_a_minute_if_not() -> None:
    cluster = telling(tidelog_replication_events_interval_ms="1000")
    producer = Producer(cluster)
    cluster.world.run(5_000)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    moving = len(events(cluster, "replica_state", topic=TOPIC))
    cluster.world.run(3_000)
    settled = events(cluster, "replica_state", topic=TOPIC)
    cluster.world.run(58_000)
    later = events(cluster, "replica_state", topic=TOPIC)

    assert moving >= 4
    assert 1 <= len(later) - len(settled) <= 2
    last = later[-1]
    assert last["end_offset"] == last["high_watermark"] == len(producer.acknowledged)
    assert last["leader"] not in [one["broker"] for one in last["followers"]]
    assert [(one["lag"], one["lag_ms"], one["in_sync"]) for one in last["followers"]] == [
        (0, 0, True),
        (0, 0, True),
    ]
    assert not events(cluster, "replica_state", topic=REPLICATION_EVENTS)


@pytest.mark.parametrize("fault", NODE_FAULTS)
def test_whatever_happens_what_is_told_is_true_and_told_once(fault: str, seed: int) -> None:
    cluster = telling(seed, replica_lag_time_max_ms="3000")
    dice = cluster.world.dice.fork("troubles")
    producer = Producer(cluster)
    for _ in range(4):
        cluster.world.run(300 + dice.below(500))
        host = leader_of(cluster) if dice.below(2) else cluster.hosts[1 + dice.below(3)]
        begin(cluster, host, fault, dice)
        cluster.world.run(dice.below(4_000))
        mend(cluster)
        await_true(cluster, lambda: isr_is_full(cluster) and cluster.is_ready)
    producer.stop()
    cluster.world.run(10_000)

    assert check_events(cluster) > 0
