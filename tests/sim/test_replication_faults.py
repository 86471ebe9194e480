"""The replication faults of docs/faults.md, on real nodes with simulated disks and network."""

import pytest
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic
from tests.sim.cluster_steps import created, images_agree
from tests.sim.controllers import only_controller
from tests.sim.messages import ask, batch, create_topic, fetch_from, produce_to, records_in
from tests.sim.replication import (
    TOPIC,
    Producer,
    Reader,
    check_healed,
    files_of,
    followers_of,
    isr_is_full,
    latest_at,
    leader_of,
    make_topic,
    newest,
    placed,
)
from tests.sim.talk import Talk, await_ready, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.node.inspection import NodeInspection, follower_progress
from tidelog.node.partitions import assignments
from tidelog.protocol.records.batch import iterate
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

LATE = 1 << 50
"""A time later than the timestamp of any record."""


def write(cluster: SimCluster, host: SimHost, value: bytes = b"0") -> ErrorCode:
    """Write one record with acks=all."""
    answer = Talk(cluster, host.id).ask(produce_to(TOPIC, batch(value), timeout_ms=1_500))
    [(_, [produced])] = answer.topics
    return produced.error


def await_leader(cluster: SimCluster, *, other_than: SimHost) -> SimHost:
    def has_changed() -> bool:
        placement = newest(cluster)
        return placement.has_leader and placement.leader != other_than.id

    await_true(cluster, has_changed)
    return leader_of(cluster)


def test_f01_two_leaders_die_in_turn_and_the_last_replica_keeps_what_was_committed(
    seed: int,
) -> None:
    """A follower's high watermark is one fetch old. Truncation to it would lose the last write."""
    cluster = running(seed, nodes=5)
    controller = only_controller(cluster)
    make_topic(cluster, tuple(node for node in cluster.hosts if node != controller.id)[:3])
    first, [second, third] = leader_of(cluster), followers_of(cluster)
    for number in range(3):
        assert write(cluster, first, b"%d" % number) is ErrorCode.none
    cluster.network.partition(second.name, third.name)  # the followers cannot reach each other

    first.kill()
    next_leader = await_leader(cluster, other_than=first)
    last = third if next_leader is second else second
    await_true(cluster, lambda: placed(last).leader == next_leader.id)
    next_leader.kill()

    assert await_leader(cluster, other_than=next_leader) is last
    cluster.network.heal()
    cluster.start()
    check_healed(cluster)
    assert [record.value for record in records_in(files_of(last))] == [b"0", b"1", b"2"]


def test_f15_a_follower_says_in_which_run_it_is_from_its_first_fetch_on(seed: int) -> None:
    """The first fetch has the broker epoch, even if the registration is not answered yet.

    The simulator found this fault: a restarted broker fetched without an epoch, so its leader kept
    the old state of the follower, although the follower had lost its log.
    """
    cluster = running(seed)
    make_topic(cluster)
    leader, [follower, _] = leader_of(cluster), followers_of(cluster)
    runs: set[int] = set()

    def look(host: SimHost) -> None:
        [replica] = NodeInspection(host.node).replicas
        progress = follower_progress(replica.leader)[follower.id]
        if progress.last_fetch >= 0:
            runs.add(progress.broker_epoch)

    leader.told = look
    for _ in range(4):
        assert write(cluster, leader) is ErrorCode.none
        follower.kill()
        await_true(cluster, lambda: follower.id not in newest(cluster).isr)
        follower.start()
        await_true(cluster, lambda: isr_is_full(cluster))

    assert len(runs) == 5
    assert min(runs) >= 0
    check_healed(cluster)


