"""Slow requests delay only their own connection (F63).

Time passes only inside a request, so that the test does not depend on the machine's speed.
"""

from collections.abc import Callable

from tests.unit.runtime.echo import Client, EchoNode, framed, serving

from tidelog.model.events import Event, FrameReceived
from tidelog.model.ids import Millis
from tidelog.model.outbound import Outbound
from tidelog.runtime.clock import HostClock
from tidelog.runtime.loop import SHARED_MS
from tidelog.runtime.transport.limits import COSTLY_CPU_NS, CROWD

SLOW_MS = SHARED_MS - 2
"""The duration of a slow request; two of them exceed a connection's share of a loop pass."""


class StoppedClock(HostClock):
    """A clock that the test controls."""

    def __init__(self) -> None:
        super().__init__()
        self.ms: Millis = 1_000

    def __call__(self) -> Millis:
        return self.ms

    def ahead_ms(self, now: Millis) -> Millis:
        return 0


class SlowNode(EchoNode):
    """Echoes frames. Handling `slow` and `work` takes CPU time, and `late` only real time."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = StoppedClock()
        self.cpu_ns = 0
        self.heard: list[bytes] = []
        self.meanwhile: list[Callable[[], None]] = []

    def handle(self, event: Event, now: Millis) -> list[Outbound]:
        if isinstance(event, FrameReceived):
            self.heard.append(bytes(event.frame[1:]))
            if event.frame[1:5] == b"slow":
                self.clock.ms += SLOW_MS
                self.cpu_ns += SLOW_MS * 1_000_000
                if self.meanwhile:
                    self.meanwhile.pop()()
            if event.frame[1:5] == b"late":
                self.clock.ms += SLOW_MS
            if event.frame[1:5] == b"work":
                self.cpu_ns += COSTLY_CPU_NS
                self.clock.ms += 1
        return super().handle(event, now)


def ask_all_at_once(node: SlowNode, busy: list[Client], other: Client) -> None:
    """Send slow requests of all busy clients and one request of the other client together."""
    node.heard.clear()

    def all_at_once() -> None:
        for client in busy[1:]:
            client.sock.sendall(framed(b"eslow"))
        other.sock.sendall(framed(b"eother"))

    node.meanwhile.append(all_at_once)
    busy[0].sock.sendall(framed(b"eslow"))

    assert other.answer() == b"other"
    for client in busy:
        assert client.answer() == b"slow"


def test_f63_pipelined_requests_that_take_long_leave_time_for_others() -> None:
    node = SlowNode()
    with serving(node, clock=node.clock, cpu_clock=lambda: node.cpu_ns) as served:
        busy, other = served.client(), served.client()
        node.meanwhile.append(lambda: other.sock.sendall(framed(b"ehere")))

        busy.sock.sendall(framed(b"eslow") * 20)

        assert [busy.answer() for _ in range(20)] == [b"slow"] * 20
        assert other.answer() == b"here"
    assert node.heard.index(b"here") <= 3


def test_f63_new_connections_are_served_after_those_that_are_known_to_be_quick() -> None:
    node = SlowNode()
    with serving(node, clock=node.clock, cpu_clock=lambda: node.cpu_ns) as served:
        known = served.client()
        assert known.ask(b"ehello") == b"hello"
        node.clock.ms += 2_000
        busy = [served.client() for _ in range(10)]
        node.heard.clear()

        def all_at_once() -> None:
            for client in busy[1:]:
                client.sock.sendall(framed(b"eslow"))
            known.sock.sendall(framed(b"eknown"))

        node.meanwhile.append(all_at_once)
        busy[0].sock.sendall(framed(b"eslow"))

        assert known.answer() == b"known"
        for client in busy:
            assert client.answer() == b"slow"
    assert node.heard.index(b"known") <= 2


def test_f63_connections_whose_requests_take_long_are_served_last() -> None:
    node = SlowNode()
    with serving(node, clock=node.clock, cpu_clock=lambda: node.cpu_ns) as served:
        busy = [served.client() for _ in range(10)]
        other = served.client()
        assert other.ask(b"ehello") == b"hello"
        node.clock.ms += 2_000
        for client in (*busy, *busy):
            assert client.ask(b"eslow") == b"slow"
        node.heard.clear()

        def all_at_once() -> None:
            for client in busy:
                client.sock.sendall(framed(b"eslow"))
            other.sock.sendall(framed(b"efirst"))
            node.meanwhile.append(lambda: other.sock.sendall(framed(b"esecond")))

        node.meanwhile.append(all_at_once)
        busy[0].sock.sendall(framed(b"eslow"))

        assert [other.answer(), other.answer()] == [b"first", b"second"]
        for client in busy:
            assert client.answer() == b"slow"
        assert busy[0].answer() == b"slow"
    assert node.heard.index(b"first") <= 2
    assert node.heard.index(b"second") <= 5
    assert node.heard.count(b"slow") == 11


def test_f97_a_crowd_whose_requests_need_some_cpu_time_is_served_last() -> None:
    node = SlowNode()
    crowd_size = 10 * CROWD
    with serving(node, clock=node.clock, cpu_clock=lambda: node.cpu_ns) as served:
        crowd = [served.client() for _ in range(crowd_size)]
        opener, other = served.client(), served.client()
        for client in (*crowd, opener, other):
            assert client.ask(b"ehello") == b"hello"
        node.clock.ms += 2_000

        def all_at_once() -> None:
            for client in crowd:
                client.sock.sendall(framed(b"ework"))
            other.sock.sendall(framed(b"eother"))

        for _ in range(3):  # a client is served last after two slow requests
            node.heard.clear()
            node.meanwhile.append(all_at_once)
            opener.sock.sendall(framed(b"eslow"))
            assert opener.answer() == b"slow"
            assert other.answer() == b"other"
            for client in crowd:
                assert client.answer() == b"work"
    assert node.heard.index(b"other") <= CROWD + 1  # the last of a crowd are not a crowd
    assert node.heard.count(b"work") == crowd_size


def test_f97_one_slow_request_does_not_make_a_client_wait() -> None:
    node = SlowNode()
    with serving(node, clock=node.clock, cpu_clock=lambda: node.cpu_ns) as served:
        busy = [served.client() for _ in range(10)]
        other = served.client()
        node.clock.ms += 2_000
        assert other.ask(b"eslow") == b"slow"
        assert other.ask(b"ehello") == b"hello"
        assert other.ask(b"eslow") == b"slow"
        for client in (*busy, *busy):
            assert client.ask(b"eslow") == b"slow"
        ask_all_at_once(node, busy, other)
    assert node.heard.index(b"other") <= 2


def test_f97_a_client_whose_requests_wait_for_a_processor_is_not_served_last() -> None:
    node = SlowNode()
    with serving(node, clock=node.clock, cpu_clock=lambda: node.cpu_ns) as served:
        busy = [served.client() for _ in range(10)]
        other = served.client()
        assert other.ask(b"ehello") == b"hello"
        node.clock.ms += 2_000
        for client in (*busy, *busy):
            assert client.ask(b"eslow") == b"slow"
        for _ in range(3):
            assert other.ask(b"elate") == b"late"
        ask_all_at_once(node, busy, other)
    assert node.heard.index(b"other") <= 2
