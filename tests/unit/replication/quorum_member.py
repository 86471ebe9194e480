"""One member of a simulated quorum: its durable state, and the state that a crash loses."""

from dataclasses import dataclass, field
from uuid import UUID

from tidelog.model.ids import NodeId
from tidelog.replication.quorum.machine import QuorumMachine
from tidelog.replication.quorum.state import (
    UNKNOWN,
    Held,
    LogEnd,
    QuorumState,
    ReplicaKey,
    VoterSet,
)


class VotersRecord(int):
    """A record that changes the voters. As in every record here, its value is its leader epoch."""

    voters: VoterSet

    @classmethod
    def of(cls, epoch: int, voters: VoterSet) -> "VotersRecord":
        record = cls(epoch)
        record.voters = voters
        return record


@dataclass
class Member:
    id: NodeId
    saved: QuorumState | None = None
    held: Held = field(default_factory=lambda: Held(UNKNOWN, is_fresh=True))
    """The state in a separate file next to the log, which records how far the log has reached."""
    log: list[int] = field(default_factory=list)
    """The epoch of each record."""
    machine: QuorumMachine | None = None
    committed: int = 0
    fetching: tuple[NodeId, int] | None = None
    incarnation: int = 0
    directory: UUID | None = None

    @property
    def key(self) -> ReplicaKey:
        return ReplicaKey(self.id, self.directory)

    @property
    def end(self) -> LogEnd:
        return LogEnd(self.log[-1] if self.log else -1, len(self.log))

    def grew(self) -> None:
        """Record the end of the synced log, unless the recorded end is larger."""
        if self.end >= self.held.end:
            self.held = Held(self.end)