def test_f04_a_fetch_in_an_older_epoch_commits_nothing(seed: int) -> None:
    """A follower in an older epoch may still have to truncate records that it holds now."""
    cluster = running(seed)
    make_topic(cluster)
    old = leader_of(cluster)
    old.kill()
    leader = await_leader(cluster, other_than=old)
    cluster.start()
    await_true(cluster, lambda: isr_is_full(cluster))
    epoch = newest(cluster).leader_epoch
    others = followers_of(cluster)
    for other in others:
        other.pause()
    asked = Talk(cluster, leader.id).begin(produce_to(TOPIC, batch(b"0"), timeout_ms=1_000))

    def prove(leader_epoch: int) -> None:
        for other in others:
            fetch = fetch_from(TOPIC, 1, epoch=leader_epoch)
            fetch.replica_id = other.id
            Talk(cluster, leader.id).ask(fetch)

    cluster.world.run(20)
    prove(epoch - 1)
    assert not asked.is_done
    prove(epoch)
    await_true(cluster, lambda: asked.is_done, 100)

    [(_, [produced])] = asked.answer.topics
    assert produced.error is ErrorCode.none


def test_f02_after_a_power_cut_of_all_no_offset_has_two_values(seed: int) -> None:
    """If an unsynced write is lost, it must be lost on every replica."""
    cluster = running(seed)
    make_topic(cluster)
    for _ in range(3):
        for number in range(5):
            write(cluster, leader_of(cluster), b"%d" % number)
        for host in cluster.hosts.values():
            host.lose_power()
        cluster.world.run(500)
        for host in cluster.hosts.values():
            host.start()
            cluster.world.run(seed % 3 * 400)  # start them together, or one after another
        await_ready(cluster)
        await_true(cluster, lambda: isr_is_full(cluster))

    check_healed(cluster)


def test_f11_a_power_cut_of_all_loses_nothing_where_every_write_is_flushed(seed: int) -> None:
    cluster = running(seed)
    make_topic(cluster, flush_messages="1")
    producer, reader = Producer(cluster), Reader(cluster)
    for _ in range(3):
        cluster.world.run(400)
        for host in cluster.hosts.values():
            host.lose_power()
        cluster.world.run(200)
        cluster.start()
        await_ready(cluster)
        await_true(cluster, lambda: isr_is_full(cluster))

    check_healed(cluster, producer, reader)
    assert len(producer.acknowledged) > 10


def test_f17_a_leader_back_before_it_was_missed_does_not_lead_with_what_is_left(
    seed: int,
) -> None:
    cluster = running(seed)
    make_topic(cluster)
    producer, reader = Producer(cluster), Reader(cluster)
    cluster.world.run(500)
    leader = leader_of(cluster)
    epoch = newest(cluster).leader_epoch

    leader.lose_power()
    leader.start()
    cluster.world.run(3_000)
    await_ready(cluster)

    assert newest(cluster).leader_epoch > epoch, "it went on in its old epoch"
    check_healed(cluster, producer, reader)


def test_f18_f43_the_last_one_standing_takes_nothing_with_it(seed: int) -> None:
    """Two replicas fail; the third refuses writes, loses unsynced records, and is not elected."""
    cluster = running(seed)
    make_topic(cluster)
    producer = Producer(cluster)
    cluster.world.run(500)
    leader = leader_of(cluster)
    cluster.network.delay_ms = 1
    first, second = followers_of(cluster)
    first.kill()
    await_true(cluster, lambda: first.id not in newest(cluster).isr)
    second.pause()
    cluster.world.run(1_000)
    leader.lose_power()
    second.resume()
    cluster.start(first.id)

    cluster.world.run(5_000)
    leader.start()

    await_ready(cluster)
    check_healed(cluster, producer)


def test_f20_a_leader_that_shrank_the_set_to_itself_and_died_is_replaced(seed: int) -> None:
    """The leader is cut off from its followers but not from the controller, and then dies."""
    cluster = running(seed, nodes=4, replica_lag_time_max_ms="1000")
    controller = only_controller(cluster)
    make_topic(cluster, tuple(node for node in cluster.hosts if node != controller.id))
    producer = Producer(cluster)
    cluster.world.run(500)
    leader, others = leader_of(cluster), followers_of(cluster)
    for other in others:
        cluster.network.partition(leader.name, other.name)
    await_true(cluster, lambda: placed(controller).isr == (leader.id,))
    assert write(cluster, leader) is ErrorCode.not_enough_replicas

    leader.lose_power()

    new = await_leader(cluster, other_than=leader)
    assert new in others
    cluster.network.heal()
    cluster.start()
    check_healed(cluster, producer)


