"""F07: a replica that moves to another log directory keeps all of its state."""

from uuid import UUID

import pytest
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsTopic
from kio.schema.offset_for_leader_epoch.v4.request import (
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.sim.messages import ask, batch, create_topic, fetch_from, produce_to, records_in
from tests.unit.node.bench import Bench, formatted

from tidelog.log.checkpoints.checkpoints import read_meta_properties
from tidelog.model.errors import ErrorCode

PATHS = ["one", "two"]
DELETE_RECORDS, OFFSET_FOR_LEADER_EPOCH, DESCRIBE_LOG_DIRS = 21, 23, 35


def two_directories() -> Bench:
    node = Bench(1, formatted(seed=2), formatted(seed=3), log_dirs=",".join(PATHS))
    node.ask(create_topic("orders", 1, file_delete_delay_ms="0"))
    node.settle()
    return node


def place(node: Bench) -> int:
    """The index of the partition's directory, according to the image."""
    ids: list[UUID] = [read_meta_properties(disk).directory_id for disk in node.disks]
    return ids.index(node.node.image.topics["orders"].partitions[0].directories[0])


def move(node: Bench, to: str, index: int = 0) -> ErrorCode:
    topic = AlterReplicaLogDirTopic(name="orders", partitions=(index,))
    directory = AlterReplicaLogDir(path=to, topics=(topic,))
    answer = node.ask(AlterReplicaLogDirsRequest(dirs=(directory,)))
    [result] = answer.results
    return result.partitions[0].error_code


def write(node: Bench, *values: bytes) -> None:
    for value in values:
        [(_, [produced])] = node.ask(produce_to("orders", batch(value))).topics
        assert produced.error is ErrorCode.none


def values(node: Bench, offset: int = 0) -> list[bytes | None]:
    [(_, [fetched])] = node.ask(fetch_from("orders", offset)).topics
    assert fetched.error is ErrorCode.none
    return [record.value for record in records_in(fetched.records)]


def epoch_end(node: Bench, epoch: int) -> tuple[int, int]:
    partition = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=epoch)
    topic = OffsetForLeaderTopic(topic="orders", partitions=(partition,))
    found = node.ask(ask(OFFSET_FOR_LEADER_EPOCH, topics=(topic,))).topics[0].partitions[0]
    return found.leader_epoch, found.end_offset


def delete_before(node: Bench, offset: int) -> None:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    topic = DeleteRecordsTopic(name="orders", partitions=(partition,))
    node.ask(ask(DELETE_RECORDS, topics=(topic,)))


def test_f07_a_replica_moves_with_its_records_and_is_written_on() -> None:
    node = two_directories()
    write(node, b"0", b"1", b"2")
    here = place(node)
    there = 1 - here
    assert move(node, PATHS[there]) is ErrorCode.none
    node.settle()
    assert place(node) == there
    write(node, b"3")
    assert values(node) == [b"0", b"1", b"2", b"3"]
    assert node.disks[there].exists("orders-0")
    node.pass_time(3_000)
    assert not [name for name in node.disks[here].list("") if name.startswith("orders")]
    assert move(node, PATHS[here]) is ErrorCode.none
    node.settle()
    assert values(node, 2) == [b"2", b"3"]


def test_f07_an_idle_replica_without_records_keeps_its_epochs() -> None:
    """All of its records are deleted, so only the epoch file has the epoch of the log end."""
    node = two_directories()
    write(node, b"0", b"1")
    delete_before(node, 2)
    before = epoch_end(node, 0)
    assert before == (0, 2)
    there = 1 - place(node)
    assert move(node, PATHS[there]) is ErrorCode.none
    node.settle()
    assert place(node) == there
    assert epoch_end(node, 0) == before
    write(node, b"2")
    assert values(node, 2) == [b"2"]


def test_f07_a_moved_replica_is_found_where_it_went_after_a_restart() -> None:
    node = two_directories()
    write(node, b"0", b"1")
    there = 1 - place(node)
    move(node, PATHS[there])
    node.settle()
    write(node, b"2")
    for disk in node.disks:
        disk.kill()
    again = Bench(1, *node.disks, seed=9, log_dirs=",".join(PATHS))
    again.settle()
    assert values(again) == [b"0", b"1", b"2"]
    assert place(again) == there


