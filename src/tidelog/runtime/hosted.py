"""What a host asks of the node that it serves."""

from typing import Protocol

from tidelog.model.events import Event
from tidelog.model.ids import Millis
from tidelog.model.outbound import Outbound


class HostedNode(Protocol):
    """The node as its host sees it."""

    def handle(self, event: Event, now: Millis) -> list[Outbound]: ...

    def next_deadline(self) -> Millis | None: ...

    def in_work(self) -> str:
        """The request of which the latest event did a part; empty if it was none."""

    def start(self) -> list[Outbound]:
        """Comes before the first event."""

    @property
    def is_ready(self) -> bool:
        """Whether it takes writes."""

    def shutdown(self, now: Millis) -> list[Outbound]:
        """Begin a controlled shutdown; its end is a `Stop`."""

    def stop_now(self, now: Millis) -> list[Outbound]:
        """Close every log and `Stop`, without waiting for others."""
