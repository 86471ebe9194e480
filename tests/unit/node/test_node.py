"""A node from its start to its end: formatting, readiness, controlled shutdown."""

import gc

import pytest
from tests.sim.messages import (
    ask,
    batch,
    create_topic,
    delete_topic,
    fetch_from,
    produce_to,
    records_in,
)
from tests.unit.node.bench import START_MS, Bench, formatted

from tidelog.log.partition import PartitionLog
from tidelog.log.segments.segment import Segment
from tidelog.model.errors import ErrorCode
from tidelog.model.events import PeerConnected, Ran, Ticked
from tidelog.model.ids import TopicPartition
from tidelog.model.outbound import Connect
from tidelog.node.node import Node, NotFormatted
from tidelog.sim.machines.cluster import node_settings
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

API_VERSIONS = ask(18, client_software_name="test", client_software_version="1")


def test_a_directory_that_was_not_formatted_is_refused() -> None:
    with pytest.raises(NotFormatted, match="missing"):
        Node(node_settings(1, 1), [SimDisk()], SeededDice(1), START_MS)


def test_the_directory_of_another_node_is_refused() -> None:
    with pytest.raises(NotFormatted, match="belongs to node 2, not to node 1"):
        Node(node_settings(1, 1), [formatted(node_id=2)], SeededDice(1), START_MS)


def test_directories_of_two_clusters_are_refused() -> None:
    settings = node_settings(1, 1, {"log.dirs": "one,two"})
    disks = [formatted(), formatted(cluster_id="b3RoZXItY2x1c3RlcjEyMw")]
    with pytest.raises(NotFormatted, match="different clusters"):
        Node(settings, disks, SeededDice(1), START_MS)


def test_several_log_directories_share_the_partitions() -> None:
    node = Bench(1, formatted(), formatted(seed=3), log_dirs="one,two")

    node.ask(create_topic("orders", 4))

    held = [[name for name in disk.list("") if name.startswith("orders")] for disk in node.disks]
    assert sorted(map(len, held)) == [2, 2]


def test_it_is_ready_when_its_own_registration_is_committed() -> None:
    node = Bench()
    assert node.node.is_ready
    assert node.node.is_active_controller
    assert [broker.id for broker in node.node.image.unfenced_brokers()] == [1]


def test_a_node_of_several_answers_and_is_not_ready_without_the_others() -> None:
    node = Bench(nodes=3)
    node.settle()

    assert node.ask(API_VERSIONS).error_code is ErrorCode.none
    assert not node.node.is_ready
    assert {(one.host, one.port) for one in node.connects} == {("node2", 9093), ("node3", 9093)}


def test_it_shuts_down_in_order_and_comes_back_with_all_it_had() -> None:
    node = Bench()
    node.ask(create_topic("orders"))
    node.ask(produce_to("orders", batch(b"kept")))

    node.shutdown()
    node.settle()
    assert node.stopped is not None
    assert node.stopped.status == 0
    node.disk.crash(SeededDice(5))
    again = Bench(1, node.disk, seed=2)

    [(_, [fetched])] = again.ask(fetch_from("orders")).topics
    assert [record.value for record in records_in(fetched.records)] == [b"kept"]


def test_a_second_shutdown_changes_nothing() -> None:
    node = Bench()
    node.shutdown()
    node.shutdown()
    node.settle()
    stops = [one for one in node.outbound if type(one).__name__ == "Stop"]
    assert len(stops) == 1
    assert not node.node.is_ready


def test_a_shutdown_that_no_controller_answers_ends_all_the_same() -> None:
    node = Bench(nodes=3)
    node.settle()
    node.shutdown()
    node.pass_time(10_000)
    assert node.stopped is not None
    assert node.stopped.status == 0


def test_news_of_connections_that_are_gone_is_ignored() -> None:
    node = Bench()
    for event in (PeerConnected(-99), Ticked()):
        assert not any(isinstance(one, Connect) for one in node.tell(event))
    assert node.send_frame(-99, b"late answer") == []
    assert node.send_frame(999, b"late request") == []
    node.disconnect(-99)
    node.disconnect(999)
    assert node.ask(API_VERSIONS).error_code is ErrorCode.none


def test_an_fsync_of_the_metadata_that_fails_stops_the_node() -> None:
    node = Bench()
    node.send(node.connect(), create_topic("orders"))
    [flush] = node.flushes
    node.tell(Ran(flush.token, None, OSError("Input/output error")))
    assert node.stopped is not None
    assert node.stopped.status == 1


def test_time_that_stands_still_or_goes_back_a_little_harms_nobody() -> None:
    """The host's clock may return the same time twice; the node must not loop in this case."""
    node = Bench()
    node.now += 1_000
    node.tell(Ticked())
    for _ in range(3):
        node.tell(Ticked())
    deadline = node.node.next_deadline()
    assert deadline is not None
    assert deadline > node.now


def test_what_a_follower_cuts_of_a_deleted_topic_is_nobodys_news() -> None:
    """A replica of a deleted topic is dropped late, so a late answer may still truncate it."""
    node = Bench()
    node.ask(create_topic("orders"))
    host = node.node._broker.assignments._host
    replica = node.node._broker.partitions.get(TopicPartition("orders", 0))
    assert replica is not None
    node.ask(delete_topic("orders"))
    host.truncated(replica, 5, 3)
    node.ask(create_topic("orders"))
    host.truncated(replica, 5, 3)


def test_a_deleted_topic_needs_no_garbage_collector() -> None:
    """A reference cycle would keep the topic's files open until a rare full collection (F63)."""
    node = Bench(log_segment_delete_delay_ms="0")
    node.ask(create_topic("orders"))
    node.ask(produce_to("orders", batch(b"a", b"b")))
    node.ask(fetch_from("orders"))
    node.send(node.connect(), fetch_from("orders", 2, max_wait_ms=60_000))
    gc.collect()
    gc.disable()
    try:
        assert _count_in_memory("orders-0") >= 2
        node.ask(delete_topic("orders"))
        node.pass_time(1_000)
        assert _count_in_memory("orders-0") == 0
    finally:
        gc.enable()


def _count_in_memory(directory: str) -> int:
    """The logs and segments of this directory that have not been freed."""
    return sum(
        (isinstance(one, PartitionLog) and one.directory == directory)
        or (isinstance(one, Segment) and one.path("").startswith(f"{directory}/"))
        for one in gc.get_objects()
    )


def test_a_controller_that_leads_for_long_has_no_more_to_do_than_at_first() -> None:
    node = Bench()
    chores = len(node.node._active_controller._chores)
    node.pass_time(10 * 60_000)
    assert len(node.node._active_controller._chores) == chores == 2
