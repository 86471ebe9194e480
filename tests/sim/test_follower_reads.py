"""Consumers that read from followers (KIP-392): the chosen replica, and the visible records."""

from datetime import timedelta
from typing import Any

from kio.schema.elect_leaders.v2.request import TopicPartitions
from tests.sim.controllers import only_controller
from tests.sim.messages import ask, batch, fetch_from, produce_to, records_in
from tests.sim.replication import (
    TOPIC,
    check_healed,
    followers_of,
    leader_of,
    make_topic,
    newest,
    placed,
)
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.config.keys.broker_keys import RACK_AWARE_SELECTOR
from tidelog.config.settings import BrokerSettings
from tidelog.model.errors import ErrorCode
from tidelog.protocol.fetch import FetchRequest, PartitionFetched
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost


def with_racks(seed: int, nodes: int = 3) -> SimCluster:
    """A cluster in which node n is in rack n."""
    cluster = SimCluster(seed, nodes, {"replica.selector.class": RACK_AWARE_SELECTOR})
    for host in cluster.hosts.values():
        properties = {**host.settings.raw, "broker.rack": f"rack {host.id}"}
        host.settings = BrokerSettings.from_properties(properties)
    cluster.start()
    await_ready(cluster)
    return cluster


def wish(offset: int, rack: str, *, max_wait_ms: int = 0, epoch: int = -1) -> FetchRequest:
    made = fetch_from(TOPIC, offset, max_wait_ms=max_wait_ms, epoch=epoch)
    made.rack_id = rack
    return made


def fetched(answer: Any) -> PartitionFetched:
    [(_, [only])] = answer.topics
    return only


def values(answer: Any) -> list[bytes | None]:
    return [record.value for record in records_in(fetched(answer).records)]


def write(cluster: SimCluster, host: SimHost, value: bytes, acks: int = -1) -> ErrorCode:
    asked = produce_to(TOPIC, batch(value), timeout_ms=1_500, acks=acks)
    [(_, [produced])] = Talk(cluster, host.id).ask(asked).topics
    return produced.error


def test_a_consumer_is_sent_to_the_replica_in_its_rack(seed: int) -> None:
    cluster = with_racks(seed)
    make_topic(cluster)
    leader, [near, far] = leader_of(cluster), followers_of(cluster)
    assert write(cluster, leader, b"0") is ErrorCode.none
    cluster.world.run(100)
    sent = fetched(Talk(cluster, leader.id).ask(wish(0, f"rack {near.id}")))
    assert (sent.error, sent.preferred_read_replica) == (ErrorCode.none, near.id)
    assert not sent.records
    for rack in ("", f"rack {leader.id}", "elsewhere"):
        answer = Talk(cluster, leader.id).ask(wish(0, rack))
        assert fetched(answer).preferred_read_replica == -1
        assert values(answer) == [b"0"]
    assert values(Talk(cluster, near.id).ask(wish(0, f"rack {near.id}"))) == [b"0"]
    far.kill()
    await_true(cluster, lambda: far.id not in newest(cluster).isr)
    answer = Talk(cluster, leader.id).ask(wish(0, f"rack {far.id}"))
    assert fetched(answer).preferred_read_replica == -1, "sent to a replica that is not in sync"


def test_nobody_is_sent_away_who_does_not_ask_for_it(seed: int) -> None:
    cluster = running(seed)
    make_topic(cluster)
    leader, [near, _] = leader_of(cluster), followers_of(cluster)
    assert write(cluster, leader, b"0") is ErrorCode.none
    answer = Talk(cluster, leader.id).ask(wish(0, f"rack {near.id}"))
    assert fetched(answer).preferred_read_replica == -1
    old = Talk(cluster, near.id).ask(wish(0, ""), version=10)
    assert fetched(old).error is ErrorCode.not_leader_or_follower


