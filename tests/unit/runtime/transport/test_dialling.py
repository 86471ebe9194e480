"""Connections that the node opens: established, refused, used and lost."""

import socket
import struct

import pytest
from tests.unit.runtime.echo import ANSWER, framed, serving

from tidelog.runtime.transport.limits import Limits


def connect_to(port: int, host: bytes = b"127.0.0.1") -> bytes:
    return b"c" + struct.pack(">i", port) + host


def test_a_peer_is_connected_to_and_talked_with() -> None:
    with serving() as peer, serving() as served:
        client = served.client()
        assert client.ask(connect_to(peer.address[1])) == b"connected"
        assert client.ask(b"rehello peer") == b"hello peer"
        peer.stop()
        assert client.answer() == b"lost"


def test_a_port_where_nobody_listens_refuses() -> None:
    with serving() as served, socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        assert served.client().ask(connect_to(unheard.getsockname()[1])) == b"refused"


def test_what_can_never_be_connected_to_fails_at_once() -> None:
    with serving() as served:
        client = served.client()
        assert client.ask(connect_to(1, b"255.255.255.255")).startswith(b"failed: ")
        assert client.ask(b"eserved") == b"served"


@pytest.mark.parametrize("host", [b"a..b", b"x" * 70, b"a\0b"])
def test_a_host_name_that_cannot_exist_fails_and_others_are_served(host: bytes) -> None:
    """Another node has registered this name, so it must not end this one."""
    with serving() as served:
        client = served.client()
        assert client.ask(connect_to(1, host)).startswith(b"failed: ")
        assert client.ask(b"eserved") == b"served"


def test_the_node_may_hang_up_while_the_peer_has_not_answered_yet() -> None:
    with serving() as served, socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        queued = [socket.socket() for _ in range(3)]
        for sock in queued:
            sock.setblocking(False)
            sock.connect_ex(full.getsockname())
        client = served.client()
        client.sock.sendall(framed(connect_to(full.getsockname()[1])))
        assert client.ask(b"h") == b"hung up"
        assert client.ask(b"eserved") == b"served"
        for sock in queued:
            sock.close()


def test_f60_an_answer_may_be_longer_than_a_request() -> None:
    """An answer may have the size that the node asked for, even above socket.request.max.bytes."""
    with serving() as peer, serving(limits=Limits(request_bytes=1_000)) as served:
        client = served.client()
        client.ask(connect_to(peer.address[1]))
        assert len(client.ask(b"rm" + struct.pack(">i", 300_000))) == 300_000


def test_f60_an_answer_longer_than_was_asked_for_ends_the_connection() -> None:
    with serving() as peer, serving() as served:
        client = served.client()
        client.ask(connect_to(peer.address[1]))
        assert client.ask(b"rm" + struct.pack(">i", ANSWER + 1)) == b"lost"
        assert client.ask(b"eserved") == b"served"
