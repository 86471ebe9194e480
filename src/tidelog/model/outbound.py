"""The actions that a node requests from its host, which performs them in the order given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tidelog.model.disk import Buffer, FileSlice
from tidelog.model.ids import ConnId
from tidelog.model.jobs import AnyJob

Chunk: TypeAlias = Buffer | FileSlice


@dataclass(slots=True)
class Send:
    """One whole response frame, length included, as chunks to be written in order."""

    conn: ConnId
    chunks: list[Chunk]


@dataclass(slots=True)
class CloseConnection:
    """Close the connection once all queued bytes are sent. The reason is logged once."""

    conn: ConnId
    reason: str


@dataclass(slots=True)
class RequestFailed:
    """A request has triggered a bug in Tidelog. Close only the connection of this request."""

    conn: ConnId
    error: Exception


@dataclass(slots=True)
class StopReading:
    """Read no more frames from this connection until `StartReading` (backpressure)."""

    conn: ConnId


@dataclass(slots=True)
class StartReading:
    conn: ConnId


@dataclass(slots=True)
class Run:
    """Run a job off the node's thread, and deliver `Ran` with this token when the job ends."""

    token: int
    job: AnyJob


@dataclass(slots=True)
class Cancel:
    """Stop the job with this token before its next step, and deliver no `Ran` for it."""

    token: int


@dataclass(slots=True)
class Connect:
    """Open a connection under this negative id. The answer is `PeerConnected` or `ConnectFailed`.

    An open connection is used like any other, with `Send` and `FrameReceived`. When the connection
    ends, the host delivers `Disconnected`, unless the node closed the connection. If the host
    receives a frame longer than `answer_bytes`, it closes the connection.
    """

    conn: ConnId
    host: str
    port: int
    answer_bytes: int
    tls_listener: str = ""
    """The listener whose TLS settings apply; empty for a connection without encryption."""


@dataclass(frozen=True, slots=True)
class LimitConnections:
    """Limit the number of connections from now on, by max.connections and related settings."""

    total: int = 2**31 - 1
    per_ip: int = 2**31 - 1
    per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    per_listener: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Stop:
    """The node has shut down cleanly, or cannot continue; the host exits with this status."""

    status: int
    reason: str


Outbound: TypeAlias = (
    Send
    | Run
    | Cancel
    | StopReading
    | StartReading
    | CloseConnection
    | RequestFailed
    | Connect
    | LimitConnections
    | Stop
)
