"""A node reports stray data, and keeps it, renamed or in place, for a restore (F58)."""

from collections.abc import Callable

import pytest
from tests.sim.cluster_steps import created
from tests.sim.messages import create_topic, delete_topic, fetch_from
from tests.sim.replication import (
    TOPIC,
    Producer,
    check_healed,
    files_of,
    followers_of,
    isr_is_full,
    leader_of,
    make_topic,
    newest,
)
from tests.sim.talk import Talk, await_ready, await_true, running
from tests.sim.writers import read_all

from tidelog.log.checkpoints import partition_metadata
from tidelog.log.directory import LogDirectory
from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.host import SimHost

DIRECTORY = f"{TOPIC}-0"
FILE = f"{DIRECTORY}/partition.metadata"
SNAPSHOTS = {
    "metadata_log_max_record_bytes_between_snapshots": "1000",
    "metadata_max_retention_bytes": "1",
}
DAMAGES: dict[str, Callable[[SimHost], None]] = {
    "garbage": lambda host: host.disk.write_file(FILE, b"\xff\x00garbage" * 9),
    "empty": lambda host: host.disk.write_file(FILE, b""),
    "gone": lambda host: host.disk.remove(FILE),
}


def strays(host: SimHost) -> list[str]:
    return [name for name in host.disk.list("") if name.endswith("-stray")]


def stop(cluster: SimCluster, host: SimHost, *, cleanly: bool) -> None:
    if cleanly:
        host.shutdown()
        await_true(cluster, lambda: not host.is_up)
    else:
        host.kill()
    host.disk.kill()


def written(seed: int, replicas: tuple[int, ...]) -> tuple[SimCluster, Producer]:
    """A cluster whose records and partition.metadata are synced."""
    cluster = running(seed, log_flush_offset_checkpoint_interval_ms="100")
    make_topic(cluster, replicas, min_isr=min(2, len(replicas)), flush_messages="1")
    producer = Producer(cluster)
    cluster.world.run(1_000)
    return cluster, producer


@pytest.mark.parametrize("cleanly", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_f58_one_of_three_with_a_damaged_id_fetches_again_and_keeps_what_it_had(
    seed: int, damage: str, cleanly: bool
) -> None:
    cluster, producer = written(seed, (1, 2, 3))
    host = leader_of(cluster) if seed % 2 else followers_of(cluster)[0]
    stop(cluster, host, cleanly=cleanly)
    held = files_of(host)
    DAMAGES[damage](host)

    host.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))

    check_healed(cluster, producer)
    [stray] = strays(host)
    assert held
    assert host.disk.read_file(f"{stray}/{0:020d}.log") == held


def move(host: SimHost) -> None:
    """Write the number of another partition into partition.metadata."""
    topic_id = partition_metadata.read(host.disk, DIRECTORY).topic_id
    assert topic_id is not None
    host.disk.write_file(FILE, partition_metadata.encode(topic_id, 1))


@pytest.mark.parametrize("cleanly", [True, False])
def test_f58_records_of_another_partition_of_the_topic_are_fetched_again(
    seed: int, cleanly: bool
) -> None:
    cluster, producer = written(seed, (1, 2, 3))
    host = leader_of(cluster) if seed % 2 else followers_of(cluster)[0]
    stop(cluster, host, cleanly=cleanly)
    held = files_of(host)
    move(host)

    host.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))

    check_healed(cluster, producer)
    [stray] = strays(host)
    assert host.disk.read_file(f"{stray}/{0:020d}.log") == held


