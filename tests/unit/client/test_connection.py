"""A client reports that its peer is not a broker. It does not hang or use up the memory."""

import socket
from collections.abc import Iterator
from threading import Thread

import pytest

from tidelog.client.connection import BrokerConnection, ConnectionLost


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not speak Kafka's protocol"),
        (b"\x7f\xff\xff\xff", "does not speak Kafka's protocol"),
        (b"\xff\xff\xff\xff", "does not speak Kafka's protocol"),
        (b"\0\0\0\0", "does not speak Kafka's protocol"),
        (b"\0\0\0\x04\0\0\0\x63", "does not speak Kafka's protocol"),
        (b"\0\0\0\x08\0\0\0\0\0\0\xff\xff", "does not speak Kafka's protocol"),
        (b"\0\0\0\x08\0\0", "closed the connection"),
        (b"", "closed the connection"),
    ],
)
def test_garbage_is_no_broker(server: socket.socket, answer: bytes, reason: str) -> None:
    def speak() -> None:
        peer, _ = server.accept()
        with peer:
            peer.recv(1024)
            peer.sendall(answer)

    speaker = Thread(target=speak)
    speaker.start()
    with pytest.raises(ConnectionLost, match=reason):
        BrokerConnection(*server.getsockname())
    speaker.join()
