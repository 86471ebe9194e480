"""The report on the metadata quorum, exactly as kafka-metadata-quorum prints it."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from uuid import UUID

from kio.schema.describe_quorum.v2.response import (
    DescribeQuorumResponse,
    PartitionData,
    ReplicaState,
)

from tidelog.cli.output.columns import tabbed
from tidelog.model.ids import Millis

COLUMNS = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)


def status(cluster_id: str, answer: DescribeQuorumResponse) -> Iterator[str]:
    """The lines of `describe --status`."""
    quorum = partition_of(answer)
    leader = _leader(quorum)
    slowest = min(quorum.current_voters, key=lambda voter: voter.log_end_offset)
    facts = {
        "ClusterId": cluster_id,
        "LeaderId": quorum.leader_id,
        "LeaderEpoch": quorum.leader_epoch,
        "HighWatermark": quorum.high_watermark,
        "MaxFollowerLag": leader.log_end_offset - slowest.log_end_offset,
        "MaxFollowerLagTimeMs": _lag_ms(leader, slowest),
        "CurrentVoters": _replicas(answer, quorum.current_voters),
        "CurrentObservers": _replicas(answer, quorum.observers),
    }
    for name, value in facts.items():
        yield f"{name}:".ljust(24) + str(value)


def replication(answer: DescribeQuorumResponse, now: Millis | None) -> Iterator[str]:
    """The lines of `describe --replication`. If `now` is given, times are printed as ages."""
    quorum = partition_of(answer)
    leader = _leader(quorum)
    followers = [voter for voter in quorum.current_voters if voter is not leader]
    rows = [
        COLUMNS,
        _row(leader, leader, "Leader", now),
        *(_row(one, leader, "Follower", now) for one in followers),
        *(_row(one, leader, "Observer", now) for one in quorum.observers),
    ]
    yield from tabbed(rows)


def partition_of(answer: DescribeQuorumResponse) -> PartitionData:
    return answer.topics[0].partitions[0]


def _leader(quorum: PartitionData) -> ReplicaState:
    return next(one for one in quorum.current_voters if one.replica_id == quorum.leader_id)


def _lag_ms(leader: ReplicaState, slowest: ReplicaState) -> Millis:
    if slowest.replica_id == leader.replica_id:
        return 0
    if -1 in (leader.last_caught_up_timestamp, slowest.last_caught_up_timestamp):
        return -1
    return leader.last_caught_up_timestamp - slowest.last_caught_up_timestamp


def _row(
    replica: ReplicaState, leader: ReplicaState, status: str, now: Millis | None
) -> tuple[str, ...]:
    return (
        str(replica.replica_id),
        _uuid(replica.replica_directory_id),
        str(replica.log_end_offset),
        str(leader.log_end_offset - replica.log_end_offset),
        _time(replica.last_fetch_timestamp, now),
        _time(replica.last_caught_up_timestamp, now),
        status,
    )


def _time(timestamp: Millis, now: Millis | None) -> str:
    if now is None or timestamp == -1:
        return str(timestamp)
    return f"{max(0, now - timestamp)} ms ago"


def _replicas(answer: DescribeQuorumResponse, replicas: Sequence[ReplicaState]) -> str:
    endpoints = {
        node.node_id: [f'"{one.name}://{one.host}:{one.port}"' for one in node.listeners]
        for node in answer.nodes
    }
    return f"[{', '.join(_replica(one, endpoints.get(one.replica_id, [])) for one in replicas)}]"


def _replica(replica: ReplicaState, endpoints: list[str]) -> str:
    facts = [f'"id": {replica.replica_id}']
    if replica.replica_directory_id:
        facts.append(f'"directoryId": "{_uuid(replica.replica_directory_id)}"')
    if endpoints:
        facts.append(f'"endpoints": [{", ".join(endpoints)}]')
    return f"{{{', '.join(facts)}}}"


def _uuid(id_: UUID | None) -> str:
    return urlsafe_b64encode((id_ or UUID(int=0)).bytes).decode().rstrip("=")
