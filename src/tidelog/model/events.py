"""The events that a host delivers to a node.

The classes have slots, because every request creates some events.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from tidelog.model.ids import ConnId, Millis


@dataclass(slots=True)
class Connected:
    conn: ConnId
    peer: str
    """`host:port` of the other side."""
    listener: str
    subject: str = ""
    """The name in the certificate of the client; empty if it sent none."""


@dataclass(slots=True)
class PeerConnected:
    """The connection requested by `Connect` is open."""

    conn: ConnId


@dataclass(slots=True)
class ConnectFailed:
    """The connection requested by `Connect` could not be opened."""

    conn: ConnId
    was_refused: bool
    """Whether the port refused the connection, because no process listens on it."""
    reason: str


@dataclass(slots=True)
class Disconnected:
    conn: ConnId


@dataclass(slots=True)
class FrameReceived:
    """One whole frame, without its length.

    The host owns the buffer, which is valid only during `handle`.
    """

    conn: ConnId
    frame: memoryview


@dataclass(slots=True)
class Ran:
    """The job requested by `Run` with this token has ended."""

    token: int
    value: Any
    """The result of the job."""
    error: Exception | None
    """The error that ended the job; None if the job has a result."""


@dataclass(slots=True)
class Ticked:
    """The time of `next_deadline()` was reached."""


@dataclass(slots=True)
class WallClockMoved:
    """The wall clock was set, or has drifted from the time that is passed with each event."""

    ahead_ms: Millis
    """How far the wall clock is ahead of the time passed with events; negative if it is behind."""


@dataclass(slots=True)
class ResponsesUnread:
    """The memory of responses that clients have not read has crossed a limit, up or down."""

    is_much: bool


Event: TypeAlias = (
    FrameReceived
    | Ran
    | Ticked
    | Connected
    | Disconnected
    | PeerConnected
    | ConnectFailed
    | WallClockMoved
    | ResponsesUnread
)
