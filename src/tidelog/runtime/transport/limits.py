"""What connections may take of a host: their number, their memory, their time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.model.ids import Millis
from tidelog.model.outbound import LimitConnections
from tidelog.runtime.transport.descriptors import UNLIMITED, Shares

COSTLY_MS: Millis = 3
"""A connection with a request that takes so long lets others go first for `COSTLY_FOR_MS`.

So does a new one: many that are opened for one slow request each delay nobody else.
"""
COSTLY_FOR_MS: Millis = 1_000


@dataclass(frozen=True, slots=True)
class Limits:
    connections: LimitConnections = field(default_factory=LimitConnections)
    controller_listeners: tuple[str, ...] = ()
    inter_broker_listener: str = ""
    descriptors: Shares = UNLIMITED
    idle_ms: int = 10 * 60 * 1000
    apis: Mapping[int, tuple[str, int]] | None = None
    """Name and largest request of each API, by its key."""
    request_bytes: int = 100 * 1024 * 1024
    unsent_bytes: int = 2 * 1024 * 1024
    stalled_bytes: int = 32 * 1024 * 1024
    """Unsent answers of all connections that do not take them, before all these are muted."""
    half_received_bytes: int = 64 * 1024 * 1024
    """Requests of all clients that are not whole yet, before one is received at a time."""
    held_bytes: int = 16 * 1024 * 1024
    """Requests of all connections that wait to be handled, before less is read at once."""
    backlog: int = 1024
    http_hint: str = ""
    """What to add to the log where an HTTP request comes to a port of Kafka's protocol."""
