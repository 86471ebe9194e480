"""The durable state of a quorum member: its voters, its vote and the end of its log."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from tidelog.model.ids import NO_EPOCH, NO_NODE, LeaderEpoch, Millis, NodeId, Offset


class LogEnd(NamedTuple):
    """The epoch of the last record, and the offset after it.

    A log with a larger end is more complete.
    """

    epoch: LeaderEpoch
    offset: Offset


NOTHING = LogEnd(NO_EPOCH, 0)
UNKNOWN = LogEnd(2**31 - 1, 2**63 - 1)
"""A value above any log end, for a voter that does not know how many records it has lost."""


@dataclass(frozen=True, slots=True)
class Held:
    """The log end that a voter may have acknowledged, even if its log has lost records (F40)."""

    end: LogEnd = NOTHING
    is_fresh: bool = False
    """Whether the disk is new or was wiped, so that the voter may never have held a record."""


class ReplicaKey(NamedTuple):
    """A voter's id and directory id. If a node's disk is wiped, the node becomes a different voter,
    with the same id (F40, KIP-853)."""

    id: NodeId
    directory: UUID | None = None

    def is_same(self, other: "ReplicaKey") -> bool:
        """Whether both are the same voter. If one has no directory id, only ids are compared."""
        if self.id != other.id:
            return False
        return (
            self.directory is None or other.directory is None or self.directory == other.directory
        )


class Voter(NamedTuple):
    key: ReplicaKey
    endpoints: tuple[tuple[str, str, int], ...] = ()
    """The listener, host and port of each endpoint."""
    min_version: int = 0
    max_version: int = 1
    """`min_version` to `max_version` is the range of kraft.version that the voter supports."""


@dataclass(frozen=True, slots=True)
class VoterSet:
    voters: Mapping[NodeId, Voter] = field(default_factory=dict)

    def __contains__(self, key: ReplicaKey) -> bool:
        voter = self.voters.get(key.id)
        return voter is not None and voter.key.is_same(key)

    def __iter__(self) -> Iterator[NodeId]:
        return iter(sorted(self.voters))

    def __len__(self) -> int:
        return len(self.voters)

    @property
    def majority(self) -> int:
        return len(self.voters) // 2 + 1

    def others(self, me: NodeId) -> list[NodeId]:
        return [voter for voter in self if voter != me]

    def with_voter(self, voter: Voter) -> "VoterSet":
        return VoterSet({**self.voters, voter.key.id: voter})

    def without(self, node: NodeId) -> "VoterSet":
        return VoterSet({id: voter for id, voter in self.voters.items() if id != node})


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The content of `quorum-state`, fsynced before any answer that depends on it."""

    epoch: LeaderEpoch = 0
    leader: NodeId = NO_NODE
    voted: ReplicaKey | None = None


@dataclass(frozen=True, slots=True)
class QuorumTimeouts:
    """Kafka's controller.quorum.* keys."""

    election_ms: Millis = 1000
    fetch_ms: Millis = 2000
    election_backoff_max_ms: Millis = 1000
    request_ms: Millis = 2000
    retry_backoff_ms: Millis = 20

    @property
    def check_quorum_ms(self) -> Millis:
        """The time without fetches from a majority after which a leader resigns (KAFKA-15489)."""
        return self.fetch_ms * 3 // 2
