"""The loop on real sockets: frames split anywhere, answers in order, independent clients."""

import socket
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.runtime.echo import EchoNode, framed, serving

from tidelog.model.outbound import LimitConnections
from tidelog.protocol.framing import SHARED_BYTES
from tidelog.runtime.loop import FRAMES_PER_PASS
from tidelog.runtime.transport.limits import Limits


def test_a_frame_is_answered() -> None:
    with serving() as served:
        assert served.client().ask(b"ehello") == b"hello"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=20), st.data())
def test_frames_may_arrive_in_any_cut(payloads: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(framed(b"e" + payload) for payload in payloads)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    with serving() as served:
        client = served.client()
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            client.sock.sendall(stream[start:end])
        assert [client.answer() for _ in payloads] == payloads


def test_frames_beyond_a_connections_share_of_a_pass_are_answered_in_order() -> None:
    payloads = [str(number).encode() for number in range(10 * FRAMES_PER_PASS)]
    with serving() as served:
        client = served.client()
        client.sock.sendall(b"".join(framed(b"e" + payload) for payload in payloads))
        assert [client.answer() for _ in payloads] == payloads


def test_a_frame_larger_than_the_shared_buffer_comes_back_whole() -> None:
    payload = bytes(range(256)) * (3 * SHARED_BYTES // 256) + b"end"
    with serving() as served:
        client = served.client()
        assert client.ask(b"e" + payload) == payload
        assert client.ask(b"enext") == b"next"


def test_a_muted_connection_is_answered_in_order_once_it_is_read_again() -> None:
    with serving() as served:
        client = served.client()
        wait = b"p" + struct.pack(">i", 20)
        client.sock.sendall(framed(b"e1") + framed(wait) + framed(b"e2") + framed(wait))
        client.sock.sendall(framed(b"e3"))
        assert [client.answer() for _ in range(5)] == [b"1", b"late", b"2", b"late", b"3"]


def test_a_request_waits_without_holding_up_others() -> None:
    with serving() as served:
        parked, other = served.client(), served.client()
        parked.sock.sendall(framed(b"p" + struct.pack(">i", 50)))
        assert other.ask(b"enow") == b"now"
        assert parked.answer() == b"late"


def test_a_connection_is_closed_after_its_last_answer() -> None:
    with serving() as served:
        client = served.client()
        client.sock.sendall(framed(b"xbye") + framed(b"enever"))
        assert client.answer() == b"bye"
        assert client.is_closed_by_peer()


def test_a_half_closed_client_still_gets_its_answers() -> None:
    with serving() as served:
        client = served.client()
        client.sock.sendall(framed(b"e1") + framed(b"m" + struct.pack(">i", 8_000_000)))
        client.sock.shutdown(socket.SHUT_WR)
        assert client.answer() == b"1"
        assert len(client.answer()) == 8_000_000
        assert client.is_closed_by_peer()


@pytest.mark.parametrize(
    "garbage",
    [struct.pack(">i", -1), struct.pack(">i", 2**31 - 1), b"GET / HTTP/1.1\r\n\r\n"],
    ids=["negative", "2 GB", "http"],
)
def test_garbage_ends_its_connection_only(garbage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with serving() as served:
        good, bad = served.client(), served.client()
        bad.sock.sendall(framed(b"ebefore") + garbage)
        assert bad.answer() == b"before"
        assert bad.is_closed_by_peer()
        assert good.ask(b"eserved") == b"served"
        host, port = bad.sock.getsockname()
    assert [r.getMessage().count(f"{host}:{port}: closed: ") for r in caplog.records][:1] == [1]
    assert len([r for r in caplog.records if r.levelname == "WARNING"]) == 1


def test_half_a_frame_and_silence_disturbs_nobody() -> None:
    with serving() as served:
        silent, other = served.client(), served.client()
        silent.sock.sendall(framed(b"e" + bytes(1000))[:500])
        assert other.ask(b"eserved") == b"served"


def test_a_bug_in_the_node_ends_the_connection_that_found_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving() as served:
        good, bad = served.client(), served.client()
        bad.sock.sendall(framed(b"!"))
        assert bad.is_closed_by_peer()
        assert good.ask(b"eserved") == b"served"
    assert "a request could not be handled" in caplog.text


def test_a_bug_in_a_request_that_waits_ends_the_connection_of_who_sent_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with serving() as served:
        good, unlucky = served.client(), served.client()
        unlucky.sock.sendall(framed(b"w"))
        while not served.node.unlucky:
            good.ask(b"e")
        assert good.ask(b"bserved") == b"served"
        assert unlucky.is_closed_by_peer()
        assert good.ask(b"bserved on") == b"served on", "whoever is gone cannot be closed again"
    logged = [one for one in caplog.records if "a request could not be handled" in one.message]
    assert len(logged) == 2
    assert all(one.exc_info and str(one.exc_info[1]) == "a bug" for one in logged)


def test_the_node_hears_of_every_connection_and_its_end() -> None:
    with serving() as served:
        client = served.client()
        client.ask(b"e")
        host, port = client.sock.getsockname()
        client.sock.close()
        watcher = served.client()
        while not served.node.disconnected:
            watcher.ask(b"e")
        assert served.node.connected[0] == f"{host}:{port}"
        assert served.node.disconnected == [1]


def test_a_reset_connection_is_forgotten() -> None:
    with serving() as served:
        client, watcher = served.client(), served.client()
        client.ask(b"e")
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sock.close()
        while not served.node.disconnected:
            watcher.ask(b"e")


def test_a_parked_connection_that_is_reset_is_forgotten() -> None:
    with serving() as served:
        client, watcher = served.client(), served.client()
        client.sock.sendall(framed(b"p" + struct.pack(">i", 3_600_000)))
        while served.node.next_deadline() is None:
            watcher.ask(b"e")
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.sock.close()
        while not served.node.disconnected:
            watcher.ask(b"e")


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    with serving(limits=Limits(idle_ms=200)) as served:
        idle, busy = served.client(), served.client()
        while not served.node.disconnected:
            busy.ask(b"e")
        assert idle.is_closed_by_peer()
        assert busy.ask(b"estill") == b"still"


def test_clients_over_the_limit_wait_until_one_leaves(caplog: pytest.LogCaptureFixture) -> None:
    with serving(limits=Limits(connections=LimitConnections(total=2))) as served:
        first, second = served.client(), served.client()
        first.ask(b"e")
        second.ask(b"e")
        third = served.client()
        third.sock.sendall(framed(b"ein"))
        assert second.ask(b"estill") == b"still"
        assert len(served.node.connected) == 2
        first.sock.close()
        assert third.answer() == b"in"
    assert caplog.text.count("max.connections") == 1


def test_an_http_request_is_named_and_shown_the_way(caplog: pytest.LogCaptureFixture) -> None:
    hint = "; metrics are at http://127.0.0.1:14092/metrics"
    with serving(limits=Limits(http_hint=hint)) as served:
        for _ in range(3):
            client = served.client()
            client.sock.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert client.is_closed_by_peer()
        assert served.client().ask(b"estill") == b"still"
    said = f"closed: sent an HTTP request to a Kafka port{hint}"
    assert caplog.text.count(said) == 3


def test_a_controlled_shutdown_ends_the_loop_with_the_nodes_status() -> None:
    with serving() as served:
        client = served.client()
        client.ask(b"e")
        assert served.stop() == 0
        assert client.is_closed_by_peer()


class Stubborn(EchoNode):
    """Ignores a shutdown."""

    def shutdown(self, now: int) -> list:
        return []


def test_a_second_interrupt_only_closes_the_logs() -> None:
    with serving(Stubborn()) as served:
        served.client().ask(b"e")
        served.host.interrupt()
        assert served.client().ask(b"eserved on") == b"served on"
        assert served.stop() == 1
        assert served.node.was_closed


def test_a_third_interrupt_ends_at_once() -> None:
    class VeryStubborn(Stubborn):
        def stop_now(self, now: int) -> list:
            return []

    with serving(VeryStubborn()) as served:
        served.client().ask(b"e")
        served.host.interrupt()
        assert served.client().ask(b"estill") == b"still"
        served.host.interrupt()
        assert served.client().ask(b"eserved on") == b"served on"
        assert served.stop() == 1


def test_the_end_of_the_supervisor_does_not_cut_a_shutdown_short() -> None:
    with serving(Stubborn()) as served:
        served.client().ask(b"e")
        served.host.interrupt()
        served.host.begin_shutdown()
        assert served.client().ask(b"eserved on") == b"served on"
        assert not served.node.was_closed
        assert served.stop() == 1
