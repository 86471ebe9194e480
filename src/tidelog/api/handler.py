"""The types of request handlers: pure generators, which yield effects and return a response."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from tidelog.api.records.fetch_sessions import FetchSessions
from tidelog.api.records.producer_ids import ProducerIdBlocks
from tidelog.api.records.share_sessions import ShareSessions
from tidelog.config.settings import BrokerSettings
from tidelog.controller.image.image import ClusterImage
from tidelog.model.effects import Effect
from tidelog.model.ids import ConnId, Millis, NodeId
from tidelog.model.outbound import Chunk
from tidelog.security.authorizer import AclAuthorizer
from tidelog.security.principal import Principal

Handling: TypeAlias = Generator[Effect, Any, Any]
"""A generator that yields effects, receives their results, and returns the response.

The response is a message, `Encoded`, `Disconnect`, or None if the client expects no response.
"""


class Encoded(NamedTuple):
    """A response body that the handler has encoded in the requested version."""

    chunks: list[Chunk]


class Disconnect(NamedTuple):
    """Returned if no response is possible.

    The node then closes the connection and logs the reason.
    """

    reason: str


class KnownQuorum(Protocol):
    """The metadata quorum as this node knows it."""

    @property
    def kraft_version(self) -> int: ...

    @property
    def leader(self) -> NodeId: ...


@dataclass(slots=True)
class Request:
    """A request that is decoded and converted to the canonical version of its API."""

    conn: ConnId
    version: int
    client_id: str | None
    client_host: str
    listener: str
    message: Any
    image: ClusterImage
    """The node's newest metadata image, updated whenever the node resumes the handler."""
    settings: BrokerSettings
    node_id: NodeId
    now: Millis
    fetch_sessions: FetchSessions
    producer_ids: ProducerIdBlocks
    """The producer id blocks, which all requests of the node share."""
    quorum: KnownQuorum
    principal: Principal
    """The client's identity, which the node that forwarded the request has sent along."""
    authorizer: AclAuthorizer | None
    """Decides what the client may do; None if no authorizer is configured."""
    share_sessions: ShareSessions


Handler: TypeAlias = Callable[[Request], Any]
"""A function that returns a `Handling`, which the node runs, or the response itself."""
