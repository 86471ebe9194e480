"""If files are missing after a clean shutdown, the next start reports it."""

import pytest
from tests.unit.log.support import NOW, SMALL, append, base_offsets, batch

from tidelog.log.checkpoints.partition_metadata import Belonging
from tidelog.log.directory import LogDirectory
from tidelog.model.ids import METADATA_TOPIC, TopicId, TopicPartition
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

A = TopicPartition("orders", 0)
ID = TopicId(int=77)


def stopped(partition: TopicPartition = A, *, count: int = 20) -> SimDisk:
    disk = SimDisk()
    directory = LogDirectory(disk, SeededDice(1))
    log = directory.open(partition, ID, SMALL, NOW)
    for _ in range(count):
        append(log, batch(size=100))
    directory.close({partition: count}, 9)
    return disk


@pytest.mark.parametrize(
    "name",
    [
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "replication-offset-checkpoint",
    ],
)
def test_f59_a_checkpoint_that_is_missing_after_a_clean_stop_is_reported(name: str) -> None:
    disk = stopped()
    disk.remove(name)
    directory = LogDirectory(disk, SeededDice(1))
    assert directory.notes == [f"{name} is missing"]
    assert base_offsets(directory.open(A, ID, SMALL, NOW)) == list(range(20))


def test_f59_a_new_directory_misses_nothing() -> None:
    assert LogDirectory(SimDisk(), SeededDice(1)).notes == []
    assert LogDirectory(stopped(), SeededDice(1)).notes == []


def test_f54_leader_epochs_that_are_missing_are_read_from_the_batches_and_reported() -> None:
    disk = stopped()
    disk.remove("orders-0/leader-epoch-checkpoint")
    log = LogDirectory(disk, SeededDice(1)).open(A, ID, SMALL, NOW)
    assert log.latest_epoch == 1
    assert any("leader epochs are missing" in note for note in log.recovery.notes)


def test_f55_a_missing_index_of_the_metadata_log_is_reported_unless_it_is_scanned() -> None:
    metadata = TopicPartition(METADATA_TOPIC, 0)
    disk = stopped(metadata, count=60)
    sealed, *_, scanned = [one for one in disk.files() if one.endswith(".index")]
    disk.remove(sealed)
    disk.remove(scanned)
    log = LogDirectory(disk, SeededDice(1)).open(metadata, ID, SMALL, NOW)
    assert log.recovery.notes == (f"{metadata}: segment 0: an index is missing",)
    log.close()
    assert disk.exists(scanned)


def test_f58_a_damaged_id_of_a_partition_without_records_is_reported() -> None:
    disk = stopped(count=0)
    disk.write_file("orders-0/partition.metadata", b"")
    directory = LogDirectory(disk, SeededDice(1))
    assert directory.belongs_to(A, ID) is Belonging.YES
    assert directory.notes == ["orders-0/partition.metadata was damaged"]
