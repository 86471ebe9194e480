"""F33: a node stops using a failed directory.

The node ends if this was its last directory, or the directory of its metadata log.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.elect_leaders.v2.request import TopicPartitions
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.schema.list_offsets.v11.request import ListOffsetsPartition, ListOffsetsTopic
from tests.sim.messages import ask, batch, create_topic, delete_topic, fetch_from, produce_to
from tests.unit.node.bench import Bench, formatted

from tidelog.controller.image.image import LOST_DIRECTORY
from tidelog.log.checkpoints.checkpoints import read_meta_properties
from tidelog.model.errors import ErrorCode
from tidelog.model.events import Ran
from tidelog.sim.machines.disk import SimDisk

DESCRIBE_LOG_DIRS = 35


def two_directories(partitions: int = 4, **configs: str) -> Bench:
    """A node with two directories and its metadata log in the first."""
    made = Bench(1, formatted(seed=2), formatted(seed=3), log_dirs="one,two")
    answer = made.ask(create_topic("orders", partitions, **configs))
    assert answer.topics[0].error_code is ErrorCode.none
    made.settle()
    return made


def directory_ids(node: Bench) -> list[UUID]:
    return [read_meta_properties(disk).directory_id for disk in node.disks]


def placed_in(node: Bench, directory: int, topic: str = "orders") -> list[int]:
    """The partitions in one of the directories, according to the image."""
    wanted = directory_ids(node)[directory]
    partitions = node.node.image.topics[topic].partitions
    return [index for index, one in partitions.items() if one.directories == (wanted,)]


def errors(answer: Any) -> list[ErrorCode]:
    return [partition.error for _, partitions in answer.topics for partition in partitions]


def write(node: Bench, *partitions: int, size: int = 10) -> list[ErrorCode]:
    record = batch(b"x" * size)
    return errors(node.ask(produce_to("orders", dict.fromkeys(partitions, record))))


def look_for_a_time(node: Bench, index: int) -> ErrorCode:
    """Send a ListOffsets request by time, so that the log reads its records."""
    partition = ListOffsetsPartition(partition_index=index, timestamp=1)
    topic = ListOffsetsTopic(name="orders", partitions=(partition,))
    answer = node.ask(ask(2, replica_id=-1, isolation_level=0, topics=(topic,)))
    return answer.topics[0].partitions[0].error_code


def elect_uncleanly(node: Bench, topic: str, indexes: list[int]) -> list[ErrorCode]:
    wanted = TopicPartitions(topic=topic, partitions=tuple(indexes))
    request = ask(43, election_type=1, topic_partitions=(wanted,), timeout=timedelta(seconds=9))
    [result] = node.ask(request).replica_election_results
    return [one.error_code for one in result.partition_result]


def break_second(node: Bench) -> None:
    """Fill the second disk, so that the next write there fails."""
    node.disks[1].faults.capacity = node.disks[1].used
    [broken, *_] = placed_in(node, 1)
    assert write(node, broken) == [ErrorCode.kafka_storage_error]
    node.settle()


def test_new_replicas_go_where_the_fewest_are_and_the_controller_is_told_where() -> None:
    node = two_directories(5)
    assert len(placed_in(node, 0)) + len(placed_in(node, 1)) == 5
    assert abs(len(placed_in(node, 0)) - len(placed_in(node, 1))) == 1


def test_every_directory_is_described_with_its_own_replicas() -> None:
    node = two_directories(4)
    results = node.ask(ask(DESCRIBE_LOG_DIRS, topics=None)).results
    assert [one.log_dir for one in results] == ["one", "two"]
    described = [
        [partition.partition_index for topic in one.topics for partition in topic.partitions]
        for one in results
    ]
    assert described == [placed_in(node, 0), placed_in(node, 1)]


def test_each_directory_checkpoints_the_watermarks_of_its_own_replicas_only() -> None:
    node = two_directories(2)
    write(node, 0, 1)
    node.shutdown()
    node.settle()
    for directory, disk in enumerate(node.disks):
        checkpoint = disk.read_file("replication-offset-checkpoint").decode()
        named = [line for line in checkpoint.splitlines() if line.startswith("orders")]
        assert named == [f"orders {index} 1" for index in placed_in(node, directory)]


@pytest.mark.parametrize("fault", ["full", "read-only", "bad sector"])
def test_f33_a_directory_that_fails_takes_only_its_own_replicas_with_it(fault: str) -> None:
    node = two_directories(4)
    assert write(node, 0, 1, 2, 3) == [ErrorCode.none] * 4
    well, broken = placed_in(node, 0), placed_in(node, 1)
    faults = node.disks[1].faults
    if fault == "full":
        faults.capacity = node.disks[1].used
    elif fault == "read-only":
        faults.is_read_only = True
    else:
        faults.fails_reads.add(f"orders-{broken[0]}/00000000000000000000.log")
        assert look_for_a_time(node, broken[0]) is ErrorCode.kafka_storage_error
    if fault != "bad sector":
        assert write(node, broken[0]) == [ErrorCode.kafka_storage_error]
    node.settle()

    assert node.stopped is None
    assert write(node, *broken) == [ErrorCode.kafka_storage_error] * len(broken)
    assert write(node, *well) == [ErrorCode.none] * len(well)
    fetched = node.ask(fetch_from("orders", dict.fromkeys(broken, 0)))
    assert errors(fetched) == [ErrorCode.kafka_storage_error] * len(broken)
    results = node.ask(ask(DESCRIBE_LOG_DIRS, topics=None)).results
    assert [one.error_code for one in results] == [ErrorCode.none, ErrorCode.kafka_storage_error]


def test_f33_a_topic_in_a_directory_that_can_only_be_read_is_deleted_all_the_same() -> None:
    node = two_directories(4)
    node.ask(create_topic("others", 2))
    node.settle()
    node.disks[1].faults.is_read_only = True

    node.ask(delete_topic("orders"))
    node.settle()

    assert node.stopped is None
    results = node.ask(ask(DESCRIBE_LOG_DIRS, topics=None)).results
    assert [one.error_code for one in results] == [ErrorCode.none, ErrorCode.kafka_storage_error]
    [well] = placed_in(node, 0, "others")
    answer = node.ask(produce_to("others", {well: batch(b"x")}))
    assert errors(answer) == [ErrorCode.none]


def test_a_flush_that_fails_since_its_topic_is_gone_harms_nobody() -> None:
    node = two_directories(4, flush_messages="1")
    node.ask(create_topic("others", 2))
    node.settle()
    [index, *_] = placed_in(node, 1)
    node.send(node.connect(), produce_to("orders", {index: batch(b"x")}))
    flush = node.flushes.popleft()
    node.ask(delete_topic("orders"))

    node.tell(Ran(flush.token, None, OSError("No such file or directory")))
    node.settle()

    assert node.stopped is None
    answer = node.ask(produce_to("others", {0: batch(b"x"), 1: batch(b"x")}))
    assert errors(answer) == [ErrorCode.none] * 2


def test_f33_the_controller_takes_the_lost_replicas_out_of_lead_and_in_sync_set() -> None:
    node = two_directories(4)
    broken = placed_in(node, 1)
    break_second(node)
    image = node.node.image
    assert image.brokers[1].directories == (directory_ids(node)[0],)
    for index, partition in image.topics["orders"].partitions.items():
        assert partition.has_leader == (index not in broken)
        assert partition.isr == (() if index in broken else (1,))


def test_f33_a_write_that_waits_for_a_flush_of_a_failing_disk_is_told() -> None:
    node = two_directories(4, flush_messages="1")
    [broken, *_] = placed_in(node, 1)
    conn, wish = node.connect(), produce_to("orders", {broken: batch(b"x")})
    node.send(conn, wish)
    node.fail_flush("Input/output error")
    node.pass_time(0)
    assert errors(node.answer(conn, wish)) == [ErrorCode.kafka_storage_error]
    assert node.stopped is None


@pytest.mark.parametrize("directories", [1, 2])
def test_f33_the_directory_of_the_metadata_log_stops_the_node(directories: int) -> None:
    disks = [formatted(seed=2), formatted(seed=3)][:directories]
    node = Bench(1, *disks, log_dirs=",".join("ab"[:directories]))
    node.ask(create_topic("orders", 2, flush_messages="1"))
    node.settle()
    [index, *_] = placed_in(node, 0)
    node.send(node.connect(), produce_to("orders", {index: batch(b"x")}))
    node.fail_flush("Input/output error")
    node.pass_time(0)
    assert node.stopped is not None
    assert node.stopped.status == 1
    assert "metadata log" in node.stopped.reason


def test_f33_a_metadata_log_that_cannot_be_written_stops_the_node() -> None:
    node = two_directories()
    node.disk.faults.is_read_only = True
    node.send(node.connect(), create_topic("more"))
    node.pass_time(10)
    assert node.stopped is not None
    assert "Read-only" in node.stopped.reason


def test_f33_a_broker_whose_controller_does_not_hear_of_the_failure_stops() -> None:
    node = two_directories(2, flush_messages="1")
    [index] = placed_in(node, 1)
    node.send(node.connect(), produce_to("orders", {index: batch(b"x")}))
    node.fail_flush("Input/output error")
    # The test completes no further fsync, so the controller cannot commit a decision.
    node.pass_time(node.settings.log_dir_failure_timeout_ms - 1)
    assert node.stopped is None
    node.pass_time(1)
    assert node.stopped is not None
    assert "could not be reported" in node.stopped.reason


def test_f33_an_fsync_that_hangs_takes_the_leaders_directory_out_of_use() -> None:
    node = two_directories(2, flush_messages="1")
    [index] = placed_in(node, 1)
    conn = node.connect()
    wish = produce_to("orders", {index: batch(b"x")}, timeout_ms=100_000)
    node.send(conn, wish)
    node.pass_time(node.settings.replica_lag_time_max_ms)
    assert node.answer(conn, wish) is None
    node.pass_time(node.settings.replica_lag_time_max_ms)
    assert errors(node.answer(conn, wish)) == [ErrorCode.kafka_storage_error]


def test_what_lay_in_a_failed_directory_is_not_made_anew_in_another() -> None:
    node = two_directories(4)
    broken = placed_in(node, 1)
    break_second(node)
    value = AlterableConfig(name="min.insync.replicas", config_operation=0, value="1")
    resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=(value,))
    node.ask(ask(44, resources=(resource,), validate_only=False))
    node.settle()
    assert not any(node.disks[0].exists(f"orders-{index}") for index in broken)
    assert write(node, broken[0]) == [ErrorCode.kafka_storage_error]


def test_a_topic_made_again_after_its_directory_failed_lies_in_one_that_is_well() -> None:
    node = two_directories(4)
    break_second(node)
    node.ask(delete_topic("orders"))
    node.ask(create_topic("orders", 4))
    node.settle()
    assert placed_in(node, 0) == [0, 1, 2, 3]
    assert write(node, 0, 1, 2, 3) == [ErrorCode.none] * 4


def test_a_directory_that_works_again_is_in_use_after_a_restart() -> None:
    node = two_directories(4)
    write(node, 0, 1, 2, 3)
    break_second(node)
    for disk in node.disks:
        disk.faults.capacity = None
        disk.kill()
    again = Bench(1, *node.disks, seed=9, log_dirs="one,two")
    again.settle()
    assert write(again, 0, 1, 2, 3) == [ErrorCode.none] * 4
    assert all(again.node.image.topics["orders"].partitions[i].leader == 1 for i in range(4))


def test_a_directory_that_cannot_be_read_at_the_start_is_out_of_use() -> None:
    node = two_directories(4)
    write(node, 0, 1, 2, 3)
    well, broken = placed_in(node, 0), placed_in(node, 1)
    for disk in node.disks:
        disk.kill()
    again = Bench(1, node.disk, None, seed=9, log_dirs="one,two")
    assert write(again, *well) == [ErrorCode.none] * 2
    assert write(again, *broken) == [ErrorCode.kafka_storage_error] * 2
    assert not any(node.disks[0].exists(f"orders-{index}") for index in broken)


def test_a_new_disk_in_the_place_of_an_old_one_is_taken_into_use() -> None:
    """Replicas start empty on the new disk, and lead only after an unclean election."""
    node = two_directories(4)
    write(node, 0, 1, 2, 3)
    broken = placed_in(node, 1)
    for disk in node.disks:
        disk.kill()
    again = Bench(1, node.disk, SimDisk(), seed=9, log_dirs="one,two")
    again.settle()
    assert len(again.node.image.brokers[1].directories) == 2
    assert directory_ids(again)[1] != directory_ids(node)[1]
    for index in broken:
        partition = again.node.image.topics["orders"].partitions[index]
        assert partition.directories[0] in directory_ids(again)
        assert not partition.has_leader
        assert partition.last_known_elr == ()
    node = again
    assert elect_uncleanly(node, "orders", broken) == [ErrorCode.none] * len(broken)
    node.settle()
    assert write(node, *broken) == [ErrorCode.none] * len(broken)


def test_a_replica_whose_directory_failed_before_it_was_named_is_reported_lost() -> None:
    """Otherwise the controller would believe that the replica is in another directory."""
    node = Bench(1, formatted(seed=2), formatted(seed=3), log_dirs="one,two")
    node.ask(create_topic("first"))
    node.settle()
    node.disks[1].faults.is_read_only = True
    node.ask(create_topic("second"))
    node.settle()
    assert node.stopped is None
    second = node.node.image.topics["second"].partitions[0]
    assert second.directories == (LOST_DIRECTORY,)
    assert not second.has_leader
