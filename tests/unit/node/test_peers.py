"""Channels to other nodes: requests, answers or failures, and refused connections."""

from struct import pack

import pytest

from tidelog.model.outbound import CloseConnection, Connect, Outbound, Send
from tidelog.node.clock import Clock
from tidelog.node.peers import (
    ANSWER_BYTES,
    PROBE_MS,
    QUICK_RECONNECTS,
    RECONNECT_MS,
    Channel,
    Peers,
    Unanswered,
)
from tidelog.node.ready import ReadyQueue
from tidelog.protocol.malformed import MalformedMessage

BAD = b"bad"


class ChannelHost:
    """One channel; `outbound` has its requests to the host, and `answers` the callers' results."""

    def __init__(self) -> None:
        self.clock, self.ready = Clock(0), ReadyQueue()
        self.outbound: list[Outbound] = []
        self.peers = Peers(self.clock, self.ready, self.outbound.append)
        self.refusals = 0
        self.answers: list[object] = []
        self.channel: Channel = self.peers.channel("node2", 9093, self._refused)

    def _refused(self) -> None:
        self.refusals += 1

    def ask(self, text: bytes = b"?", timeout_ms: int = 1_000) -> None:
        self.channel.request(
            lambda correlation_id: [pack(">i", correlation_id) + text],
            _decoded,
            self.answers.append,
            timeout_ms,
        )

    def take(self) -> list[Outbound]:
        taken, self.outbound[:] = list(self.outbound), []
        return taken

    def pass_time(self, now: int) -> None:
        self.clock.now = now
        self.clock.timers.fire(now, self.ready.run)

    def connected(self) -> int:
        """Connect, and return the connection's id."""
        [connect] = self.take()
        assert isinstance(connect, Connect)
        self.ready.run(self.channel.connected)
        return connect.conn


def _decoded(frame: memoryview) -> bytes:
    if bytes(frame[4:]) == BAD:
        raise MalformedMessage("nonsense")
    return bytes(frame[4:])


def answer(correlation_id: int, text: bytes) -> memoryview:
    return memoryview(pack(">i", correlation_id) + text)


def test_it_connects_when_first_needed_and_sends_once_connected() -> None:
    host = ChannelHost()
    assert host.outbound == []

    host.ask(b"a")
    host.ask(b"b")
    assert host.take() == [Connect(-1, "node2", 9093, ANSWER_BYTES)]
    host.ready.run(host.channel.connected)

    assert host.take() == [Send(-1, [pack(">i", 1) + b"a"]), Send(-1, [pack(">i", 2) + b"b"])]
    host.ask(b"c")
    assert host.take() == [Send(-1, [pack(">i", 3) + b"c"])]


def test_each_channel_has_connections_of_its_own() -> None:
    host = ChannelHost()
    other = host.peers.channel("node2", 9093, lambda: None)
    host.ask()
    other.probe()

    ids = [connect.conn for connect in host.take()]

    assert ids == [-1, -2]
    assert host.peers.find(-1) is host.channel
    assert host.peers.find(-2) is other


def test_answers_go_to_whom_they_are_for_in_any_order() -> None:
    host = ChannelHost()
    host.ask()
    host.ask()
    host.connected()

    host.ready.run(host.channel.received, answer(2, b"second"))
    host.ready.run(host.channel.received, answer(1, b"first"))

    assert host.answers == [b"second", b"first"]
    assert host.channel.is_idle


def test_an_answer_that_nobody_waits_for_is_passed_over() -> None:
    host = ChannelHost()
    host.ask()
    host.connected()

    host.ready.run(host.channel.received, answer(99, b"?"))
    host.ready.run(host.channel.received, answer(1, b"yes"))
    host.ready.run(host.channel.received, answer(1, b"again"))

    assert host.answers == [b"yes"]


def test_no_answer_in_time_gives_up_the_connection_and_all_that_waits_on_it() -> None:
    host = ChannelHost()
    host.ask(timeout_ms=1_000)
    host.ask(timeout_ms=5_000)
    conn = host.connected()
    host.take()

    host.pass_time(1_000)

    assert host.take() == [CloseConnection(conn, "")]
    assert host.answers == [Unanswered("no answer in time", was_connected=True)] * 2
    assert host.peers.find(conn) is None
    host.ask()
    assert host.take() == [Connect(-2, "node2", 9093, ANSWER_BYTES)]


