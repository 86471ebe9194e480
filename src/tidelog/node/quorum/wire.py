"""Converts between Kafka's quorum messages and the quorum machine's events and effects."""

from collections.abc import Sequence
from typing import Any

from kio.schema.begin_quorum_epoch.v1 import request as begin_request
from kio.schema.begin_quorum_epoch.v1 import response as begin_response
from kio.schema.end_quorum_epoch.v1 import request as end_request
from kio.schema.end_quorum_epoch.v1 import response as end_response
from kio.schema.fetch_snapshot.v1 import request as snapshot_request
from kio.schema.vote.v2 import request as vote_request
from kio.schema.vote.v2 import response as vote_response

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import METADATA_TOPIC, NodeId
from tidelog.protocol.fetch import SnapshotId
from tidelog.replication.quorum.events import (
    AnswerPeer,
    BeginEpoch,
    EndEpoch,
    EpochAcknowledged,
    EpochBegun,
    EpochEnded,
    RequestVote,
    VoteAnswered,
    VoteRequested,
)
from tidelog.replication.quorum.state import LogEnd, ReplicaKey, VoterSet

# -- outgoing requests ---------------------------------------------------------------------

HIGHEST_EPOCH = 1 << 30
"""The highest epoch that a peer may send.

A higher epoch would leave too few epochs for elections.
"""


def vote(effect: RequestVote, me: ReplicaKey, voters: VoterSet, cluster_id: str) -> Any:
    voter = voters.voters[effect.to].key
    return vote_request.VoteRequest(
        cluster_id=cluster_id,
        voter_id=effect.to,
        topics=(
            vote_request.TopicData(
                topic_name=METADATA_TOPIC,
                partitions=(
                    vote_request.PartitionData(
                        partition_index=0,
                        replica_epoch=effect.epoch,
                        replica_id=me.id,
                        replica_directory_id=me.directory,
                        voter_directory_id=voter.directory,
                        last_offset_epoch=effect.log_end.epoch,
                        last_offset=effect.log_end.offset,
                        pre_vote=effect.pre_vote,
                    ),
                ),
            ),
        ),
    )


def begin_epoch(
    effect: BeginEpoch,
    me: NodeId,
    voters: VoterSet,
    my_endpoints: Sequence[tuple[str, str, int]],
    cluster_id: str,
) -> Any:
    return begin_request.BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=effect.to,
        topics=(
            begin_request.TopicData(
                topic_name=METADATA_TOPIC,
                partitions=(
                    begin_request.PartitionData(
                        partition_index=0,
                        voter_directory_id=voters.voters[effect.to].key.directory,
                        leader_id=me,
                        leader_epoch=effect.epoch,
                    ),
                ),
            ),
        ),
        leader_endpoints=tuple(
            begin_request.LeaderEndpoint(name=name, host=host, port=port)
            for name, host, port in my_endpoints
        ),
    )


def end_epoch(effect: EndEpoch, me: NodeId, voters: VoterSet, cluster_id: str) -> Any:
    return end_request.EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=(
            end_request.TopicData(
                topic_name=METADATA_TOPIC,
                partitions=(
                    end_request.PartitionData(
                        partition_index=0,
                        leader_id=me,
                        leader_epoch=effect.epoch,
                        preferred_candidates=tuple(
                            end_request.ReplicaInfo(
                                candidate_id=successor,
                                candidate_directory_id=voters.voters[successor].key.directory,
                            )
                            for successor in effect.successors
                            if successor in voters.voters
                        ),
                    ),
                ),
            ),
        ),
        leader_endpoints=(),
    )


def fetch_snapshot(
    me: ReplicaKey, cluster_id: str, epoch: int, snapshot: SnapshotId, position: int, most: int
) -> Any:
    partition = snapshot_request.PartitionSnapshot(
        partition=0,
        current_leader_epoch=epoch,
        snapshot_id=snapshot_request.SnapshotId(
            end_offset=snapshot.end_offset, epoch=snapshot.epoch
        ),
        position=position,
        replica_directory_id=me.directory,
    )
    topic = snapshot_request.TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,))
    return snapshot_request.FetchSnapshotRequest(
        cluster_id=cluster_id, replica_id=me.id, max_bytes=most, topics=(topic,)
    )