def test_a_follower_shows_what_is_committed_as_soon_as_its_leader_knows(seed: int) -> None:
    """The follower gets the new high watermark although no later records arrive."""
    cluster = with_racks(seed)
    make_topic(cluster)
    leader, [near, _] = leader_of(cluster), followers_of(cluster)
    cluster.world.run(1_000)
    for number in range(5):
        began = cluster.world.now
        asked = Talk(cluster, near.id).begin(wish(number, f"rack {near.id}", max_wait_ms=5_000))
        assert write(cluster, leader, b"%d" % number) is ErrorCode.none
        await_true(cluster, lambda asked=asked: asked.is_done)
        assert values(asked.answer) == [b"%d" % number]
        assert cluster.world.now - began < 200, "it waited for the next answer by the clock"
        cluster.world.run(700)


def test_a_follower_shows_nothing_that_is_not_committed(seed: int) -> None:
    cluster = with_racks(seed)
    make_topic(cluster)
    leader, [near, far] = leader_of(cluster), followers_of(cluster)
    assert write(cluster, leader, b"0") is ErrorCode.none
    far.pause()
    assert write(cluster, leader, b"1", acks=1) is ErrorCode.none
    cluster.world.run(1_000)
    talk = Talk(cluster, near.id)
    assert values(talk.ask(wish(0, ""))) == [b"0"]
    waiting = fetched(talk.ask(wish(1, "")))
    assert (waiting.error, waiting.high_watermark, bool(waiting.records)) == (
        ErrorCode.none,
        1,
        False,
    )
    assert fetched(talk.ask(wish(3, ""))).error is ErrorCode.offset_out_of_range
    assert fetched(talk.ask(wish(0, "", epoch=7))).error is ErrorCode.unknown_leader_epoch
    far.resume()
    check_healed(cluster)


def test_f10_a_reader_at_a_follower_that_is_cut_below_its_watermark_sees_no_old_records(
    seed: int,
) -> None:
    """An unclean election removes committed records, and the follower must stop serving them."""
    cluster = with_racks(seed, nodes=5)
    controller = only_controller(cluster)
    on = tuple(node for node in cluster.hosts if node != controller.id)[:3]
    make_topic(cluster, on, min_isr=1)
    leader, [near, short] = leader_of(cluster), followers_of(cluster)
    assert write(cluster, leader, b"kept") is ErrorCode.none
    cluster.world.run(500)
    short.kill()
    await_true(cluster, lambda: short.id not in newest(cluster).isr)
    for number in range(4):
        assert write(cluster, leader, b"lost %d" % number) is ErrorCode.none
    cluster.world.run(500)
    talk = Talk(cluster, near.id, name=near.name)
    assert len(values(talk.ask(wish(0, "")))) == 5
    waiting = talk.begin(wish(5, "", max_wait_ms=30_000))

    leader.kill()
    cluster.network.isolate(near.name)  # the reader is on the same machine
    short.start()
    await_true(cluster, lambda: controller.node.image.brokers[short.id].is_active)
    await_true(cluster, lambda: controller.node.image.brokers[near.id].fenced)
    elect_uncleanly(cluster, controller)
    await_true(cluster, lambda: placed(short).leader == short.id)
    assert write(cluster, short, b"new") is ErrorCode.none
    cluster.network.heal()
    await_true(cluster, lambda: placed(near).leader == short.id)
    await_true(cluster, lambda: near.id in newest(cluster).isr)

    await_true(cluster, lambda: waiting.is_done)
    answer = fetched(waiting.answer)
    assert not answer.records
    assert answer.error in (ErrorCode.offset_out_of_range, ErrorCode.fenced_leader_epoch)
    again = Talk(cluster, near.id)
    assert values(again.ask(wish(0, ""))) == [b"kept", b"new"]
    assert fetched(again.ask(wish(5, ""))).error is ErrorCode.offset_out_of_range
    cluster.start()
    check_healed(cluster)


def elect_uncleanly(cluster: SimCluster, via: SimHost) -> None:
    wanted = TopicPartitions(topic=TOPIC, partitions=(0,))
    Talk(cluster, via.id).ask(
        ask(43, election_type=1, topic_partitions=(wanted,), timeout=timedelta(seconds=9))
    )