def test_f21_the_only_member_of_the_set_returns_and_the_set_grows_again(seed: int) -> None:
    """While the only member is down, no replica leads, because the follower lacks a record."""
    cluster = running(seed, nodes=5)
    controller = only_controller(cluster)
    on = tuple(node for node in cluster.hosts if node != controller.id)[:2]
    make_topic(cluster, on, min_isr=1)
    leader, [follower] = leader_of(cluster), followers_of(cluster)
    assert write(cluster, leader, b"by both") is ErrorCode.none
    follower.kill()
    await_true(cluster, lambda: newest(cluster).isr == (leader.id,))
    assert write(cluster, leader, b"by one") is ErrorCode.none
    if seed % 2:
        leader.shutdown()
        await_true(cluster, lambda: not leader.is_up)
    else:
        leader.kill()
    await_true(cluster, lambda: not placed(controller).has_leader)
    follower.start()
    await_ready(cluster)
    cluster.world.run(5_000)
    assert not placed(controller).has_leader, "the one that lacks a record was elected"
    assert placed(controller).isr == ()

    leader.start()

    await_true(cluster, lambda: placed(controller).leader == leader.id)
    await_true(cluster, lambda: isr_is_full(cluster))
    assert write(cluster, leader, b"by both again") is ErrorCode.none
    check_healed(cluster)
    values = [record.value for record in records_in(files_of(follower))]
    assert values == [b"by both", b"by one", b"by both again"]


def test_f29_a_leader_cut_off_from_everyone_commits_nothing(seed: int) -> None:
    """A client on the old leader's machine writes to it, while other nodes elect a new leader."""
    cluster = running(seed)
    make_topic(cluster)
    zombie = leader_of(cluster)
    assert write(cluster, zombie, b"0") is ErrorCode.none
    cluster.network.isolate(zombie.name)
    talk = Talk(cluster, zombie.id, name=zombie.name)
    asked = talk.begin(produce_to(TOPIC, batch(b"zombie"), timeout_ms=6_000))

    new = await_leader(cluster, other_than=zombie)
    assert write(cluster, new, b"1") is ErrorCode.none
    cluster.network.heal()
    await_true(cluster, lambda: asked.is_done)

    [(_, [produced])] = asked.answer.topics
    assert produced.error in (ErrorCode.not_leader_or_follower, ErrorCode.request_timed_out)
    check_healed(cluster)
    assert b"zombie" not in files_of(zombie)


def test_f44_the_batch_behind_a_truncated_one_is_not_out_of_order(seed: int) -> None:
    """A leader appends a batch, loses the leadership, truncates the batch and leads again.

    The next batch of the producer was under way meanwhile. The client must retry both in order. If
    the next batch were out of order, librdkafka would send all its batches again in a new epoch.
    """
    cluster = running(seed)
    make_topic(cluster)
    first = leader_of(cluster)
    talk = Talk(cluster, first.id, name=first.name)

    def send(sequence: int) -> ErrorCode:
        [(_, [produced])] = talk.ask(produce_to(TOPIC, numbered(sequence))).topics
        error: ErrorCode = produced.error
        return error

    assert send(0) is ErrorCode.none
    cluster.network.isolate(first.name)
    talk.begin(produce_to(TOPIC, numbered(1), timeout_ms=1_000))
    second = await_leader(cluster, other_than=first)
    assert write(cluster, second) is ErrorCode.none
    cluster.network.heal()
    await_true(cluster, lambda: isr_is_full(cluster))
    second.kill()
    await_leader(cluster, other_than=second)
    if leader_of(cluster) is not first:
        leader_of(cluster).kill()
        second.start()
        await_true(cluster, lambda: newest(cluster).leader in (first.id, second.id))
    cluster.start()
    await_true(cluster, lambda: isr_is_full(cluster))
    await_true(cluster, lambda: newest(cluster).leader == first.id)

    assert not talk.is_lost
    assert send(2) is ErrorCode.not_leader_or_follower
    assert send(1) is ErrorCode.none
    assert send(2) is ErrorCode.none
    check_healed(cluster)