def snapshot_part(response: Any) -> tuple[bytes, int] | None:
    """The bytes and the size of the whole file in a FetchSnapshot response; None for an error."""
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code is ErrorCode.none:
                return bytes(partition.unaligned_records), partition.size
    return None


# -- incoming requests --------------------------------------------------------------------


def _only_partition(message: Any) -> Any | None:
    """The data for partition 0 of the metadata topic, which is the only valid partition."""
    for topic in message.topics:
        if topic.topic_name == METADATA_TOPIC:
            for partition in topic.partitions:
                if partition.partition_index == 0:
                    return partition
    return None


def event_of(message: Any, ticket: int) -> VoteRequested | EpochBegun | EpochEnded | None:
    """The event for the machine; None if the request is invalid or not about the metadata log."""
    data = _only_partition(message)
    if data is None or _epoch_of(message, data) > HIGHEST_EPOCH:
        return None
    match message:
        case vote_request.VoteRequest():
            return VoteRequested(
                ticket,
                ReplicaKey(data.replica_id, data.replica_directory_id),
                data.replica_epoch,
                LogEnd(data.last_offset_epoch, data.last_offset),
                data.pre_vote,
                _named_voter(message.voter_id, data.voter_directory_id),
            )
        case begin_request.BeginQuorumEpochRequest():
            named = _named_voter(message.voter_id, data.voter_directory_id)
            return EpochBegun(ticket, data.leader_id, data.leader_epoch, named)
        case end_request.EndQuorumEpochRequest():
            successors = tuple(info.candidate_id for info in data.preferred_candidates)
            return EpochEnded(ticket, data.leader_id, data.leader_epoch, successors)
    raise AssertionError(f"not a quorum request: {type(message)}")


def _epoch_of(message: Any, data: Any) -> int:
    is_vote = isinstance(message, vote_request.VoteRequest)
    return int(data.replica_epoch if is_vote else data.leader_epoch)


def _named_voter(voter: NodeId, directory: Any) -> ReplicaKey | None:
    return None if voter < 0 else ReplicaKey(voter, directory)


# -- outgoing responses ---------------------------------------------------------------------


def response_of(message: Any, answer: AnswerPeer) -> Any:
    """The response message that belongs to a request message."""
    match message:
        case vote_request.VoteRequest():
            whole = vote_response.VoteResponse
            return _response(vote_response, whole, answer, vote_granted=answer.granted)
        case begin_request.BeginQuorumEpochRequest():
            return _response(begin_response, begin_response.BeginQuorumEpochResponse, answer)
        case end_request.EndQuorumEpochRequest():
            return _response(end_response, end_response.EndQuorumEpochResponse, answer)
    raise AssertionError(f"not a quorum request: {type(message)}")


def _response(shapes: Any, whole: Any, answer: AnswerPeer, **more: bool) -> Any:
    partition = shapes.PartitionData(
        partition_index=0,
        error_code=answer.error,
        leader_id=answer.leader,
        leader_epoch=answer.epoch,
        **more,
    )
    topic = shapes.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return whole(error_code=ErrorCode.none, topics=(topic,))


def refusal_of(message: Any, error: ErrorCode) -> Any:
    """The error response to a request that is invalid or names another cluster."""
    match message:
        case vote_request.VoteRequest():
            return vote_response.VoteResponse(error_code=error, topics=())
        case begin_request.BeginQuorumEpochRequest():
            return begin_response.BeginQuorumEpochResponse(error_code=error, topics=())
        case end_request.EndQuorumEpochRequest():
            return end_response.EndQuorumEpochResponse(error_code=error, topics=())
    raise AssertionError(f"not a quorum request: {type(message)}")


# -- incoming responses --------------------------------------------------------------------


def vote_answered(response: Any, voter: NodeId, pre_vote: bool) -> VoteAnswered | None:
    data = _only_partition(response)
    if data is None or data.error_code not in (ErrorCode.none, ErrorCode.fenced_leader_epoch):
        return None
    return VoteAnswered(voter, data.leader_epoch, data.leader_id, data.vote_granted, pre_vote)


def epoch_acknowledged(response: Any, voter: NodeId) -> EpochAcknowledged | None:
    data = _only_partition(response)
    if data is None:
        return None
    return EpochAcknowledged(voter, data.leader_epoch, data.leader_id, data.error_code)
