"""Incomplete requests: how much memory they may use, and which of them are completed (F65)."""

import socket
import struct
from contextlib import suppress

import pytest
from tests.unit.runtime.echo import Client, framed, serving

from tidelog.model.ids import ConnId
from tidelog.protocol.framing import FrameSplitter
from tidelog.runtime.transport.connection import Connection
from tidelog.runtime.transport.half_received import ENOUGH_BYTES, HalfReceived
from tidelog.runtime.transport.limits import Limits
from tidelog.runtime.transport.plain import PlainTransport


def connection(conn: ConnId) -> Connection:
    return Connection(conn, PlainTransport(socket.socket()), f"peer {conn}", FrameSplitter(100), 0)


def test_below_the_limit_all_are_read() -> None:
    half = HalfReceived(1_000)
    assert half.changed(connection(1), 500)
    assert half.changed(connection(2), 500)
    assert not half.has_waiting


def test_over_the_limit_only_the_first_is_read_on() -> None:
    half = HalfReceived(1_000)
    first, second, third = map(connection, (1, 2, 3))
    assert half.changed(first, 600)
    assert not half.changed(second, 600)
    assert half.changed(first, 900)
    assert not half.changed(third, 1)
    assert half.take_ready() == []

    assert half.changed(first, 0)
    assert half.take_ready() == [second], "it is the first now"
    assert half.changed(second, 0)
    assert half.take_ready() == [third]
    assert not half.has_waiting


def test_a_connection_that_is_gone_leaves_its_room_to_others() -> None:
    half = HalfReceived(1_000)
    first, second = connection(1), connection(2)
    half.changed(first, 900)
    assert not half.changed(second, 900)
    half.changed(first, 0)
    half.changed(second, 0)
    assert half.take_ready() == []
    assert half.changed(connection(3), 1_000)


def test_while_others_wait_old_requests_are_closed_until_there_is_room() -> None:
    half = HalfReceived(1_000)
    old = [connection(number) for number in range(1, 6)]
    for conn in old:
        half.changed(conn, 300)
    assert half.has_waiting
    assert half.check() == [], "they have begun only now"
    new = connection(9)
    half.changed(new, 300)
    assert half.check() == old
    for conn in old:
        half.changed(conn, 0)
    assert half.take_ready() == [new]
    assert half.changed(new, 310)
    assert half.check() == []


def test_the_first_is_spared_while_it_gets_on() -> None:
    half = HalfReceived(1_000)
    first, second = connection(1), connection(2)
    half.changed(first, 900)
    half.changed(second, 900)
    for check in range(1, 10):
        half.changed(first, 900 + check * ENOUGH_BYTES)
        assert first not in half.check()
    half.changed(first, 901 + 9 * ENOUGH_BYTES)
    assert first in half.check()


def test_f65_half_requests_of_many_clients_take_little_memory_and_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limits = Limits(half_received_bytes=2_000_000)
    begun = struct.pack(">i", 50_000_000) + b"e" + bytes(500_000)
    with serving(limits=limits) as served:
        slow = [served.client() for _ in range(40)]
        other = served.client()
        for client in slow:
            client.sock.setblocking(False)
            with suppress(BlockingIOError):
                client.sock.send(begun)
            assert other.ask(b"eserved") == b"served"
        taken = sum(conn.splitter.filled for conn in served.host.connections)
        assert taken < 4_000_000
        large = Client().connect(served.address)
        large.sock.sendall(framed(b"e" + bytes(3_000_000)))
        assert len(large.answer()) == 3_000_000
        large.sock.close()
    assert "request arrives slowly" in caplog.text
