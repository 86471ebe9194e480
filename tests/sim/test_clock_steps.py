"""The clocks of one or all machines are moved by hours while records are written."""

import pytest
from kio.schema.offset_commit.v9.request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kio.schema.offset_fetch.v9.request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.sim.cluster_steps import created
from tests.sim.messages import ask, batch, create_topic, fetch_from, produce_to
from tests.sim.replication import (
    TOPIC,
    Producer,
    Reader,
    check_healed,
    isr_is_full,
    leader_of,
    make_topic,
    newest,
)
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.protocol.records.batch import iterate
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

HOUR_MS = 3_600_000
STEPS = [48 * HOUR_MS, -48 * HOUR_MS, 5_000, -5_000]


def wall(host: SimHost) -> int:
    return host.clock.now + host.wall_ahead_ms


def write_at(cluster: SimCluster, host: SimHost, timestamp: int) -> ErrorCode:
    request = produce_to(TOPIC, batch(b"0", timestamp=timestamp))
    [(_, [produced])] = Talk(cluster, host.id).ask(request).topics
    return produced.error


def epochs(cluster: SimCluster) -> tuple[int, object, object]:
    """The values that an election or a fencing would change."""
    image = leader_of(cluster).node.image
    brokers = [(one.id, one.epoch, one.fenced) for one in image.brokers.values()]
    return newest(cluster).leader_epoch, newest(cluster).isr, brokers


@pytest.mark.parametrize("step", STEPS[:2])
@pytest.mark.parametrize("meant", ["leader", "follower", "controller", "all"])
def test_a_clock_that_is_set_moves_no_leader_and_loses_nothing(step: int, meant: str) -> None:
    cluster = running(seed=7)
    make_topic(cluster, message_timestamp_after_max_ms=str(1 << 62))
    await_true(cluster, lambda: isr_is_full(cluster))
    producer, reader = Producer(cluster, every_ms=50), Reader(cluster)
    await_true(cluster, lambda: len(producer.acknowledged) > 20)
    leader = leader_of(cluster)
    follower = next(host for host in cluster.hosts.values() if host is not leader)
    hosts = {
        "leader": [leader],
        "follower": [follower],
        "controller": cluster.controllers,
        "all": list(cluster.hosts.values()),
    }[meant]
    [controller], before = cluster.controllers, epochs(cluster)

    for by_ms in (step, -step, step):
        for host in hosts:
            host.set_clock(by_ms)
        cluster.world.run_until(lambda: False, 3_000)

    assert cluster.controllers == [controller]
    assert epochs(cluster) == before
    assert set(producer.errors) == {ErrorCode.none}
    check_healed(cluster, producer, reader)


@pytest.mark.parametrize("step", STEPS)
def test_records_of_the_present_are_taken_at_once_after_the_clock_was_set(step: int) -> None:
    cluster = running(seed=3, log_message_timestamp_after_max_ms="1000")
    make_topic(cluster, min_isr=1, message_timestamp_before_max_ms="1000")
    leader = leader_of(cluster)
    assert write_at(cluster, leader, wall(leader)) is ErrorCode.none

    leader.set_clock(step)

    assert write_at(cluster, leader, wall(leader)) is ErrorCode.none
    assert write_at(cluster, leader, wall(leader) - step) is ErrorCode.invalid_timestamp


def test_append_time_is_what_the_machines_clock_shows() -> None:
    cluster = running(seed=3)
    make_topic(cluster, message_timestamp_type="LogAppendTime")
    leader = leader_of(cluster)
    shown = []
    for step in (0, 48 * HOUR_MS, -96 * HOUR_MS):
        leader.set_clock(step)
        assert write_at(cluster, leader, 0) is ErrorCode.none
        shown.append(wall(leader))

    [(_, [fetched])] = Talk(cluster, leader.id).ask(fetch_from(TOPIC)).topics
    stamps = [header.max_timestamp for _, header in iterate(bytes(fetched.records))]
    for stamp, wanted in zip(stamps, shown, strict=True):
        assert 0 <= wanted - stamp < 1_000


def test_retention_does_not_follow_a_clock_that_jumps_ahead_and_is_put_right() -> None:
    cluster = running(seed=5, log_retention_check_interval_ms="1000")
    make_topic(cluster, retention_ms="120000", internal_segment_bytes="1024")
    leader = leader_of(cluster)
    for _ in range(40):
        assert write_at(cluster, leader, wall(leader)) is ErrorCode.none

    for step in (48 * HOUR_MS, -48 * HOUR_MS):
        for host in cluster.hosts.values():
            host.set_clock(step)
        cluster.world.run_until(lambda: False, 30_000)

    assert log_start(cluster, leader) == 0
    # Retention still deletes the records when the time has really passed.
    cluster.world.run_until(lambda: False, 120_000)
    assert log_start(cluster, leader) == 40


def log_start(cluster: SimCluster, leader: SimHost) -> int:
    [(_, [fetched])] = Talk(cluster, leader.id).ask(fetch_from(TOPIC, 40)).topics
    assert fetched.error is ErrorCode.none
    start: int = fetched.log_start_offset
    return start


def test_a_clock_that_was_wrong_when_its_node_started_does_no_harm_when_it_is_put_right(
    seed: int,
) -> None:
    """The machine boots with a clock that is two days ahead or behind, and NTP corrects it."""
    cluster = running(seed)
    make_topic(cluster, message_timestamp_after_max_ms=str(1 << 62))
    producer = Producer(cluster, every_ms=50)
    for step in (48 * HOUR_MS, -48 * HOUR_MS):
        host = leader_of(cluster)
        host.kill()
        host.set_clock(step)
        host.start()
        await_ready(cluster)
        host.set_clock(-step)
        cluster.world.run_until(lambda: False, 2_000)
        await_true(cluster, lambda: isr_is_full(cluster))
    check_healed(cluster, producer)


def test_offsets_do_not_expire_because_a_clock_jumped_ahead() -> None:
    cluster = running(seed=2, offsets_retention_check_interval_ms="1000")
    assert created(Talk(cluster, 1).ask(create_topic(TOPIC, 1, 3)))
    node = find_coordinator(cluster)
    commit(cluster, node, 7)

    for host in cluster.hosts.values():
        host.set_clock(30 * 24 * HOUR_MS)
    cluster.world.run_until(lambda: False, 20_000)

    assert committed(cluster, node) == 7


def find_coordinator(cluster: SimCluster) -> int:
    for _ in range(100):
        answer = Talk(cluster, 1).ask(ask(10, key_type=0, coordinator_keys=("readers",)))
        [found] = answer.coordinators
        if found.error_code is ErrorCode.none:
            node: int = found.node_id
            return node
        cluster.world.run_until(lambda: False, 100)
    raise AssertionError("no coordinator")


def commit(cluster: SimCluster, node: int, offset: int) -> None:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    topic = OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,))
    request = OffsetCommitRequest(group_id="readers", member_id="", topics=(topic,))
    for _ in range(100):
        answer = Talk(cluster, node).ask(request, version=9)
        if answer.topics[0].partitions[0].error_code is ErrorCode.none:
            return
        cluster.world.run_until(lambda: False, 100)
    raise AssertionError("not committed")


def committed(cluster: SimCluster, node: int) -> int:
    topic = OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0,))
    group = OffsetFetchRequestGroup(group_id="readers", topics=(topic,))
    request = OffsetFetchRequest(groups=(group,), require_stable=False)
    [answer] = Talk(cluster, node).ask(request, version=9).groups
    offset: int = answer.topics[0].partitions[0].committed_offset
    return offset