def test_a_request_that_has_less_time_than_its_elder_is_given_up_in_its_own() -> None:
    host = ChannelHost()
    host.ask(timeout_ms=5_000)
    host.ask(timeout_ms=1_000)
    host.connected()

    host.pass_time(999)
    assert host.answers == []
    host.pass_time(1_000)

    assert host.answers == [Unanswered("no answer in time", was_connected=True)] * 2


def test_a_request_has_all_its_time_though_its_elder_was_answered() -> None:
    host = ChannelHost()
    host.ask(timeout_ms=1_000)
    host.connected()
    host.pass_time(500)
    host.ask(timeout_ms=1_000)
    host.ready.run(host.channel.received, answer(1, b"yes"))

    host.pass_time(1_000)
    host.pass_time(1_499)
    assert host.answers == [b"yes"]
    host.pass_time(1_500)

    assert host.answers == [b"yes", Unanswered("no answer in time", was_connected=True)]


def test_who_asks_again_when_told_of_a_loss_has_time_anew() -> None:
    host = ChannelHost()

    def ask_again(unanswered: object) -> None:
        host.answers.append(unanswered)
        host.ask(timeout_ms=2_000)

    host.channel.request(lambda _: [b"?"], _decoded, ask_again, 1_000)
    host.connected()

    host.pass_time(1_000)
    host.pass_time(2_999)
    assert len(host.answers) == 1
    host.pass_time(3_000)

    assert host.answers == [
        Unanswered("no answer in time", was_connected=True),
        Unanswered("no answer in time"),
    ]


def test_a_request_after_a_long_silence_times_out_as_well() -> None:
    host = ChannelHost()
    host.ask(timeout_ms=1_000)
    host.connected()
    host.ready.run(host.channel.received, answer(1, b"yes"))
    host.pass_time(10_000)
    host.ask(timeout_ms=1_000)

    host.pass_time(11_000)

    assert host.answers == [b"yes", Unanswered("no answer in time", was_connected=True)]


def test_the_time_for_an_answer_runs_while_it_connects() -> None:
    host = ChannelHost()
    host.ask(timeout_ms=1_000)
    host.take()

    host.pass_time(1_000)

    assert host.take() == [CloseConnection(-1, "")]
    assert host.answers == [Unanswered("no answer in time")]


def test_an_answered_request_does_not_time_out() -> None:
    host = ChannelHost()
    host.ask()
    host.connected()
    host.take()
    host.ready.run(host.channel.received, answer(1, b"yes"))

    host.pass_time(10_000)

    assert host.answers == [b"yes"]
    assert host.take() == []


def test_a_lost_connection_is_told_and_made_again_to_see_whether_anyone_is_there() -> None:
    host = ChannelHost()
    host.ask()
    host.connected()
    host.take()

    host.ready.run(host.channel.disconnected)
    assert host.answers == [
        Unanswered("the connection was lost", was_lost=True, was_connected=True)
    ]
    assert host.take() == [Connect(-2, "node2", 9093, ANSWER_BYTES)]
    assert host.refusals == 0
    host.ready.run(host.channel.connect_failed, True, "Connection refused")

    assert host.refusals == 1
    assert host.take() == [], "it does not hammer a port that refuses"


def test_a_loss_whose_news_makes_someone_ask_again_connects_once() -> None:
    host = ChannelHost()
    host.channel.request(
        lambda _: [b"?"], _decoded, lambda _: host.ask(b"once more"), timeout_ms=1_000
    )
    host.connected()
    host.take()

    host.ready.run(host.channel.disconnected)
    assert host.take() == [Connect(-2, "node2", 9093, ANSWER_BYTES)]
    host.ready.run(host.channel.connected)

    assert host.take() == [Send(-2, [pack(">i", 2) + b"once more"])]


@pytest.mark.parametrize("was_refused", [True, False])
def test_who_waits_hears_why_there_is_no_connection(was_refused: bool) -> None:
    host = ChannelHost()
    host.ask()

    host.ready.run(host.channel.connect_failed, was_refused, "because")

    assert host.answers == [Unanswered("because", was_refused)]
    assert host.refusals == was_refused


