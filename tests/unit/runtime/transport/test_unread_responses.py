"""Clients that read slowly are slowed down. Only clients that read nothing are closed (F96)."""

import socket
import struct
from collections.abc import Iterator

import pytest
from tests.unit.runtime.echo import framed, serving

from tidelog.protocol.framing import Buffers, FrameSplitter
from tidelog.runtime.transport.connection import Connection
from tidelog.runtime.transport.limits import Limits
from tidelog.runtime.transport.plain import PlainTransport
from tidelog.runtime.transport.unread_responses import PATIENCE_MS, UnreadResponses

MOST = 1_000


@pytest.fixture
def conns() -> Iterator[list[Connection]]:
    socks = [socket.socket() for _ in range(4)]
    buffers = Buffers()

    def splitter() -> FrameSplitter:
        return FrameSplitter(1_000, buffers, None)

    yield [
        Connection(
            number, PlainTransport(sock), f"client {number}", FrameSplitter(1_000, buffers, None), 0
        )
        for number, sock in enumerate(socks, 1)
    ]
    for sock in socks:
        sock.close()


def test_much_is_unread_from_the_limit_on_until_half_of_it_is_read(
    conns: list[Connection],
) -> None:
    unread = UnreadResponses(MOST, per_connection=100)
    assert not unread.changed(conns[0], MOST)
    assert unread.changed(conns[1], 1)
    assert (unread.is_much, unread.per_connection) == (True, 0)
    assert not unread.changed(conns[0], MOST // 2)
    assert unread.changed(conns[1], 0)
    assert (unread.is_much, unread.per_connection) == (False, 100)


def test_f96_those_who_read_are_not_closed_however_slowly(conns: list[Connection]) -> None:
    unread = UnreadResponses(MOST, per_connection=100)
    for conn in conns[:3]:
        unread.changed(conn, MOST)
        conn.active_at = PATIENCE_MS
    assert not unread.is_far_over
    assert unread.idle(conns, PATIENCE_MS + 1) == []


def test_f96_those_who_read_nothing_are_closed_while_others_wait(conns: list[Connection]) -> None:
    unread = UnreadResponses(MOST, per_connection=100)
    for conn, unsent in zip(conns, (700, 900, 100, 0), strict=True):
        unread.changed(conn, unsent)
    conns[0].active_at = PATIENCE_MS
    assert unread.idle(conns, PATIENCE_MS - 1) == []
    assert unread.idle(conns, PATIENCE_MS) == [conns[1], conns[2]]


def test_f96_nobody_is_closed_within_the_limit(conns: list[Connection]) -> None:
    unread = UnreadResponses(MOST, per_connection=100)
    unread.changed(conns[0], MOST)
    assert unread.idle(conns, 10 * PATIENCE_MS) == []


def test_f96_clients_that_read_get_answers_of_more_than_the_limit_together() -> None:
    with serving(limits=Limits(stalled_bytes=9_000_000)) as served:
        other = served.client()
        clients = [served.client() for _ in range(3)]
        for client in clients:
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_000_000)
            client.sock.sendall(framed(b"m" + struct.pack(">i", 12_000_000)))
        while True not in served.node.is_much_unread:
            assert other.ask(b"eserved") == b"served"
        for client in clients:
            assert len(client.answer()) == 12_000_000
        while served.node.is_much_unread[-1]:
            assert other.ask(b"eserved") == b"served"
        assert not served.node.disconnected
