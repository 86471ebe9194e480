"""DeleteRecords on three replicas: no replica that may lead later has the deleted records."""

from datetime import timedelta
from typing import Any

from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsTopic
from tests.sim.controllers import only_controller
from tests.sim.messages import ask, batch, fetch_from, produce_to
from tests.sim.replication import TOPIC, followers_of, isr_is_full, leader_of, make_topic, newest
from tests.sim.talk import Talk, await_true, running

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

DELETE_RECORDS = 21


def delete_before(offset: Offset, timeout_ms: int = 30_000) -> Any:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name=TOPIC, partitions=(partition,))
    return ask(DELETE_RECORDS, topics=(topic,), timeout=timedelta(milliseconds=timeout_ms))


def outcome(answer: Any) -> tuple[ErrorCode, Offset]:
    (deleted,) = answer.topics[0].partitions
    return ErrorCode(deleted.error_code), deleted.low_watermark


def with_records(seed: int, **overrides: str) -> SimCluster:
    cluster = running(seed, **overrides)
    make_topic(cluster)
    leader = leader_of(cluster)
    values = (b"%d" % number for number in range(10))
    Talk(cluster, leader.id).ask(produce_to(TOPIC, batch(*values), timeout_ms=1_500, acks=-1))
    await_true(cluster, lambda: isr_is_full(cluster))
    cluster.world.run(1_000)
    return cluster


def begins_at(cluster: SimCluster, host: SimHost) -> Offset:
    """The log start offset that the leader returns to readers."""
    [(_, [fetched])] = Talk(cluster, host.id).ask(fetch_from(TOPIC, 9)).topics
    assert fetched.error is ErrorCode.none
    start: Offset = fetched.log_start_offset
    return start


def test_records_are_deleted_when_every_replica_has_deleted_them(seed: int) -> None:
    cluster = with_records(seed)
    leader = leader_of(cluster)
    began = cluster.world.now
    assert outcome(Talk(cluster, leader.id).ask(delete_before(7))) == (ErrorCode.none, 7)
    assert cluster.world.now - began < 200, "followers heard of it by the clock alone"

    leader.kill()
    await_true(cluster, lambda: newest(cluster).leader not in (leader.id, -1))
    assert begins_at(cluster, leader_of(cluster)) == 7, "a new leader shows what was deleted"


def test_a_deletion_waits_for_a_follower_that_stands_still(seed: int) -> None:
    cluster = with_records(seed)
    leader, [follower, _] = leader_of(cluster), followers_of(cluster)
    follower.pause()
    asked = Talk(cluster, leader.id).begin(delete_before(7))
    cluster.world.run(500)
    assert not asked.is_done

    follower.resume()
    await_true(cluster, lambda: asked.is_done)
    assert outcome(asked.answer) == (ErrorCode.none, 7)


def test_a_deletion_does_not_wait_for_a_follower_that_is_dead(seed: int) -> None:
    cluster = with_records(seed)
    leader, [follower, _] = leader_of(cluster), followers_of(cluster)
    follower.pause()
    asked = Talk(cluster, leader.id).begin(delete_before(7))
    await_true(cluster, lambda: asked.is_done)
    assert outcome(asked.answer) == (ErrorCode.none, 7)
    assert follower.id not in newest(cluster).isr


def test_a_deletion_that_takes_too_long_says_so(seed: int) -> None:
    cluster = with_records(seed, broker_session_timeout_ms="60000")
    leader = leader_of(cluster)
    # Do not pause the controller. It would be fenced, and the deletion would not wait for it.
    follower = next(one for one in followers_of(cluster) if one is not only_controller(cluster))
    follower.pause()
    answer = Talk(cluster, leader.id).ask(delete_before(7, timeout_ms=1_000))
    assert outcome(answer)[0] is ErrorCode.request_timed_out
    follower.resume()
    assert outcome(Talk(cluster, leader.id).ask(delete_before(7))) == (ErrorCode.none, 7)


def test_a_deletion_does_not_wait_for_one_that_dies_out_of_sync(seed: int) -> None:
    """The dead broker was not in sync, so its fencing changes only the list of brokers."""
    cluster = running(seed, replica_lag_time_max_ms="20000")
    controller = only_controller(cluster)
    first, second = (node for node in cluster.hosts if node != controller.id)
    make_topic(cluster, (first, second, controller.id))
    leader, follower = cluster.hosts[first], cluster.hosts[second]
    values = (b"%d" % number for number in range(10))
    Talk(cluster, first).ask(produce_to(TOPIC, batch(*values), timeout_ms=1_500, acks=-1))
    cluster.network.partition(follower.name, leader.name)
    Talk(cluster, first).begin(produce_to(TOPIC, batch(b"more"), timeout_ms=1_500, acks=1))
    await_true(cluster, lambda: second not in newest(cluster).isr)
    asked = Talk(cluster, first).begin(delete_before(7))
    cluster.world.run(1_000)
    assert not asked.is_done

    follower.kill()
    await_true(cluster, lambda: not leader.node.image.is_active(second))
    fenced = cluster.world.now
    await_true(cluster, lambda: asked.is_done)
    assert outcome(asked.answer) == (ErrorCode.none, 7)
    assert cluster.world.now - fenced < 100, "told by the next look at who lags"
