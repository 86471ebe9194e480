"""Elections when no replica is known to have all committed records, and how they are reported."""

import logging
from datetime import timedelta

import pytest
from kio.schema.elect_leaders.v2.request import TopicPartitions
from tests.sim.controllers import only_controller
from tests.sim.messages import ask, batch, fetch_from, produce_to, records_in
from tests.sim.replication import (
    TOPIC,
    check_healed,
    files_of,
    followers_of,
    isr_is_full,
    leader_of,
    make_topic,
    newest,
)
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

ELECT_LEADERS, UNCLEAN = 43, 1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1


def write(cluster: SimCluster, host: SimHost, value: bytes) -> ErrorCode:
    answer = Talk(cluster, host.id).ask(produce_to(TOPIC, batch(value), timeout_ms=1_500))
    [(_, [produced])] = answer.topics
    return produced.error


def elect_uncleanly(cluster: SimCluster, via: SimHost) -> ErrorCode:
    wanted = TopicPartitions(topic=TOPIC, partitions=(0,))
    patience = timedelta(seconds=9)
    request = ask(
        ELECT_LEADERS, election_type=UNCLEAN, topic_partitions=(wanted,), timeout=patience
    )
    [result] = Talk(cluster, via.id).ask(request).replica_election_results
    return result.partition_result[0].error_code


def values_of(host: SimHost) -> list[bytes | None]:
    return [record.value for record in records_in(files_of(host))]


def test_f19_after_lossy_crashes_of_all_the_last_leader_leads_and_says_what_may_be_lost(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    """No replica is in sync or eligible, so the controller elects the last leader."""
    cluster = running(seed)
    make_topic(cluster)
    last = leader_of(cluster)
    for number in range(5):
        assert write(cluster, last, b"%d" % number) is ErrorCode.none
    for host in [*followers_of(cluster), last]:
        host.lose_power()
    cluster.world.run(200)
    with caplog.at_level(logging.WARNING):
        cluster.start()
        await_ready(cluster)
        await_true(cluster, lambda: isr_is_full(cluster))
    logged = [record.getMessage() for record in caplog.records]
    assert any("elected uncleanly" in line and "may be lost" in line for line in logged), logged
    check_healed(cluster)
    kept = values_of(last)
    assert kept == [b"%d" % number for number in range(len(kept))], "not a beginning of what was"


def test_f34_an_unclean_election_says_how_much_was_lost_and_blocks_no_reader(
    seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = running(seed, nodes=7, replica_high_watermark_checkpoint_interval_ms="200")
    controller = only_controller(cluster)
    make_topic(
        cluster, tuple(node for node in cluster.hosts if node != controller.id)[:3], min_isr=1
    )
    leader, [other, short] = leader_of(cluster), followers_of(cluster)
    assert write(cluster, leader, b"kept") is ErrorCode.none
    cluster.world.run(500)
    short.kill()
    await_true(cluster, lambda: short.id not in newest(cluster).isr)
    for number in range(4):
        assert write(cluster, leader, b"lost %d" % number) is ErrorCode.none
    cluster.world.run(600)
    other.kill()
    await_true(cluster, lambda: newest(cluster).isr == (leader.id,))
    leader.kill()
    await_true(cluster, lambda: not newest(cluster).has_leader)
    short.start()
    await_ready(cluster)
    assert not newest(cluster).has_leader, "elected without being asked for"
    with caplog.at_level(logging.WARNING):
        assert elect_uncleanly(cluster, controller) is ErrorCode.none
        await_true(cluster, lambda: newest(cluster).leader == short.id)
        assert write(cluster, short, b"new") is ErrorCode.none
        cluster.start()
        await_ready(cluster)
        await_true(cluster, lambda: isr_is_full(cluster))
    logged = [record.getMessage() for record in caplog.records]
    assert any("elected uncleanly" in line for line in logged), logged
    assert any("committed records from offset 1 to 5 are lost" in line for line in logged), logged
    check_healed(cluster)
    assert values_of(leader) == [b"kept", b"new"]
    for isolation in (READ_UNCOMMITTED, READ_COMMITTED):
        wish = fetch_from(TOPIC)
        wish.isolation_level = isolation
        [(_, [found])] = Talk(cluster, leader_of(cluster).id).ask(wish).topics
        assert [record.value for record in records_in(found.records)] == [b"kept", b"new"]


def test_f27_a_replica_that_shuts_down_holds_up_no_write(seed: int) -> None:
    """The replica is caught up, so the lag rule alone would not remove it from the in-sync set."""
    cluster = running(seed)
    make_topic(cluster)
    leader, [leaving, _] = leader_of(cluster), followers_of(cluster)
    assert write(cluster, leader, b"0") is ErrorCode.none
    leaving.shutdown()
    leaving.pause()  # it is paused during its shutdown, with open connections
    began = cluster.world.now
    while leaving.id in newest(cluster).isr:
        assert write(cluster, leader_of(cluster), b"1") in (
            ErrorCode.none,
            ErrorCode.request_timed_out,
            ErrorCode.not_leader_or_follower,
        )
        assert cluster.world.now - began < 4_000, "it is in sync still, and holds every write"
    began = cluster.world.now
    assert write(cluster, leader_of(cluster), b"2") is ErrorCode.none
    assert cluster.world.now - began < 500
    leaving.resume()
    await_true(cluster, lambda: not leaving.is_up)
    cluster.start()
    check_healed(cluster)


def test_f31_a_change_of_controller_moves_no_in_sync_set_and_restarts_nobody(seed: int) -> None:
    cluster = running(seed, nodes=5, replica_lag_time_max_ms="1000")
    controller = only_controller(cluster)
    make_topic(cluster, tuple(node for node in cluster.hosts if node != controller.id)[:3])
    await_true(cluster, lambda: isr_is_full(cluster))
    before = newest(cluster)
    leader = leader_of(cluster)
    slowest = 0
    controller.kill()
    for number in range(40):
        began = cluster.world.now
        assert write(cluster, leader, b"%d" % number) is ErrorCode.none
        slowest = max(slowest, cluster.world.now - began)
        cluster.world.run(100)
    assert [host for host in cluster.controllers if host is not controller]
    assert newest(cluster) == before, "an epoch or the in-sync set has changed"
    assert slowest < 500
    cluster.start()
    check_healed(cluster)
