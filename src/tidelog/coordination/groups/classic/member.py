"""A member of a classic group: its identity, its protocols and its parked requests."""

from dataclasses import dataclass
from typing import NamedTuple, Self

from tidelog.coordination.records import MemberMetadata
from tidelog.model.ids import Millis


class Protocol(NamedTuple):
    """An assignment strategy that a member supports, with the member's metadata for it."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class ClassicMember:
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: Millis
    session_timeout_ms: Millis
    protocol_type: str
    protocols: tuple[Protocol, ...]
    """The protocols that the member supports, most preferred first."""
    assignment: bytes = b""
    is_new: bool = False
    """Whether the member has never been part of a generation."""
    join: int | None = None
    """The ticket of a JoinGroup that is parked until the join phase ends."""
    sync: int | None = None
    """The ticket of a SyncGroup that is parked until the assignment is known."""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def heartbeat_satisfied(self) -> bool:
        """Whether a parked request proves the member alive.

        The parked JoinGroup of a new member proves nothing.
        """
        return not self.is_new and (self.join is not None or self.sync is not None)

    def metadata_for(self, protocol_name: str | None) -> bytes:
        """The member's metadata for a protocol that it supports."""
        for protocol in self.protocols:
            if protocol.name == protocol_name:
                return protocol.metadata
        raise AssertionError(f"{self.member_id} does not support {protocol_name}")

    def vote(self, candidates: frozenset[str]) -> str:
        """The member's most preferred protocol among those that every member supports."""
        return next(protocol.name for protocol in self.protocols if protocol.name in candidates)

    def to_record(self, protocol_name: str | None, assignment: bytes) -> MemberMetadata:
        return MemberMetadata(
            member_id=self.member_id,
            group_instance_id=self.group_instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout=self.rebalance_timeout_ms,
            session_timeout=self.session_timeout_ms,
            subscription=self.metadata_for(protocol_name),
            assignment=assignment,
        )

    @classmethod
    def from_record(cls, record: MemberMetadata, protocol_type: str, protocol: str) -> Self:
        """Restore a member from its record, which contains only the selected protocol."""
        timeout = record.rebalance_timeout
        return cls(
            member_id=record.member_id,
            group_instance_id=record.group_instance_id,
            client_id=record.client_id,
            client_host=record.client_host,
            rebalance_timeout_ms=record.session_timeout if timeout == -1 else timeout,
            session_timeout_ms=record.session_timeout,
            protocol_type=protocol_type,
            protocols=(Protocol(protocol, record.subscription),),
            assignment=record.assignment,
        )
