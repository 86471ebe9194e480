"""What the world may tell a node. Past tense; slotted, since one of each passes per request."""

from dataclasses import dataclass
from typing import Any, TypeAlias

from tidelog.model.ids import ConnId, Millis


@dataclass(slots=True)
class Connected:
    conn: ConnId
    peer: str
    """`host:port` of the other side."""
    listener: str


@dataclass(slots=True)
class PeerConnected:
    """The connection asked for by `Connect` is there."""

    conn: ConnId


@dataclass(slots=True)
class ConnectFailed:
    """The connection asked for by `Connect` could not be made."""

    conn: ConnId
    was_refused: bool
    """Nobody listens at the address: no process is there."""
    reason: str


@dataclass(slots=True)
class Disconnected:
    conn: ConnId


@dataclass(slots=True)
class FrameReceived:
    """One whole frame, without its length. The buffer is the host's: valid only during `handle`."""

    conn: ConnId
    frame: memoryview


@dataclass(slots=True)
class Ran:
    """The job asked for by `Run` with this token has ended."""

    token: int
    value: Any
    """Its result."""
    error: Exception | None
    """Why it has none."""


@dataclass(slots=True)
class Ticked:
    """Time has passed; sent when `next_deadline()` is due."""


@dataclass(slots=True)
class WallClockMoved:
    """The machine's clock was set, or drifts away from the time that comes with each event."""

    ahead_ms: Millis
    """How far it is ahead of that time; behind it where this is negative."""


Event: TypeAlias = (
    FrameReceived
    | Ran
    | Ticked
    | Connected
    | Disconnected
    | PeerConnected
    | ConnectFailed
    | WallClockMoved
)