def test_f07_a_move_that_a_crash_cuts_off_leaves_the_replica_where_it_was() -> None:
    node = two_directories()
    write(node, b"0", b"1")
    here = place(node)
    conn = node.connect()
    topic = AlterReplicaLogDirTopic(name="orders", partitions=(0,))
    directory = AlterReplicaLogDir(path=PATHS[1 - here], topics=(topic,))
    node.send(conn, AlterReplicaLogDirsRequest(dirs=(directory,)))
    node.pass_time(5)  # the records are copied, but not yet synced
    for disk in node.disks:
        disk.kill()
    again = Bench(1, *node.disks, seed=9, log_dirs=",".join(PATHS))
    again.settle()
    assert values(again) == [b"0", b"1"]
    assert place(again) == here
    again.pass_time(3_000)
    assert not [name for name in again.disks[1 - here].list("") if "future" in name]


def test_a_replica_that_moves_is_described_in_both_directories() -> None:
    node = two_directories()
    write(node, b"0")
    here = place(node)
    conn = node.connect()
    topic = AlterReplicaLogDirTopic(name="orders", partitions=(0,))
    directory = AlterReplicaLogDir(path=PATHS[1 - here], topics=(topic,))
    node.send(conn, AlterReplicaLogDirsRequest(dirs=(directory,)))
    described = ask(DESCRIBE_LOG_DIRS, topics=None)
    node.send(conn, described)
    node.answer(conn, AlterReplicaLogDirsRequest(dirs=()))
    results = node.answer(conn, described).results
    future = [topic.partitions[0].is_future_key for one in results for topic in one.topics]
    assert sorted(future) == [False, True]


@pytest.mark.parametrize(
    ("to", "index", "error"),
    [
        ("nowhere", 0, ErrorCode.log_dir_not_found),
        ("two", 7, ErrorCode.replica_not_available),
    ],
)
def test_what_cannot_move_is_told_so(to: str, index: int, error: ErrorCode) -> None:
    assert move(two_directories(), to, index) is error


def test_f07_a_directory_that_fails_ends_the_move_to_it() -> None:
    node = two_directories()
    write(node, b"0")
    if place(node) == 1:
        move(node, "one")
        node.settle()
    node.disks[1].faults.is_read_only = True
    assert move(node, "two") is ErrorCode.none
    node.settle()
    assert node.stopped is None
    assert values(node) == [b"0"]
    assert move(node, "two") is ErrorCode.kafka_storage_error


def test_a_replica_that_cannot_be_read_takes_its_own_directory_out_of_use() -> None:
    """The directory to which the replica should move stays in use."""
    node = two_directories()
    write(node, b"a", b"b")
    here = place(node)
    node.disks[here].faults.fails_reads.add("orders-0/00000000000000000000.log")
    assert move(node, PATHS[1 - here]) is ErrorCode.none
    node.settle()

    described = node.ask(ask(DESCRIBE_LOG_DIRS, topics=None))
    errors = {one.log_dir: one.error_code for one in described.results}
    assert errors[PATHS[1 - here]] is ErrorCode.none
    if here != 0:  # the first directory has the metadata log, without which a node stops
        assert errors[PATHS[here]] is ErrorCode.kafka_storage_error


def test_what_cannot_be_read_at_the_start_is_that_directorys_fault_alone() -> None:
    node = two_directories()
    write(node, b"a")
    if place(node) == 0:
        move(node, PATHS[1])
        node.settle()
    for disk in node.disks:
        disk.kill()
    node.disks[1].faults.fails_reads.add("orders-0/partition.metadata")

    again = Bench(1, *node.disks, seed=9, log_dirs=",".join(PATHS))

    assert again.stopped is None
    described = again.ask(ask(DESCRIBE_LOG_DIRS, topics=None))
    assert [one.error_code for one in described.results] == [
        ErrorCode.none,
        ErrorCode.kafka_storage_error,
    ]
