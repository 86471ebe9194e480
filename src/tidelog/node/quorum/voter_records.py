"""The control records that define the voters: KRaftVersionRecord and VotersRecord (KIP-853)."""

from collections.abc import Iterable
from io import BytesIO
from struct import error
from typing import Any

from kio.schema.k_raft_version_record.v0.data import KRaftVersionRecord
from kio.schema.voters_record.v0 import data
from kio.serial import entity_reader, entity_writer
from kio.serial.errors import SerialError

from tidelog.model.ids import Millis, Offset
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.records.records import ControlType, Record, control_key, control_type
from tidelog.replication.quorum.state import ReplicaKey, Voter, VoterSet
from tidelog.replication.quorum.voters import DYNAMIC, VoterHistory, VoterMembership


def control_record(kind: ControlType, value: Any, now: Millis) -> Record:
    out = BytesIO()
    entity_writer(type(value))(out, value)
    return Record(control_key(kind), out.getvalue(), now)


def voters_record(voters: VoterSet, now: Millis) -> Record:
    value = data.VotersRecord(version=0, voters=tuple(_encoded(voters)))
    return control_record(ControlType.KRAFT_VOTERS, value, now)


def membership_records(known: VoterMembership, now: Millis) -> list[Record]:
    """The voter records of a log or a snapshot; none if the configuration defines the voters."""
    if known.kraft_version < DYNAMIC or known.voters is None:
        return []
    level = KRaftVersionRecord(version=0, k_raft_version=known.kraft_version)
    return [
        control_record(ControlType.KRAFT_VERSION, level, now),
        voters_record(known.voters, now),
    ]


def membership_in(records: Iterable[Record], known: VoterMembership) -> VoterMembership:
    """The voter membership `known`, updated with these control records."""
    for record in records:
        level, voters = _read(record)
        if level is not None:
            known = known._replace(kraft_version=level)
        if voters is not None:
            known = known._replace(voters=voters)
    return known


def follow(history: VoterHistory, base_offset: Offset, records: Iterable[Record]) -> None:
    """Add the control records of one batch of the log to the history."""
    for offset, record in enumerate(records, base_offset):
        level, voters = _read(record)
        if level is not None:
            history.level_appended(offset, level)
        if voters is not None:
            history.voters_appended(offset, voters)


def _read(record: Record) -> tuple[int | None, VoterSet | None]:
    kind = control_type(record)
    if record.value is None:
        return None, None
    try:
        if kind is ControlType.KRAFT_VERSION:
            level, _ = entity_reader(KRaftVersionRecord)(bytes(record.value), 0)
            return level.k_raft_version, None
        if kind is ControlType.KRAFT_VOTERS:
            value, _ = entity_reader(data.VotersRecord)(bytes(record.value), 0)
            return None, VoterSet({one.voter_id: _decoded(one) for one in value.voters})
    except (SerialError, ValueError, IndexError, error) as wrong:
        raise MalformedMessage(f"a control record of the voters: {wrong}") from None
    return None, None


def _encoded(voters: VoterSet) -> Iterable[data.Voter]:
    for id_ in voters:
        voter = voters.voters[id_]
        yield data.Voter(
            voter_id=id_,
            voter_directory_id=voter.key.directory,
            endpoints=tuple(
                data.Endpoint(name=name, host=host, port=port)
                for name, host, port in voter.endpoints
            ),
            k_raft_version_feature=data.KRaftVersionFeature(
                min_supported_version=voter.min_version, max_supported_version=voter.max_version
            ),
        )


def _decoded(voter: data.Voter) -> Voter:
    return Voter(
        ReplicaKey(voter.voter_id, voter.voter_directory_id),
        tuple((one.name, one.host, one.port) for one in voter.endpoints),
        voter.k_raft_version_feature.min_supported_version,
        voter.k_raft_version_feature.max_supported_version,
    )
