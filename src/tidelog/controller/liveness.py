"""Which brokers the active controller has heard from, and when it stops waiting for each.

This is the controller's memory and nothing more: it is in no log, and a new controller starts with
none, so every broker gets a whole session before it can be fenced; but not the node that led the
quorum before, whose silence made this one the controller. Whether a broker *is* fenced is said by
the image alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from tidelog.model.ids import NO_OFFSET, Millis, NodeId, Offset


class Sessions(Protocol):
    """What a decision may know of the brokers' sessions."""

    def is_live(self, broker: NodeId, now: Millis) -> bool:
        """Whether the broker was heard from within its session's time."""

    def metadata_offset(self, broker: NodeId) -> Offset:
        """How far the broker has said that it has read the metadata log."""


@dataclass(slots=True)
class _Session:
    deadline: Millis
    metadata_offset: Offset


class Liveness:
    def __init__(self, session_timeout_ms: int) -> None:
        self._timeout_ms = session_timeout_ms
        self._sessions: dict[NodeId, _Session] = {}

    def heard(self, broker: NodeId, now: Millis, metadata_offset: Offset = NO_OFFSET) -> None:
        """A heartbeat came: the session begins anew."""
        self._sessions[broker] = _Session(now + self._timeout_ms, metadata_offset)

    def expect(self, brokers: Iterable[NodeId], now: Millis) -> None:
        """Give each a whole session to be heard from: what a new controller does at first."""
        for broker in brokers:
            if broker not in self._sessions:
                self.heard(broker, now)

    def expect_soon(self, broker: NodeId, now: Millis, within_ms: Millis) -> None:
        """It has been silent for a while already: what is left of its session is shorter."""
        session = self._sessions.get(broker)
        if session is not None:
            session.deadline = min(session.deadline, now + within_ms)

    def lost(self, broker: NodeId, now: Millis) -> None:
        """The broker's process is known to be gone: its session ends at once."""
        session = self._sessions.get(broker)
        if session is not None:
            session.deadline = min(session.deadline, now)

    def forget(self, broker: NodeId) -> None:
        """The broker is fenced or unregistered: there is no session to watch."""
        self._sessions.pop(broker, None)

    def expired(self, now: Millis) -> list[NodeId]:
        """Brokers to be fenced, in order of id; each stays in the list until it is forgotten."""
        return sorted(id_ for id_, session in self._sessions.items() if session.deadline <= now)

    def next_deadline(self) -> Millis | None:
        """When the next session ends, if there is any."""
        return min((session.deadline for session in self._sessions.values()), default=None)

    def is_live(self, broker: NodeId, now: Millis) -> bool:
        session = self._sessions.get(broker)
        return session is not None and session.deadline > now

    def metadata_offset(self, broker: NodeId) -> Offset:
        session = self._sessions.get(broker)
        return NO_OFFSET if session is None else session.metadata_offset
