"""What a request handler is given, and what it is: a pure generator of effects with a response."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from tidelog.api.records.fetch_sessions import FetchSessions
from tidelog.api.records.producer_ids import ProducerIdBlocks
from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import ClusterImage
from tidelog.model.effects import Effect
from tidelog.model.ids import ConnId, Millis, NodeId
from tidelog.model.outbound import Chunk

Handling: TypeAlias = Generator[Effect, Any, Any]
"""Yields effects, is sent their results, returns a message, `Encoded`, `Disconnect`, or None.

None means that no answer is due.
"""


class Encoded(NamedTuple):
    """A response body that its handler has encoded itself, in the version that was asked for."""

    chunks: list[Chunk]


class Disconnect(NamedTuple):
    """There is no way to answer: close the connection, and log the reason."""

    reason: str


class KnownQuorum(Protocol):
    """The metadata quorum as this node knows it."""

    @property
    def kraft_version(self) -> int: ...

    @property
    def leader(self) -> NodeId: ...


@dataclass(slots=True)
class Request:
    """One request as its handler sees it: decoded, and lifted to its API's canonical version."""

    conn: ConnId
    version: int
    client_id: str | None
    client_host: str
    listener: str
    message: Any
    image: ClusterImage
    """The node sets this to its newest image whenever it resumes the handler."""
    settings: BrokerSettings
    node_id: NodeId
    now: Millis
    fetch_sessions: FetchSessions
    producer_ids: ProducerIdBlocks
    """The node's, shared by all requests."""
    quorum: KnownQuorum


Handler: TypeAlias = Callable[[Request], Any]
"""Returns a `Handling` to drive, or at once what a handling returns in the end."""
