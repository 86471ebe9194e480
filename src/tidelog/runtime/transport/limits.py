"""Limits on a host's connections: their number, their memory and their time."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.model.ids import Millis
from tidelog.model.outbound import LimitConnections
from tidelog.runtime.transport.descriptors import UNLIMITED, Shares

COSTLY_MS: Millis = 3
"""A request is slow if it takes this long, in real time and in CPU time. On a busy machine, any
request can take this long in real time. After two slow requests in a row, the connection is served
last for `COSTLY_FOR_MS`.
"""
COSTLY_FOR_MS: Millis = 5_000
NEW_FOR_MS: Millis = 1_000
"""A new connection is served last for this long. Otherwise, many new connections with one slow
request each would delay other clients.
"""

CROWD = 16
"""If more connections than this have input in one pass, the pass could take long even if each
request is fairly short. A request then counts as slow if it takes `COSTLY_CPU_NS`.
"""
COSTLY_CPU_NS = 500_000

SPARED_AT_ONCE = 16
SILENT_MS: Millis = 250
"""When descriptors run out, the host first closes clients that have sent no request within this
time after they connected."""
SPARED_IDLE_MS: Millis = 60_000
"""If closing silent clients does not free enough descriptors, the host closes clients that have
been idle for this long. Kafka clients reconnect when they need to.
"""


@dataclass(frozen=True, slots=True)
class Limits:
    connections: LimitConnections = field(default_factory=LimitConnections)
    controller_listeners: tuple[str, ...] = ()
    inter_broker_listener: str = ""
    descriptors: Shares = UNLIMITED
    idle_ms: int = 10 * 60 * 1000
    apis: Mapping[int, tuple[str, int]] | None = None
    """The name and the maximum request size of each API, by API key."""
    request_bytes: int = 100 * 1024 * 1024
    unsent_bytes: int = 2 * 1024 * 1024
    stalled_bytes: int = 32 * 1024 * 1024
    """The limit on unsent responses, in bytes, of all stalled connections together. Above this
    limit, stalled connections are not read.
    """
    half_received_bytes: int = 64 * 1024 * 1024
    """The limit on half-received requests. Above it, one request at a time is received."""
    held_bytes: int = 16 * 1024 * 1024
    """The limit on held requests. Above it, less is read from each connection at once."""
    backlog: int = 1024
    http_hint: str = ""
    """A hint for the log line about an HTTP request at a Kafka port."""
