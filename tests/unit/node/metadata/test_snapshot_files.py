"""A metadata snapshot has the image and the voters. A damaged or incomplete one is not used."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sim.messages import create_topic
from tests.unit.node.bench import Bench

from tidelog.controller.image.image import ClusterImage
from tidelog.model.events import Ran
from tidelog.node.metadata.metadata_log import UnusableMetadata
from tidelog.node.metadata.metadata_mark import MetadataMark
from tidelog.node.metadata.snapshot_files import (
    DIRECTORY,
    Snapshots,
    WriteSnapshot,
    decode,
    encode,
    path_of,
)
from tidelog.protocol.fetch import SnapshotId
from tidelog.protocol.records.batch import iterate
from tidelog.protocol.records.records import ControlType, control_type, read_records
from tidelog.replication.quorum.state import ReplicaKey, Voter, VoterSet
from tidelog.replication.quorum.voters import DYNAMIC, VoterMembership
from tidelog.sim.machines.disk import SimDisk

CLUSTER = "4L6g3nShT-eMCtK--X86sw"
AT = SnapshotId(8, 3)
IMAGE = ClusterImage(cluster_id=CLUSTER, features={"metadata.version": 27}, offset=7, epoch=3)
VOTERS = VoterSet(
    {
        id_: Voter(ReplicaKey(id_, UUID(int=id_)), (("CONTROLLER", f"host{id_}", 9093),), 0, 1)
        for id_ in (1, 2)
    }
)


def test_what_is_written_is_read_again() -> None:
    for known in (VoterMembership(), VoterMembership(DYNAMIC, VOTERS)):
        found = decode(AT, encode(IMAGE, known, 1_000), CLUSTER)
        assert found is not None
        assert (found.image, found.membership) == (IMAGE, known)


def test_who_votes_stands_in_one_batch_with_the_header() -> None:
    content = memoryview(encode(IMAGE, VoterMembership(DYNAMIC, VOTERS), 1_000))
    position, header = next(iterate(content))
    first = read_records(content[position : position + header.size])
    assert [control_type(record) for record in first] == [
        ControlType.SNAPSHOT_HEADER,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]


def test_a_torn_or_damaged_snapshot_is_none() -> None:
    content = encode(IMAGE, VoterMembership(DYNAMIC, VOTERS), 1_000)
    assert decode(AT, content[:-1], CLUSTER) is None
    damaged = bytearray(content)
    damaged[100] ^= 1
    assert decode(AT, bytes(damaged), CLUSTER) is None


def test_f47_a_damaged_snapshot_that_nothing_can_replace_is_told_in_a_sentence() -> None:
    node = Bench(
        1,
        metadata_log_max_record_bytes_between_snapshots="1500",
        metadata_max_retention_bytes="3000",
    )
    for number in range(40):
        node.ask(create_topic(f"t{number}"))
    snapshots = sorted(name for name in node.disk.list(DIRECTORY) if name.endswith(".checkpoint"))
    assert len(snapshots) == 2
    newest = f"{DIRECTORY}/{snapshots[-1]}"
    node.disk.kill()
    node.disk.flip_bit(newest, 8 * 100)

    for seed in (8, 9):  # every start reports the damage and changes nothing
        with pytest.raises(UnusableMetadata, match="restore the directory from a copy"):
            Bench(1, node.disk, seed=seed)
    assert node.disk.exists(newest)


@given(st.data())
def test_f57_no_changed_bit_of_a_snapshot_is_applied(data: st.DataObject) -> None:
    content = bytearray(encode(IMAGE, VoterMembership(DYNAMIC, VOTERS), 1_000))
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    assert decode(AT, bytes(content), CLUSTER) is None


@pytest.mark.parametrize("extra", [b"\0", b"x" * 100])
def test_f57_a_snapshot_with_something_behind_its_footer_is_not_applied(extra: bytes) -> None:
    content = encode(IMAGE, VoterMembership(), 1_000)
    assert decode(AT, content + extra, CLUSTER) is None
    assert decode(AT, content + content, CLUSTER) is None


def test_f57_a_snapshot_under_the_name_of_another_is_not_applied() -> None:
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    snapshots = Snapshots(disk, CLUSTER, MetadataMark(disk))
    older = ClusterImage(cluster_id=CLUSTER, offset=3, epoch=3)
    ids = (SnapshotId(4, 3), AT)
    for id_, image in zip(ids, (older, IMAGE), strict=True):
        snapshots.keep(id_, encode(image, VoterMembership(), 1_000))
    paths = [path_of(id_) for id_ in ids]
    first, second = (disk.read_file(path) for path in paths)
    disk.write_file(paths[0], second)
    disk.write_file(paths[1], first)

    found = Snapshots(disk, CLUSTER, MetadataMark(disk)).load_newest()
    assert found.snapshot is None
    assert len(found.damaged) == 2


@pytest.mark.parametrize("position", [-1, -(2**40), 10**9])
def test_nobody_reads_outside_of_a_snapshot(position: int) -> None:
    disk = SimDisk()
    disk.make_directory(DIRECTORY)
    snapshots = Snapshots(disk, "cluster", MetadataMark(disk))
    kept = snapshots.keep(SnapshotId(5, 1), b"content")
    assert snapshots.read(kept, position, 100) == (b"", 7)
    assert snapshots.read(kept, 0, 100) == (b"content", 7)


def test_a_snapshot_is_written_in_a_job_and_one_that_fails_ends_the_node() -> None:
    node = Bench(1, metadata_log_max_record_bytes_between_snapshots="500")
    conn = node.connect()
    for number in range(10):
        node.send(conn, create_topic(f"t{number}"))
        node.flush()
    [run] = node.jobs
    assert isinstance(run.job, WriteSnapshot)
    node.send(conn, create_topic("another"))
    node.flush()
    assert list(node.jobs) == [run], "one at a time"
    node.jobs.clear()
    node.tell(Ran(run.token, None, OSError("No space left on device")))
    assert node.stopped is not None
    assert "No space left" in node.stopped.reason
