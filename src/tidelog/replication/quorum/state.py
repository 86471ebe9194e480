"""What a quorum member knows for sure: who votes, what it promised, how long its log is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from tidelog.model.ids import NO_EPOCH, NO_NODE, LeaderEpoch, Millis, NodeId, Offset


class LogEnd(NamedTuple):
    """The epoch of the last record and the offset after it; the larger is the more complete log."""

    epoch: LeaderEpoch
    offset: Offset


NOTHING = LogEnd(NO_EPOCH, 0)
UNKNOWN = LogEnd(2**31 - 1, 2**63 - 1)
"""More than any log has: of a voter that does not know how much it has lost."""


@dataclass(frozen=True, slots=True)
class Held:
    """What a voter has held and may have acknowledged; its log may have lost some of it (F40)."""

    end: LogEnd = NOTHING
    is_fresh: bool = False
    """It may never have held anything: its disk is new, or was wiped."""


class ReplicaKey(NamedTuple):
    """A voter is an id and a disk: the same id on a wiped disk is somebody else (F40, KIP-853)."""

    id: NodeId
    directory: UUID | None = None

    def is_same(self, other: "ReplicaKey") -> bool:
        """Static voters name no directory, and then the id alone decides."""
        if self.id != other.id:
            return False
        return (
            self.directory is None or other.directory is None or self.directory == other.directory
        )


class Voter(NamedTuple):
    key: ReplicaKey
    endpoints: tuple[tuple[str, str, int], ...] = ()
    """(listener, host, port)"""
    min_version: int = 0
    max_version: int = 1
    """The range of kraft.version that it supports."""


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
    """The promise kept on disk in `quorum-state`: synced before any answer that depends on it."""

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
        """A leader that has not heard a majority for this long resigns (KAFKA-15489)."""
        return self.fetch_ms * 3 // 2
