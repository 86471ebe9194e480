"""After a long pass a node receives the waiting frames before the next tick (F63).

Otherwise a busy controller would fence brokers whose heartbeats wait in its sockets.
"""

import time
from collections.abc import Callable

from tests.unit.runtime.echo import EchoNode, framed, serving

from tidelog.model.events import Event, FrameReceived, Ticked
from tidelog.model.ids import Millis
from tidelog.model.outbound import Outbound
from tidelog.runtime.loop import LATE_MS


class BusyNode(EchoNode):
    """Handles the frame `busy` slowly; meanwhile a deadline passes and another frame arrives."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self._deadline: Millis | None = None

    def next_deadline(self) -> Millis | None:
        return self._deadline

    def handle(self, event: Event, now: Millis) -> list[Outbound]:
        match event:
            case FrameReceived() if bytes(event.frame) == b"busy":
                self._deadline = now
                self.meanwhile()
                time.sleep(2 * LATE_MS / 1000)
                return []
            case FrameReceived():
                self.heard.append("heartbeat")
            case Ticked():
                self.heard.append("tick")
                self._deadline = None
        return super().handle(event, now)


def test_f63_a_heartbeat_that_waits_is_heard_before_time_is_up() -> None:
    node = BusyNode()
    with serving(node) as served:
        busy, other = served.client(), served.client()
        assert other.ask(b"ehello") == b"hello"
        node.heard.clear()
        node.meanwhile = lambda: other.sock.sendall(framed(b"ehere"))

        busy.sock.sendall(framed(b"busy"))

        assert other.answer() == b"here"
        assert other.ask(b"eagain") == b"again"
    assert node.heard[:2] == ["heartbeat", "tick"]
