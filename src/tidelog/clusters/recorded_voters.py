"""The addresses of the controllers in a metadata log on disk (kraft.version 1, KIP-853)."""

from pathlib import Path

from tidelog.model.ids import NodeId
from tidelog.node.quorum.voter_records import membership_in
from tidelog.protocol.records.batch import check, iterate
from tidelog.protocol.records.records import read_records
from tidelog.replication.quorum.voters import DYNAMIC, VoterMembership


def recorded_voters(directory: Path) -> dict[NodeId, str]:
    """`host:port` of each voter by node id.

    Empty at kraft.version 0, where no voters are recorded.
    """
    known = VoterMembership()
    for path in [*sorted(directory.glob("*.checkpoint")), *sorted(directory.glob("*.log"))]:
        known = _read(memoryview(path.read_bytes()), known)
    if known.kraft_version < DYNAMIC or known.voters is None:
        return {}
    return {
        node: f"{host}:{port}"
        for node, voter in known.voters.voters.items()
        for _, host, port in voter.endpoints[:1]
    }


def _read(content: memoryview, known: VoterMembership) -> VoterMembership:
    """Apply the voter records of one file to `known`, up to the first damaged batch."""
    for position, header in iterate(content):
        if check(content, position) != header:
            break
        if header.is_control:
            batch = content[position : position + header.size]
            known = membership_in(read_records(batch), known)
    return known
