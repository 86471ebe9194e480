"""The interface between a host and its node."""

from typing import Protocol

from tidelog.model.events import Event
from tidelog.model.ids import Millis
from tidelog.model.outbound import Outbound


class HostedNode(Protocol):
    """The node as its host sees it."""

    def handle(self, event: Event, now: Millis) -> list[Outbound]: ...

    def next_deadline(self) -> Millis | None: ...

    def in_work(self) -> str:
        """The request that the node handled in its latest event; empty if there was none."""

    def start(self) -> list[Outbound]:
        """Start the node, before the first event."""

    @property
    def is_ready(self) -> bool:
        """Whether the node accepts writes."""

    def shutdown(self, now: Millis) -> list[Outbound]:
        """Begin a controlled shutdown, which ends with a `Stop`."""

    def stop_now(self, now: Millis) -> list[Outbound]:
        """Close every log and return `Stop`, without waiting for other nodes."""