@pytest.mark.parametrize("cleanly", [True, False])
def test_f58_the_only_copy_that_may_be_another_partition_is_held_and_can_be_restored(
    seed: int, cleanly: bool
) -> None:
    cluster, producer = written(seed, (1,))
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    host = leader_of(cluster)
    stop(cluster, host, cleanly=cleanly)
    held = files_of(host)
    move(host)

    for _ in range(2):  # a second start changes nothing
        host.start()
        await_ready(cluster)
        cluster.world.run(3_000)
        [(_, [fetched])] = Talk(cluster, host.id).ask(fetch_from(TOPIC), 12).topics
        assert fetched.error is ErrorCode.kafka_storage_error
        assert files_of(host) == held
        stop(cluster, host, cleanly=cleanly)

    LogDirectory(host.disk, SeededDice(seed)).restore(DIRECTORY)
    host.disk.kill()
    host.start()
    await_ready(cluster)
    leader_of(cluster)
    check_healed(cluster, producer)
    assert files_of(host) == held


@pytest.mark.parametrize("cleanly", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_f58_the_only_copy_with_a_damaged_id_is_served_if_nothing_else_had_its_name(
    seed: int, damage: str, cleanly: bool
) -> None:
    cluster, producer = written(seed, (1,))
    host = leader_of(cluster)
    for _ in range(2):
        stop(cluster, host, cleanly=cleanly)
        DAMAGES[damage](host)
        host.start()
        await_ready(cluster)
        leader_of(cluster)
    check_healed(cluster, producer)
    assert strays(host) == []


@pytest.mark.parametrize("cleanly", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_f58_the_only_copy_that_may_be_of_another_topic_is_held_and_can_be_restored(
    seed: int, damage: str, cleanly: bool
) -> None:
    """The node has also lost its metadata, so it cannot know which topics existed."""
    cluster, producer = written(seed, (1,))
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    host = leader_of(cluster)
    stop(cluster, host, cleanly=cleanly)
    held = files_of(host)
    DAMAGES[damage](host)
    host.disk.remove_tree("__cluster_metadata-0")

    for _ in range(2):  # a second start changes nothing
        host.start()
        await_ready(cluster)
        cluster.world.run(3_000)
        assert not newest(cluster).has_leader
        [(_, [fetched])] = Talk(cluster, host.id).ask(fetch_from(TOPIC), 12).topics
        assert fetched.error is ErrorCode.kafka_storage_error
        assert files_of(host) == held
        stop(cluster, host, cleanly=cleanly)

    LogDirectory(host.disk, SeededDice(seed)).restore(DIRECTORY)
    host.disk.kill()
    host.start()
    await_ready(cluster)
    leader_of(cluster)
    check_healed(cluster, producer)
    assert files_of(host) == held


@pytest.mark.parametrize("sees_records", [True, False])
def test_f58_an_id_that_cannot_be_read_is_not_taken_for_that_of_a_namesake(
    sees_records: bool,
) -> None:
    """The topic was deleted and created again; the new topic must not get the old records."""
    settings = {} if sees_records else SNAPSHOTS
    cluster = running(1, log_flush_offset_checkpoint_interval_ms="100", **settings)
    away = next(host for host in cluster.hosts.values() if host not in cluster.controllers)
    here = next(host for host in cluster.hosts.values() if host is not away)
    make_topic(cluster, (away.id, here.id), min_isr=1, flush_messages="1")
    producer = Producer(cluster)
    cluster.world.run(500)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    stop(cluster, away, cleanly=False)
    DAMAGES["garbage"](away)
    held = files_of(away)
    Talk(cluster, here.id).ask(delete_topic(TOPIC))
    make_topic(cluster, (here.id, away.id), min_isr=1)
    for number in range(40):
        assert created(Talk(cluster, here.id).ask(create_topic(f"more-{number}", 3, 2)))
    away.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    check_healed(cluster)
    assert files_of(away) == b""
    assert held in kept(away)


def test_f58_an_id_that_power_loss_took_before_its_first_sync_is_given_again(seed: int) -> None:
    cluster = running(seed)
    make_topic(cluster, (1,), min_isr=1)
    producer = Producer(cluster)
    cluster.world.run(1_000)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    host = leader_of(cluster)
    for _ in range(2):
        stop(cluster, host, cleanly=False)
        DAMAGES["gone"](host)
        host.start()
        await_ready(cluster)
        leader_of(cluster)
    check_healed(cluster, producer)
    assert strays(host) == []


def test_f58_a_changed_bit_in_the_id_of_the_only_copy_mends_itself(seed: int) -> None:
    cluster, producer = written(seed, (1,))
    host = leader_of(cluster)
    stop(cluster, host, cleanly=bool(seed % 2))
    host.disk.flip_bit(FILE, 8 * 22 + seed * 13 % 170)

    host.start()
    await_ready(cluster)
    check_healed(cluster, producer)
    assert strays(host) == []


def test_f58_the_only_copy_of_a_topic_that_another_replica_lacks_is_held(seed: int) -> None:
    """Only one of three replicas is in sync, so no other replica has the last committed records."""
    cluster, producer = written(seed, (1, 2, 3))
    host = leader_of(cluster)
    others = followers_of(cluster)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    for other in others:
        other.kill()
        await_true(cluster, lambda: not any(o.id in newest(cluster).isr for o in others[:1]))
    cluster.world.run(1_000)
    held = files_of(host)
    stop(cluster, host, cleanly=False)
    DAMAGES["garbage"](host)

    host.start()
    cluster.world.run(3_000)

    assert files_of(host) == held
    cluster.start()
    cluster.world.run(10_000)
    assert held in [files_of(host), *kept(host)]


def kept(host: SimHost) -> list[bytes]:
    return [host.disk.read_file(f"{name}/{0:020d}.log") for name in strays(host)]


def test_f58_nothing_is_set_aside_before_a_controller_was_heard(seed: int) -> None:
    cluster, producer = written(seed, (1, 2, 3))
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    for host in cluster.hosts.values():
        host.kill()
    host = cluster.hosts[1]
    Talk(cluster, 1)
    DAMAGES["garbage"](host)
    held = files_of(host)

    host.start()
    cluster.world.run(20_000)

    assert strays(host) == []
    assert files_of(host) == held


def test_f58_a_topic_deleted_while_a_node_was_down_is_deleted_there_after_the_delay() -> None:
    cluster = running(1)
    wish = create_topic("orders", on=[(1, 2, 3)])
    assert created(Talk(cluster, 1).ask(wish))
    cluster.world.run(500)
    Producer(cluster).stop()
    producer = Producer(cluster)
    cluster.world.run(300)
    producer.stop()
    away = next(host for host in cluster.hosts.values() if host not in cluster.controllers)
    away.kill()
    here = next(host for host in cluster.up)
    assert Talk(cluster, here.id).ask(delete_topic("orders")).responses[0].error_code == 0

    away.start()
    await_ready(cluster)
    cluster.world.run(50_000)
    [gone] = [name for name in away.disk.list("") if name.startswith("orders-0.")]
    assert gone.endswith("-delete"), "a committed record says that its topic was deleted"
    cluster.world.run(20_000)
    assert not [name for name in away.disk.list("") if name.startswith("orders")]


def test_f58_a_replica_of_which_only_a_snapshot_says_that_it_is_gone_is_kept() -> None:
    """The record that deleted the topic is no longer in any metadata log."""
    cluster = running(1, **SNAPSHOTS)
    make_topic(cluster)
    producer = Producer(cluster)
    cluster.world.run(500)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    away = next(host for host in cluster.hosts.values() if host not in cluster.controllers)
    away.kill()
    held = files_of(away)
    here = next(host for host in cluster.up)
    Talk(cluster, here.id).ask(delete_topic(TOPIC))
    for number in range(40):
        assert created(Talk(cluster, here.id).ask(create_topic(f"more-{number}", 3, 2)))

    away.start()
    await_ready(cluster)
    cluster.world.run(100_000)

    assert held in kept(away)
    assert read_all(Talk(cluster, here.id), "more-1") == []
