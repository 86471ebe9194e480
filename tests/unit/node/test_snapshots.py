"""Snapshots of the metadata log: the image and who votes, whole or not at all."""

from uuid import UUID

from tidelog.controller.image import ClusterImage
from tidelog.node.snapshots import decode, encode
from tidelog.protocol.batch import iterate
from tidelog.protocol.fetch import SnapshotId
from tidelog.protocol.records import ControlType, control_type, read_records
from tidelog.replication.quorum.state import ReplicaKey, Voter, VoterSet
from tidelog.replication.quorum.voters import DYNAMIC, Membership

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
    for known in (Membership(), Membership(DYNAMIC, VOTERS)):
        found = decode(AT, encode(IMAGE, known, 1_000), CLUSTER)
        assert found is not None
        assert (found.image, found.membership) == (IMAGE, known)


def test_who_votes_stands_in_one_batch_with_the_header() -> None:
    content = memoryview(encode(IMAGE, Membership(DYNAMIC, VOTERS), 1_000))
    position, header = next(iterate(content))
    first = read_records(content[position : position + header.size])
    assert [control_type(record) for record in first] == [
        ControlType.SNAPSHOT_HEADER,
        ControlType.KRAFT_VERSION,
        ControlType.KRAFT_VOTERS,
    ]


def test_a_torn_or_damaged_snapshot_is_none() -> None:
    content = encode(IMAGE, Membership(DYNAMIC, VOTERS), 1_000)
    assert decode(AT, content[:-1], CLUSTER) is None
    damaged = bytearray(content)
    damaged[100] ^= 1
    assert decode(AT, bytes(damaged), CLUSTER) is None
