"""A replica whose log was damaged while it was down counts only once it is complete (F47, F54)."""

import logging
from collections.abc import Callable

import pytest
from tests.sim.replication import (
    TOPIC,
    Producer,
    Reader,
    check_healed,
    files_of,
    followers_of,
    isr_is_full,
    leader_of,
    make_topic,
    newest,
)
from tests.sim.talk import await_ready, await_true, running

from tidelog.sim.checks.reports import kept
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

LOG = f"{TOPIC}-0/{0:020d}.log"
CHECKPOINT = {"log_flush_offset_checkpoint_interval_ms": "100"}


def rot(host: SimHost, seed: int) -> None:
    """Flip a bit in the first half of the log."""
    host.disk.flip_bit(LOG, 8 * 100 + 8 * (seed * 977 % (host.disk.size(LOG) // 2 - 100)))


def written(seed: int) -> tuple[SimCluster, Producer, Reader]:
    """A cluster with synced records and their checkpoint."""
    cluster = running(seed, **CHECKPOINT)
    make_topic(cluster, flush_messages="1")
    producer, reader = Producer(cluster), Reader(cluster)
    cluster.world.run(1_500)
    return cluster, producer, reader


def test_f47_a_follower_with_a_hole_in_its_log_fetches_it_again(seed: int) -> None:
    cluster, producer, reader = written(seed)
    follower = followers_of(cluster)[seed % 2]
    follower.kill()
    await_true(cluster, lambda: follower.id not in newest(cluster).isr)
    rot(follower, seed)
    follower.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    check_healed(cluster, producer, reader)


def test_f47_a_leader_with_a_hole_in_its_log_leads_again_only_when_it_is_whole(seed: int) -> None:
    cluster, producer, reader = written(seed)
    leader = leader_of(cluster)
    leader.kill()
    rot(leader, seed)
    leader.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    for other in [host for host in cluster.hosts.values() if host is not leader]:
        other.kill()
        await_true(cluster, lambda gone=other: gone.id not in newest(cluster).isr)
        other.start()
        await_ready(cluster)
        await_true(cluster, lambda: isr_is_full(cluster))
    check_healed(cluster, producer, reader)


@pytest.mark.parametrize("last", [0, 1, 2])
def test_f47_a_replica_that_lost_its_end_after_a_clean_shutdown_is_not_elected(
    seed: int, last: int
) -> None:
    """All nodes shut down cleanly, so any of them could lead; then one of them loses records."""
    cluster, producer, _ = written(seed)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle)
    hosts = [*followers_of(cluster), leader_of(cluster)]
    for host in hosts:
        host.shutdown()
        await_true(cluster, lambda gone=host: not gone.is_up)
    broken = hosts[last]
    log = broken.disk.open(LOG)
    log.truncate(log.size // 3)
    log.sync()
    broken.disk.kill()

    broken.start()
    cluster.world.run(500)
    cluster.start()
    await_ready(cluster)

    check_healed(cluster, producer)


# -- every kind of damage to a log, after a clean stop and after kill -9 ---------------------------

DIRECTORY = f"{TOPIC}-0"


def segments(host: SimHost) -> list[str]:
    """The segment files of the log, oldest first."""
    names = [name for name in host.disk.list(DIRECTORY) if name.endswith(".log")]
    return [f"{DIRECTORY}/{name}" for name in names]


def middle(host: SimHost) -> str:
    found = segments(host)
    assert len(found) >= 3, found
    return found[len(found) // 2]


def cut(host: SimHost, path: str, to: int) -> None:
    host.disk.open(path).truncate(to)


def remove_all(host: SimHost) -> None:
    for path in segments(host):
        host.disk.remove(path)


def remove_first(host: SimHost) -> None:
    host.disk.remove(segments(host)[0])


def garbage_behind(host: SimHost, path: str) -> None:
    host.disk.open(path).append((bytes(range(200)),))


def flip(host: SimHost, path: str) -> None:
    """Flip a bit of the first batch's base offset, which no checksum covers."""
    host.disk.flip_bit(path, 8 * 5)


def swap(host: SimHost) -> None:
    one, two = segments(host)[:2]
    first, second = host.disk.read_file(one), host.disk.read_file(two)
    host.disk.write_file(one, second)
    host.disk.write_file(two, first)


def spoil(host: SimHost, path: str) -> None:
    host.disk.write_file(path, bytes(range(128, 256)))


def spoil_indexes(host: SimHost) -> None:
    for name in host.disk.list(DIRECTORY):
        if name.endswith("index"):
            content = host.disk.read_file(f"{DIRECTORY}/{name}")
            host.disk.write_file(f"{DIRECTORY}/{name}", b"\xff" * len(content))


def directory_in_place(host: SimHost) -> None:
    path = middle(host)
    host.disk.remove(path)
    host.disk.make_directory(path)


DAMAGE: dict[str, Callable[[SimHost], None]] = {
    "the partition is deleted": lambda host: host.disk.remove_tree(DIRECTORY),
    "its segments are deleted": remove_all,
    "its first segment is deleted": remove_first,
    "a segment in the middle is deleted": lambda host: host.disk.remove(middle(host)),
    "the last segment is deleted": lambda host: host.disk.remove(segments(host)[-1]),
    "a segment in the middle is empty": lambda host: cut(host, middle(host), 0),
    "a segment in the middle is cut": lambda host: cut(host, middle(host), 200),
    "the last segment is cut": lambda host: cut(host, segments(host)[-1], 100),
    "garbage behind a segment in the middle": lambda host: garbage_behind(host, middle(host)),
    "garbage behind the last segment": lambda host: garbage_behind(host, segments(host)[-1]),
    "an offset is flipped": lambda host: flip(host, middle(host)),
    "two segments are swapped": swap,
    "a later segment": lambda host: host.disk.write_file(f"{DIRECTORY}/{99_999_999:020d}.log", b""),
    "an index without a log": lambda host: host.disk.write_file(
        f"{DIRECTORY}/{77_777_777:020d}.index", b"x" * 80
    ),
    "a directory in place of a segment": directory_in_place,
    "its epochs are garbage": lambda host: spoil(host, f"{DIRECTORY}/leader-epoch-checkpoint"),
    "its epochs are wrong": lambda host: host.disk.write_file(
        f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n2\n0 0\n7 3\n"
    ),
    "the recovery points are garbage": lambda host: spoil(host, "recovery-point-offset-checkpoint"),
    "the log starts are wrong": lambda host: host.disk.write_file(
        "log-start-offset-checkpoint", f"0\n1\n{TOPIC} 0 40\n".encode()
    ),
    "its indexes are garbage": spoil_indexes,
}


@pytest.mark.parametrize("how", ["stopped", "killed"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_f54_a_damaged_replica_is_whole_again_before_it_counts(
    kind: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Afterwards each node leads in turn, so the test notices if a node lacks a record."""
    caplog.set_level(logging.WARNING)
    seed = len(kind)
    cluster = running(seed, **CHECKPOINT)
    make_topic(cluster, flush_messages="1", internal_segment_bytes="2048")
    producer, reader = Producer(cluster), Reader(cluster)
    cluster.world.run(1_500)
    await_true(cluster, lambda: isr_is_full(cluster))
    victim = [*followers_of(cluster), leader_of(cluster)][seed % 3]
    if how == "stopped":
        victim.shutdown()
    else:
        victim.kill()
    await_true(cluster, lambda: not victim.is_up and victim.id not in newest(cluster).isr)
    DAMAGE[kind](victim)
    victim.disk.sync_all()
    victim.disk.kill()
    victim.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    for other in [host for host in cluster.hosts.values() if host is not victim]:
        other.shutdown()
        await_true(cluster, lambda gone=other: not gone.is_up)
        await_true(cluster, lambda gone=other: gone.id not in newest(cluster).isr)
        other.start()
        await_ready(cluster)
        await_true(cluster, lambda: isr_is_full(cluster))
    check_healed(cluster, producer, reader)
    alarms = [one.getMessage() for one in caplog.records if "are lost" in one.getMessage()]
    assert not alarms, "other replicas hold every record"


@pytest.mark.parametrize(
    "kind",
    [
        "the partition is deleted",
        "its segments are deleted",
        "a segment in the middle is deleted",
        "the last segment is cut",
    ],
)
@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_f54_the_last_leader_with_a_damaged_log_is_not_elected_over_whole_ones(
    kind: str, how: str
) -> None:
    """No replica is in sync. Undamaged replicas keep their records until an operator decides."""
    cluster = running(3, **CHECKPOINT)
    make_topic(cluster, min_isr=1, flush_messages="1", internal_segment_bytes="2048")
    producer = Producer(cluster)
    cluster.world.run(1_500)
    producer.stop()
    await_true(cluster, lambda: producer.is_idle and isr_is_full(cluster))
    last, others = leader_of(cluster), followers_of(cluster)
    for host in [*others, last]:
        if host is last and how == "killed":
            host.kill()
        else:
            host.shutdown()
        await_true(cluster, lambda gone=host: not gone.is_up)
    held = [files_of(host) for host in others]
    DAMAGE[kind](last)
    last.disk.sync_all()
    last.disk.kill()
    cluster.start()
    await_ready(cluster)
    cluster.world.run(3_000)
    for host, before in zip(others, held, strict=True):
        assert files_of(host).startswith(before[:100]), f"{host.id} was cut to a damaged leader"
        assert len(files_of(host)) >= len(before)


@pytest.mark.parametrize("byte", [5, 14, 26, 80], ids=["offset", "epoch", "count", "record"])
def test_f54_a_leader_makes_way_when_a_follower_finds_its_damage(byte: int) -> None:
    """A bit of a leader's old segment flips, and a replica with a new disk fetches that segment."""
    cluster = running(5 + byte, **CHECKPOINT)
    make_topic(cluster, flush_messages="1", internal_segment_bytes="2048")
    producer = Producer(cluster)
    cluster.world.run(1_500)
    leader, [wiped, _] = leader_of(cluster), followers_of(cluster)
    leader.shutdown()
    await_true(cluster, lambda: not leader.is_up)
    leader.disk.flip_bit(middle(leader), 8 * byte)
    leader.disk.kill()
    leader.start()
    await_ready(cluster)
    await_true(cluster, lambda: isr_is_full(cluster))
    others = [host for host in cluster.hosts.values() if host is not leader]
    for other in others:
        other.shutdown()
        await_true(cluster, lambda gone=other: not gone.is_up)
        if other is wiped:
            other.wipe()
        other.start()
        await_ready(cluster)
    check_healed(cluster, producer)


def test_f54_a_bit_that_flipped_in_an_old_segment_is_found_and_fetched_again(seed: int) -> None:
    """After a clean shutdown only the background verification reads the old segment."""
    cluster = running(seed, **CHECKPOINT)
    make_topic(cluster, internal_segment_bytes="4096")
    producer, reader = Producer(cluster), Reader(cluster)
    follower = followers_of(cluster)[seed % 2]
    await_true(cluster, lambda: len(logs_of(follower)) > 2)
    follower.shutdown()
    await_true(cluster, lambda: not follower.is_up)
    first = logs_of(follower)[0]
    follower.disk.flip_bit(first, 8 * (follower.disk.size(first) // 2))

    with kept() as reports:
        follower.start()
        await_true(cluster, lambda: reports.mention({"cannot be read"}, 0))
        leader = leader_of(cluster)
        await_true(cluster, lambda: follower.disk.read_file(first) == leader.disk.read_file(first))
        await_true(cluster, lambda: isr_is_full(cluster))
    check_healed(cluster, producer, reader)


def logs_of(host: SimHost) -> list[str]:
    files = host.disk.files()
    return [one for one in files if one.startswith(f"{TOPIC}-0/") and one.endswith(".log")]