def numbered(sequence: int) -> bytes:
    """A batch of one record of an idempotent producer."""
    return batch(b"%d" % sequence, producer_id=7, producer_epoch=0, base_sequence=sequence)


def offset_at(cluster: SimCluster, host: SimHost, timestamp: int) -> tuple[ErrorCode, int]:
    """The error and the offset of the first record that is not older than the timestamp."""
    partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = ListOffsetsTopic(name=TOPIC, partitions=(partition,))
    wish = ask(2, replica_id=-1, isolation_level=0, topics=(topic,))
    [found] = Talk(cluster, host.id).ask(wish).topics[0].partitions
    return found.error_code, found.offset


def test_f50_a_new_leader_does_not_say_where_the_end_is_before_it_knows(seed: int) -> None:
    cluster = running(seed)
    make_topic(cluster)
    leader = leader_of(cluster)
    for number in range(3):
        assert write(cluster, leader, b"%d" % number) is ErrorCode.none
    latest = latest_at(cluster, leader.id)
    assert latest == (ErrorCode.none, 3)

    leader.kill()
    new = await_leader(cluster, other_than=leader)
    [other] = [host for host in followers_of(cluster) if host is not leader]
    await_true(cluster, lambda: placed(new).leader == new.id)
    other.pause()  # otherwise its fetch would advance the high watermark
    error, _ = latest_at(cluster, new.id)
    assert error is ErrorCode.offset_not_available
    assert offset_at(cluster, new, LATE) == (ErrorCode.offset_not_available, -1)

    other.resume()
    await_true(cluster, lambda: placed(other).leader == new.id)
    cluster.world.run(1_000)
    assert latest_at(cluster, new.id) == (ErrorCode.none, 3)
    assert offset_at(cluster, new, LATE) == (ErrorCode.none, -1)
    cluster.start()
    check_healed(cluster)


def test_a_node_that_starts_from_an_old_snapshot_keeps_the_epochs_of_its_log(seed: int) -> None:
    """The snapshot names the node as leader, in an epoch that is older than the node's log."""
    cluster = running(seed, metadata_log_max_record_bytes_between_snapshots="1500")
    make_topic(cluster)
    producer = Producer(cluster)
    for _ in range(6):
        cluster.world.run(300)
        leader = leader_of(cluster)
        leader.kill()
        await_leader(cluster, other_than=leader)
        cluster.start()
        await_true(cluster, lambda: isr_is_full(cluster) and cluster.is_ready)

    check_healed(cluster, producer)
    epochs = {header.leader_epoch for _, header in iterate(files_of(cluster.hosts[1]))}
    assert len(epochs) > 3


def test_a_setting_that_changes_with_the_leader_makes_nobody_lead_in_anothers_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A paused node gets both changes at once, but applies them to one partition after another."""
    monkeypatch.setattr(assignments, "PARTITIONS_PER_TURN", 1)
    cluster = running(1)
    controller = only_controller(cluster)
    sleeper, other = [host for host in cluster.hosts.values() if host is not controller]
    wish = create_topic("many", on=[[sleeper.id, other.id, controller.id]] * 10)
    assert created(Talk(cluster, other.id).ask(wish))
    await_true(cluster, lambda: "many" in sleeper.node.image.topics)
    cluster.world.run(100)
    sleeper.pause()
    await_true(cluster, lambda: controller.node.image.brokers[sleeper.id].fenced)
    value = AlterableConfig(name="min.insync.replicas", config_operation=0, value="2")
    resource = AlterConfigsResource(resource_type=2, resource_name="many", configs=(value,))
    Talk(cluster, other.id).ask(ask(44, resources=(resource,), validate_only=False))

    sleeper.resume()

    await_ready(cluster)
    await_true(cluster, lambda: images_agree(cluster))
    partitions = controller.node.image.topics["many"].partitions.values()
    await_true(cluster, lambda: all(one.leader != sleeper.id for one in partitions))
