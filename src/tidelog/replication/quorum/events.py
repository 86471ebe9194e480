"""Events and effects of a quorum member: Kafka's own messages, without their encoding."""

from dataclasses import dataclass
from typing import TypeAlias

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, LeaderEpoch, NodeId, Offset
from tidelog.replication.quorum.state import LogEnd, QuorumState, ReplicaKey, VoterSet

# -- events: requests from peers (a ticket identifies the request to answer) -----------------------


@dataclass(slots=True)
class VoteRequested:
    ticket: int
    candidate: ReplicaKey
    epoch: LeaderEpoch
    log_end: LogEnd
    pre_vote: bool
    voter: ReplicaKey | None = None
    """The voter to which the request is addressed; any other voter answers INVALID_VOTER_KEY."""


@dataclass(slots=True)
class EpochBegun:
    """BeginQuorumEpoch: the sender leads this epoch."""

    ticket: int
    leader: NodeId
    epoch: LeaderEpoch
    voter: ReplicaKey | None = None


@dataclass(slots=True)
class EpochEnded:
    """EndQuorumEpoch: the sender has resigned and names its preferred successors in order."""

    ticket: int
    leader: NodeId
    epoch: LeaderEpoch
    successors: tuple[NodeId, ...]


@dataclass(slots=True)
class ReplicaFetched:
    """A replica in our epoch fetches from `offset`. Its log matches ours up to that offset."""

    replica: ReplicaKey
    offset: Offset


# -- events: responses from peers -----------------------------------------------------------------


@dataclass(slots=True)
class VoteAnswered:
    voter: NodeId
    epoch: LeaderEpoch
    leader: NodeId
    granted: bool
    pre_vote: bool


@dataclass(slots=True)
class EpochAcknowledged:
    """A response to our BeginQuorumEpoch or EndQuorumEpoch."""

    voter: NodeId
    epoch: LeaderEpoch
    leader: NodeId
    error: ErrorCode


@dataclass(slots=True)
class LeaderAnswered:
    """A response to our Fetch, with the epoch and leader that the peer knows."""

    source: NodeId
    epoch: LeaderEpoch
    leader: NodeId
    is_success: bool


@dataclass(slots=True)
class PeerRefused:
    """The peer's port refuses connections, so the peer's process is not running."""

    peer: NodeId


# -- events: our own log, voters, time ------------------------------------------------------------


@dataclass(slots=True)
class LogGrew:
    """Our log ends at `end`, and everything in it is fsynced."""

    end: LogEnd


@dataclass(slots=True)
class CaughtUp:
    """Our synced log reaches the leader's high watermark, and the high watermark covers a record of
    the leader's epoch."""


@dataclass(slots=True)
class VotersChanged:
    """A VotersRecord was appended, truncated or committed. The newest VotersRecord in the log is in
    effect."""

    voters: VoterSet
    offset: Offset = -1
    """The offset of the record; -1 when the voters come from the configuration."""
    is_retiring: bool = False
    """Whether the record removes this node as a voter and is not known to be committed."""


@dataclass(slots=True)
class ShutdownBegun:
    pass


@dataclass(slots=True)
class TimePassed:
    pass


QuorumEvent: TypeAlias = (
    VoteRequested
    | EpochBegun
    | EpochEnded
    | ReplicaFetched
    | VoteAnswered
    | EpochAcknowledged
    | LeaderAnswered
    | PeerRefused
    | LogGrew
    | CaughtUp
    | VotersChanged
    | ShutdownBegun
    | TimePassed
)

# -- effects, which the node carries out ----------------------------------------------------------


@dataclass(slots=True)
class SaveQuorumState:
    """Write and sync `quorum-state` before any later effect is carried out."""

    state: QuorumState


@dataclass(slots=True)
class AnswerPeer:
    """Answer a request with an error code and the leader that this node knows."""

    ticket: int
    error: ErrorCode
    epoch: LeaderEpoch
    leader: NodeId = NO_NODE
    granted: bool = False


@dataclass(slots=True)
class RequestVote:
    to: NodeId
    epoch: LeaderEpoch
    log_end: LogEnd
    pre_vote: bool


@dataclass(slots=True)
class BeginEpoch:
    to: NodeId
    epoch: LeaderEpoch


@dataclass(slots=True)
class EndEpoch:
    to: NodeId
    epoch: LeaderEpoch
    successors: tuple[NodeId, ...]


@dataclass(slots=True)
class FollowLeader:
    """From now on, fetch from this leader in this epoch."""

    leader: NodeId
    epoch: LeaderEpoch


@dataclass(slots=True)
class StopFollowing:
    """Stop fetching, because no leader is known."""


@dataclass(slots=True)
class DiscoverLeader:
    """Send a fetch to a node, because its response names the leader.

    A node id of -1 means the next address in controller.quorum.bootstrap.servers.
    """

    ask: NodeId
    epoch: LeaderEpoch


@dataclass(slots=True)
class TakeLeadership:
    """Append the LeaderChange record of this epoch. When it is committed, the controller starts."""

    epoch: LeaderEpoch
    voters: tuple[NodeId, ...]
    granted_by: tuple[NodeId, ...]


@dataclass(slots=True)
class LoseLeadership:
    epoch: LeaderEpoch


@dataclass(slots=True)
class Commit:
    """The high watermark of the metadata log has moved."""

    to: Offset


QuorumEffect: TypeAlias = (
    SaveQuorumState
    | AnswerPeer
    | RequestVote
    | BeginEpoch
    | EndEpoch
    | FollowLeader
    | StopFollowing
    | DiscoverLeader
    | TakeLeadership
    | LoseLeadership
    | Commit
)
