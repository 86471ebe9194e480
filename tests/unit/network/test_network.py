"""The network proxy forwards bytes, ends of streams and refusals unchanged, on real sockets.

This process acts as node 1, which connects and sends, and also runs a server as node 2.
"""

import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from tests.clients.systems import free_block

from tidelog.network import CLIENTS, Network, Place
from tidelog.network.link import HOST

PATIENCE = 60.0
SILENCE = 0.2
"""If nothing arrives for this many seconds, the link counts as silent."""


class Echo:
    """Node 2: sends back all received bytes, until it is closed."""

    def __init__(self, port: int) -> None:
        self.listener = socket.create_server((HOST, port))
        self.held: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, _ = self.listener.accept()
                self.held.append(sock)
                threading.Thread(target=self._echo, args=(sock,), daemon=True).start()

    def _echo(self, sock: socket.socket) -> None:
        with suppress(OSError):
            while said := sock.recv(65536):
                sock.sendall(said)
            sock.close()

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for sock in self.held:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class World:
    def __init__(self) -> None:
        self._ports = free_block()
        first = self._ports.first
        self.place = Place(2, "PLAINTEXT", first, first + 1)
        self.network = Network([self.place])
        self.node = Echo(self.place.port)
        self.network.know({1: os.getpid()})

    def dial(self) -> socket.socket:
        return socket.create_connection((HOST, self.place.proxy_port), PATIENCE)


@pytest.fixture
def world() -> Iterator[World]:
    world = World()
    yield world
    with suppress(OSError):
        world.node.close()
    world.network.close()


def heard(sock: socket.socket, size: int) -> bytes:
    said = b""
    while len(said) < size:
        said += (part := sock.recv(65536))
        assert part, f"ended after {len(said)} of {size} bytes"
    return said


def is_silent(sock: socket.socket) -> bool:
    sock.settimeout(SILENCE)
    try:
        sock.recv(1)
    except TimeoutError:
        return True
    finally:
        sock.settimeout(PATIENCE)
    return False


def test_bytes_and_ends_pass_both_ways(world: World) -> None:
    words = random.Random(1).randbytes(5_000_000)
    with world.dial() as sock:
        threading.Thread(target=sock.sendall, args=(words,), daemon=True).start()
        assert heard(sock, len(words)) == words
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""


def test_a_node_that_does_not_listen_is_refused_and_later_reached(world: World) -> None:
    world.node.close()
    world.network.look()
    with pytest.raises(ConnectionRefusedError):
        world.dial()
    world.node = Echo(world.place.port)
    world.network.look()
    with world.dial() as sock:
        sock.sendall(b"again")
        assert heard(sock, 5) == b"again"


def test_whoever_loses_a_dead_node_is_refused_by_it(world: World) -> None:
    with world.dial() as sock:
        sock.sendall(b"hello")
        assert heard(sock, 5) == b"hello"
        world.node.close()
        with suppress(ConnectionResetError):
            assert sock.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            world.dial()


def test_a_cut_holds_everything_and_a_healed_way_delivers_it(world: World) -> None:
    with world.dial() as sock:
        sock.sendall(b"before")
        assert heard(sock, 6) == b"before"
        world.network.cut([1], [2])
        world.network.cut([2], [1])
        sock.sendall(b"meanwhile")
        assert is_silent(sock)
        with world.dial() as new:
            new.sendall(b"new")
            assert is_silent(new)
            world.network.heal()
            assert heard(new, 3) == b"new"
        assert heard(sock, 9) == b"meanwhile"


def test_a_cut_off_node_that_dies_is_not_missed_until_the_way_is_healed(world: World) -> None:
    with world.dial() as sock:
        sock.sendall(b"hello")
        assert heard(sock, 5) == b"hello"
        world.network.cut([1], [2])
        world.network.cut([2], [1])
        world.node.close()
        assert is_silent(sock)
        with world.dial() as new:
            assert is_silent(new)
        world.network.heal()
        with suppress(ConnectionResetError):
            assert sock.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            world.dial()


def test_a_one_way_cut_lets_the_other_way_pass(world: World) -> None:
    with world.dial() as sock:
        sock.sendall(b"hello")
        assert heard(sock, 5) == b"hello"
        world.network.cut([1], [2])
        (other,) = world.node.held
        other.sendall(b"unasked")
        assert heard(sock, 7) == b"unasked"
        sock.sendall(b"unheard")
        assert is_silent(sock)


def test_a_cut_between_others_concerns_nobody_else(world: World) -> None:
    world.network.know({})
    with world.dial() as sock:
        world.network.cut([1], [2])
        sock.sendall(b"a client")
        assert heard(sock, 8) == b"a client"
        world.network.cut([CLIENTS], [2])
        sock.sendall(b"silence")
        assert is_silent(sock)


def test_slow_bytes_arrive_late_and_whole(world: World) -> None:
    world.network.slow(2, latency_seconds=0.05, bytes_per_second=1_000_000)
    words = random.Random(2).randbytes(200_000)
    with world.dial() as sock:
        began = time.monotonic()
        threading.Thread(target=sock.sendall, args=(words,), daemon=True).start()
        assert heard(sock, len(words)) == words
        assert time.monotonic() - began >= 0.2 + 2 * 0.05
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""
