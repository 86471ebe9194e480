"""The rules for granting a vote and for deciding an election."""

from collections.abc import Set

from tidelog.model.ids import NodeId
from tidelog.replication.quorum.events import VoteRequested
from tidelog.replication.quorum.roles import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from tidelog.replication.quorum.state import LogEnd, VoterSet


def grants(role: Role, request: VoteRequested, log_end: LogEnd) -> bool:
    """Whether a member with this role grants the vote. The role is in the request's epoch.

    A candidate with a less complete log gets no vote, because it could lack committed records.
    """
    if request.log_end < log_end:
        return False
    match role:
        case Leader():
            return False
        case Resigned():
            return request.pre_vote
        case Follower():
            # A follower refuses while its leader answers, so that the leader is not disrupted
            # (F36).
            return request.pre_vote and (not role.has_fetched or role.leader_is_gone)
        case Candidate():
            return request.pre_vote
        case Unattached() | Prospective():
            if request.pre_vote:
                return True
            return role.voted is None or role.voted == request.candidate


def has_won(granted: Set[NodeId], voters: VoterSet) -> bool:
    return len(granted & set(voters)) >= voters.majority


def can_no_longer_win(rejected: Set[NodeId], voters: VoterSet) -> bool:
    return len(rejected & set(voters)) > len(voters) - voters.majority
