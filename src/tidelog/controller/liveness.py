"""Broker sessions: the deadline by which the active controller expects each broker's heartbeat.

Sessions exist only in memory. A new controller starts without sessions, so each broker gets a full
session timeout before it can be fenced. Only the previous leader of the quorum gets less time,
because its failure caused the election. Whether a broker is fenced is recorded in the image, not
here.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from tidelog.model.ids import NO_OFFSET, Millis, NodeId, Offset


class Sessions(Protocol):
    """The view of broker sessions that a decision may use."""

    def is_live(self, broker: NodeId, now: Millis) -> bool:
        """Whether the broker has sent a heartbeat within its session timeout."""

    def metadata_offset(self, broker: NodeId) -> Offset:
        """The metadata offset that the broker last reported."""


@dataclass(slots=True)
class _Session:
    deadline: Millis
    metadata_offset: Offset


class Liveness:
    def __init__(self, session_timeout_ms: int) -> None:
        self._timeout_ms = session_timeout_ms
        self._sessions: dict[NodeId, _Session] = {}

    def record_heartbeat(
        self, broker: NodeId, now: Millis, metadata_offset: Offset = NO_OFFSET
    ) -> None:
        """Renew the broker's session and note the metadata offset that it reports."""
        self._sessions[broker] = _Session(now + self._timeout_ms, metadata_offset)

    def expect(self, brokers: Iterable[NodeId], now: Millis) -> None:
        """Start a full session for each broker; a new controller calls this first."""
        for broker in brokers:
            if broker not in self._sessions:
                self._sessions[broker] = _Session(now + self._timeout_ms, NO_OFFSET)

    def expect_soon(self, broker: NodeId, now: Millis, within_ms: Millis) -> None:
        """Shorten the session of a broker that has already been silent for some time."""
        session = self._sessions.get(broker)
        if session is not None:
            session.deadline = min(session.deadline, now + within_ms)

    def lost(self, broker: NodeId, now: Millis) -> None:
        """End the session of a broker whose process is known to have ended."""
        session = self._sessions.get(broker)
        if session is not None:
            session.deadline = min(session.deadline, now)

    def forget(self, broker: NodeId) -> None:
        """Drop the session of a broker that is fenced or unregistered."""
        self._sessions.pop(broker, None)

    def expired(self, now: Millis) -> list[NodeId]:
        """Brokers to fence, in order of id. A broker is returned until `forget` removes it."""
        return sorted(id_ for id_, session in self._sessions.items() if session.deadline <= now)

    def next_deadline(self) -> Millis | None:
        """When the next session expires; None if there are no sessions."""
        return min((session.deadline for session in self._sessions.values()), default=None)

    def is_live(self, broker: NodeId, now: Millis) -> bool:
        session = self._sessions.get(broker)
        return session is not None and session.deadline > now

    def metadata_offset(self, broker: NodeId) -> Offset:
        session = self._sessions.get(broker)
        return NO_OFFSET if session is None else session.metadata_offset
