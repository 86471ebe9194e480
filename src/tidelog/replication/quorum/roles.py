"""The roles of a quorum member and the transitions between them.

Invariant: every role belongs to one epoch, and a member never goes back to an earlier epoch. Within
one epoch only the transitions in `TRANSITIONS` are possible. The state machine asserts these rules
at each change.
"""

from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from tidelog.model.ids import NO_NODE, LeaderEpoch, Millis, NodeId, Offset
from tidelog.replication.quorum.state import ReplicaKey


@dataclass(slots=True)
class Unattached:
    """A member that knows the epoch but not its leader."""

    epoch: LeaderEpoch
    election_deadline: Millis
    voted: ReplicaKey | None = None
    next_discovery: Millis = 0
    """When to ask another node for the leader."""


@dataclass(slots=True)
class Prospective:
    """A member that requests pre-votes, to learn whether it could win a new epoch (KIP-996)."""

    epoch: LeaderEpoch
    election_deadline: Millis
    granted: set[NodeId]
    rejected: set[NodeId] = field(default_factory=set)
    voted: ReplicaKey | None = None
    last_leader: NodeId = NO_NODE
    leader_is_gone: bool = False
    is_backing_off: bool = False
    """Whether this round of pre-votes is lost. The next round begins at the deadline."""
    rounds: int = 0


@dataclass(slots=True)
class Candidate:
    """A member that has opened a new epoch, has voted for itself and requests the other votes."""

    epoch: LeaderEpoch
    election_deadline: Millis
    granted: set[NodeId]
    rejected: set[NodeId] = field(default_factory=set)
    is_backing_off: bool = False
    rounds: int = 0


@dataclass(slots=True)
class Follower:
    """A member that knows the leader of the epoch and fetches from it."""

    epoch: LeaderEpoch
    leader: NodeId
    fetch_deadline: Millis
    voted: ReplicaKey | None = None
    has_fetched: bool = False
    """Whether the leader has answered in this epoch. If so, pre-votes are refused (F36)."""
    leader_is_gone: bool = False
    """Whether the leader has resigned, or its port refuses connections because it is not running.
    """


@dataclass(slots=True)
class ReplicaProgress:
    """The progress of one replica, as the leader knows it."""

    end: Offset = -1
    last_fetch: Millis = -1
    last_caught_up: Millis = -1
    last_fetch_leader_end: Offset = -1


@dataclass(slots=True)
class Leader:
    epoch: LeaderEpoch
    epoch_start: Offset
    """The offset of the leader's LeaderChange record, which is the first record of this epoch."""
    progress: dict[ReplicaKey, ReplicaProgress]
    unacknowledged: set[NodeId]
    """Voters that have not acknowledged the epoch yet."""
    announce_deadline: Millis
    check_quorum_deadline: Millis
    high_watermark: Offset = -1
    directories: dict[NodeId, UUID] = field(default_factory=dict)
    """The directory id in each voter's fetches in this epoch. The VotersRecord may lack this id."""


@dataclass(slots=True)
class Resigned:
    """A former leader of this epoch, which asks the other voters to elect a new leader."""

    epoch: LeaderEpoch
    election_deadline: Millis
    unacknowledged: set[NodeId]
    announce_deadline: Millis
    successors: tuple[NodeId, ...] = ()


Role: TypeAlias = Unattached | Prospective | Candidate | Follower | Leader | Resigned

TRANSITIONS: dict[type[Role], tuple[type[Role], ...]] = {
    Unattached: (Unattached, Prospective, Candidate, Follower),
    Prospective: (Unattached, Prospective, Candidate, Follower),
    Candidate: (Prospective, Follower, Leader),
    Follower: (Unattached, Prospective),
    Leader: (Resigned,),
    Resigned: (),
}
"""Transitions within an epoch. A member enters a higher epoch as Unattached, Candidate or Follower.

A Candidate that lost becomes Prospective in the same epoch. A Follower becomes Prospective when its
leader stops answering. It becomes Unattached only with a higher epoch, or when it must look up the
leader's address again. A Resigned member waits for the next epoch.
"""

ENTRIES_INTO_HIGHER_EPOCH: tuple[type[Role], ...] = (Unattached, Candidate, Follower)
