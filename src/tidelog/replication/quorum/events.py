"""What a quorum member is told, and what it asks for. Kafka's own messages, without their bytes."""

from dataclasses import dataclass
from typing import TypeAlias

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, LeaderEpoch, NodeId, Offset
from tidelog.replication.quorum.state import LogEnd, QuorumState, ReplicaKey, VoterSet

# -- events: requests of peers (a ticket names the request that waits for its answer) -------------


@dataclass(slots=True)
class VoteRequested:
    ticket: int
    candidate: ReplicaKey
    epoch: LeaderEpoch
    log_end: LogEnd
    pre_vote: bool
    voter: ReplicaKey | None = None
    """Whom the candidate believes it asks; a mismatch is INVALID_VOTER_KEY."""


@dataclass(slots=True)
class EpochBegun:
    """BeginQuorumEpoch: the sender leads this epoch."""

    ticket: int
    leader: NodeId
    epoch: LeaderEpoch
    voter: ReplicaKey | None = None


@dataclass(slots=True)
class EpochEnded:
    """EndQuorumEpoch: the sender has resigned; the successors in the order that it prefers."""

    ticket: int
    leader: NodeId
    epoch: LeaderEpoch
    successors: tuple[NodeId, ...]


@dataclass(slots=True)
class ReplicaFetched:
    """A replica fetches from `offset` in our epoch, its log agrees with ours up to there."""

    replica: ReplicaKey
    offset: Offset


# -- events: answers of peers ---------------------------------------------------------------------


@dataclass(slots=True)
class VoteAnswered:
    voter: NodeId
    epoch: LeaderEpoch
    leader: NodeId
    granted: bool
    pre_vote: bool


@dataclass(slots=True)
class EpochAcknowledged:
    """An answer to our BeginQuorumEpoch or EndQuorumEpoch."""

    voter: NodeId
    epoch: LeaderEpoch
    leader: NodeId
    error: ErrorCode


@dataclass(slots=True)
class LeaderAnswered:
    """An answer to our Fetch: who leads in which epoch, as far as the other side knows."""

    source: NodeId
    epoch: LeaderEpoch
    leader: NodeId
    is_success: bool


@dataclass(slots=True)
class PeerRefused:
    """The peer's port refuses connections: no process is there."""

    peer: NodeId


# -- events: our own log, voters, time ------------------------------------------------------------


@dataclass(slots=True)
class LogGrew:
    """Our log ends here, and everything in it is synced."""

    end: LogEnd


@dataclass(slots=True)
class CaughtUp:
    """Our synced log reaches the leader's high watermark, which covers a record of its epoch."""


@dataclass(slots=True)
class VotersChanged:
    """A VotersRecord was appended, truncated away or committed: it counts once it is in the log."""

    voters: VoterSet
    offset: Offset = -1
    """Where the record stands; -1 when the configuration names them."""
    is_retiring: bool = False
    """This node voted before the record, votes no longer, and does not know it committed."""


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

# -- effects --------------------------------------------------------------------------------------


@dataclass(slots=True)
class SaveQuorumState:
    """Write and sync `quorum-state` before any later effect is carried out."""

    state: QuorumState


@dataclass(slots=True)
class AnswerPeer:
    """Answer a request: the error, and who leads as far as we know."""

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
    """Fetch from this leader in this epoch from now on."""

    leader: NodeId
    epoch: LeaderEpoch


@dataclass(slots=True)
class StopFollowing:
    """Fetch from nobody: there is no leader to fetch from."""


@dataclass(slots=True)
class DiscoverLeader:
    """Ask who leads, with a fetch that will be refused or served.

    -1 stands for the next of controller.quorum.bootstrap.servers.
    """

    ask: NodeId
    epoch: LeaderEpoch


@dataclass(slots=True)
class TakeLeadership:
    """Append the LeaderChange record of this epoch; once committed, the controller may begin."""

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
