"""What a request handler is given and what it is: a pure generator of effects that returns a response."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeAlias

from tidelog.controller.image import ClusterImage
from tidelog.controller.settings import BrokerSettings
from tidelog.model.effects import Effect
from tidelog.model.ids import Millis, NodeId

Handling: TypeAlias = Generator[Effect, Any, Any]
"""Yields effects, is sent their results, returns the response message (None: no answer is due)."""


@dataclass(slots=True)
class Request:
    """One request as its handler sees it, decoded and lifted to the newest version of its message."""

    version: int
    client_id: str | None
    client_host: str
    listener: str
    message: Any
    image: ClusterImage
    settings: BrokerSettings
    node_id: NodeId
    now: Millis