def test_a_probe_that_is_answered_waits_a_moment_and_hangs_up() -> None:
    host = ChannelHost()
    host.ready.run(host.channel.probe)
    conn = host.connected()
    assert host.take() == []

    host.pass_time(PROBE_MS)

    assert host.take() == [CloseConnection(conn, "")]
    assert host.refusals == 0


def test_a_probe_that_a_dying_process_still_accepted_is_made_again() -> None:
    host = ChannelHost()
    host.ready.run(host.channel.probe)
    host.connected()

    host.ready.run(host.channel.disconnected)
    assert host.take() == [Connect(-2, "node2", 9093, ANSWER_BYTES)]
    host.ready.run(host.channel.connect_failed, True, "Connection refused")

    assert host.refusals == 1


def test_a_probe_that_is_refused_says_so() -> None:
    host = ChannelHost()
    host.ready.run(host.channel.probe)

    host.ready.run(host.channel.connect_failed, True, "Connection refused")

    assert host.refusals == 1


def test_a_probe_of_a_silent_address_says_nothing() -> None:
    host = ChannelHost()
    host.ready.run(host.channel.probe)

    host.ready.run(host.channel.connect_failed, False, "Connection timed out")

    assert host.refusals == 0


def test_closing_tells_whoever_waits() -> None:
    host = ChannelHost()
    host.ask()
    conn = host.connected()
    host.take()

    host.ready.run(host.channel.close)
    host.ready.run(host.channel.close)

    assert host.answers == [Unanswered("closed")]
    assert host.take() == [CloseConnection(conn, "")]


@pytest.mark.parametrize(
    "frame",
    [answer(1, BAD), memoryview(b""), memoryview(b"\0\0\1")],
    ids=["body", "empty", "short"],
)
def test_a_bad_answer_ends_the_connection_and_everyone_on_it_is_told(frame: memoryview) -> None:
    host = ChannelHost()
    host.ask()
    host.ask()
    conn = host.connected()
    host.take()

    host.ready.run(host.channel.received, frame)

    [close] = host.take()
    assert isinstance(close, CloseConnection)
    assert close.conn == conn
    assert len(host.answers) == 2
    assert all(isinstance(one, Unanswered) for one in host.answers)
    host.ask()
    assert host.take() == [Connect(-2, "node2", 9093, ANSWER_BYTES)]


def test_correlation_ids_stay_positive() -> None:
    host = ChannelHost()
    for _ in range(3):
        host.ask()
    host.connected()
    ids = [int.from_bytes(send.chunks[0][:4], "big") for send in host.take()]
    assert ids == [1, 2, 3]


def test_one_who_ends_every_connection_at_once_is_not_pestered() -> None:
    host = ChannelHost()
    host.ready.run(host.channel.probe)
    host.connected()
    for _ in range(QUICK_RECONNECTS):
        host.ready.run(host.channel.disconnected)
        host.connected()
    host.ready.run(host.channel.disconnected)
    assert host.take() == []
    host.pass_time(RECONNECT_MS - 1)
    assert host.take() == []
    host.pass_time(RECONNECT_MS)
    host.connected()
    host.pass_time(2 * RECONNECT_MS)
    host.ready.run(host.channel.disconnected)
    [again] = host.take()
    assert isinstance(again, Connect), "the last one has lived for long enough"


def test_a_channel_that_was_closed_does_not_connect_again() -> None:
    host = ChannelHost()
    host.ready.run(host.channel.probe)
    host.connected()
    for _ in range(QUICK_RECONNECTS):
        host.ready.run(host.channel.disconnected)
        host.connected()
    host.ready.run(host.channel.disconnected)
    host.ready.run(host.channel.close)
    host.pass_time(RECONNECT_MS)
    assert host.take() == []


def test_whoever_waits_is_told_when_an_answer_meets_a_bug_of_ours() -> None:
    """Otherwise a follower would wait forever, and never fetch from this leader again."""
    host = ChannelHost()

    def broken(_: memoryview) -> bytes:
        raise AssertionError("not to be")

    host.channel.request(lambda _: [b""], broken, host.answers.append, 1_000)
    conn = host.connected()
    host.take()
    with pytest.raises(AssertionError, match="not to be"):
        host.ready.run(host.channel.received, answer(1, b"fine"))
    [unanswered] = host.answers
    assert isinstance(unanswered, Unanswered)
    [close] = host.take()
    assert isinstance(close, CloseConnection)
    assert close.conn == conn
    assert host.channel.is_idle
