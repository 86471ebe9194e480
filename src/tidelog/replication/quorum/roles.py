"""The roles of a quorum member, and which may follow which.

Every role belongs to one epoch. An epoch never goes back, and within one epoch only the moves of
`TRANSITIONS` are possible; the machine asserts it at each change.
"""

from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

from tidelog.model.ids import NO_NODE, LeaderEpoch, Millis, NodeId, Offset
from tidelog.replication.quorum.state import ReplicaKey


@dataclass(slots=True)
class Unattached:
    """Knows the epoch, not its leader."""

    epoch: LeaderEpoch
    election_deadline: Millis
    voted: ReplicaKey | None = None
    next_discovery: Millis = 0
    """When to ask a voter who leads (observers, and voters that were away)."""


@dataclass(slots=True)
class Prospective:
    """Asks whether it could win before it disturbs anyone with a new epoch (KIP-996)."""

    epoch: LeaderEpoch
    election_deadline: Millis
    granted: set[NodeId]
    rejected: set[NodeId] = field(default_factory=set)
    voted: ReplicaKey | None = None
    last_leader: NodeId = NO_NODE
    leader_is_gone: bool = False
    is_backing_off: bool = False
    """The round is lost; at the deadline the next begins."""
    rounds: int = 0


@dataclass(slots=True)
class Candidate:
    """Has opened a new epoch, has voted for itself, and asks for the others' votes."""

    epoch: LeaderEpoch
    election_deadline: Millis
    granted: set[NodeId]
    rejected: set[NodeId] = field(default_factory=set)
    is_backing_off: bool = False
    rounds: int = 0


@dataclass(slots=True)
class Follower:
    """Knows the leader of the epoch and fetches from it."""

    epoch: LeaderEpoch
    leader: NodeId
    fetch_deadline: Millis
    voted: ReplicaKey | None = None
    has_fetched: bool = False
    """Has heard from the leader itself in this epoch, and so refuses pre-votes (F36)."""
    leader_is_gone: bool = False
    """The leader's port refuses: no process is there."""


@dataclass(slots=True)
class ReplicaProgress:
    """What the leader knows of one replica."""

    end: Offset = -1
    last_fetch: Millis = -1
    last_caught_up: Millis = -1
    last_fetch_leader_end: Offset = -1


@dataclass(slots=True)
class Leader:
    epoch: LeaderEpoch
    epoch_start: Offset
    """The first offset of this epoch: the leader's own LeaderChange record."""
    progress: dict[ReplicaKey, ReplicaProgress]
    unacknowledged: set[NodeId]
    """Voters that have not confirmed the epoch yet."""
    announce_deadline: Millis
    check_quorum_deadline: Millis
    high_watermark: Offset = -1
    directories: dict[NodeId, UUID] = field(default_factory=dict)
    """The disks of voters as their fetches in this epoch name them, whatever their records say."""


@dataclass(slots=True)
class Resigned:
    """Has led this epoch and will not again; tells the others so that they need not wait."""

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
"""Moves within one epoch. Into a higher epoch a member may go as Unattached, Candidate or Follower.

A Candidate that lost goes on as Prospective in the same epoch; a Follower becomes Prospective when
its leader falls silent, and Unattached only by way of a higher epoch or when it must find the
leader's address anew. Resigned waits for the next epoch.
"""

ENTRIES_INTO_HIGHER_EPOCH: tuple[type[Role], ...] = (Unattached, Candidate, Follower)
