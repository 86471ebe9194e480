"""A leader that is connected only to clients, and the answers that it gives them."""

from typing import Any

from tests.sim.controllers import SESSION_MS, only_controller
from tests.sim.messages import batch, fetch_from, produce_to, records_in
from tests.sim.replication import TOPIC, check_healed, leader_of, make_topic, newest
from tests.sim.talk import Asked, Talk, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

LONG_MS = 30_000
A_MOMENT_MS = 1_000


def begin_write(cluster: SimCluster, host: SimHost, value: bytes, acks: int = -1) -> Asked:
    wish = produce_to(TOPIC, batch(value), acks=acks, timeout_ms=LONG_MS)
    return Talk(cluster, host.id, patience_ms=LONG_MS).begin(wish)


def error_in(asked: Asked) -> ErrorCode:
    answer: Any = asked.answer
    [(_, [produced])] = answer.topics
    assert produced.current_leader is None, "it knows of no other, and is not to be asked again"
    error: ErrorCode = produced.error
    return error


def write(cluster: SimCluster, host: SimHost, value: bytes, acks: int = -1) -> ErrorCode:
    asked = begin_write(cluster, host, value, acks)
    await_true(cluster, lambda: asked.is_done, LONG_MS)
    return error_in(asked)


def read(cluster: SimCluster, host: SimHost, offset: int) -> Any:
    answer = Talk(cluster, host.id).ask(fetch_from(TOPIC, offset))
    [(_, [fetched])] = answer.topics
    return fetched


def cut_off(cluster: SimCluster, host: SimHost) -> None:
    """Cut a node off from the other nodes, but not from clients."""
    for other in cluster.hosts.values():
        if other is not host:
            cluster.network.partition(host.name, other.name)


def test_a_leader_cut_off_from_all_nodes_sends_its_writers_elsewhere(seed: int) -> None:
    """Once its session has expired, another leader may exist, so the old leader refuses writes."""
    cluster = running(seed)
    make_topic(cluster, min_isr=1)
    old = leader_of(cluster)
    assert write(cluster, old, b"0") is ErrorCode.none
    cut_off(cluster, old)
    waiting = begin_write(cluster, old, b"1")

    # A leader that is also the controller keeps its session until it resigns as controller.
    await_true(cluster, lambda: waiting.is_done, 3 * SESSION_MS)
    assert error_in(waiting) is ErrorCode.not_leader_or_follower
    for acks in (-1, 1):
        asked = begin_write(cluster, old, b"2", acks)
        await_true(cluster, lambda now=asked: now.is_done, 100)
        assert error_in(asked) is ErrorCode.not_leader_or_follower

    await_true(cluster, lambda: newest(cluster).leader not in (old.id, -1))
    new = leader_of(cluster)
    assert write(cluster, new, b"1") is ErrorCode.none
    cluster.network.heal()
    check_healed(cluster)
    assert [one.value for one in records_in(read(cluster, new, 0).records)] == [b"0", b"1"]


def test_what_is_committed_can_be_read_from_a_leader_that_is_all_alone(seed: int) -> None:
    """A reader gets all committed records, because the other nodes may never return."""
    cluster = running(seed)
    make_topic(cluster)
    alone = leader_of(cluster)
    assert write(cluster, alone, b"0") is ErrorCode.none
    cluster.world.run(A_MOMENT_MS)
    for host in cluster.hosts.values():
        if host is not alone:
            host.kill()
    cluster.world.run(3 * SESSION_MS)

    found = read(cluster, alone, 0)
    assert found.error is ErrorCode.none
    assert [one.value for one in records_in(found.records)] == [b"0"]
    assert read(cluster, alone, 1).error is ErrorCode.not_leader_or_follower
    assert write(cluster, alone, b"1") is ErrorCode.not_leader_or_follower

    cluster.start()
    check_healed(cluster)
    assert write(cluster, leader_of(cluster), b"1") is ErrorCode.none


def test_without_a_controller_writes_go_on_while_those_in_sync_are_there(seed: int) -> None:
    """As in Kafka, a write that all in-sync replicas have is committed, even without a quorum."""
    cluster = running(seed, nodes=5)
    controller = only_controller(cluster)
    brokers = [host for host in cluster.hosts.values() if host is not controller][:2]
    make_topic(cluster, tuple(host.id for host in brokers))
    others = [host for host in cluster.hosts.values() if host not in brokers]
    for host in others:
        host.kill()
    cluster.world.run(3 * SESSION_MS)

    assert write(cluster, leader_of(cluster), b"0") is ErrorCode.none
