"""Other protocols that reach a Kafka port by mistake are recognized by name."""

import pytest

from tidelog.protocol.foreign_protocols import foreign_protocol
from tidelog.protocol.framing import BadFrame, FrameSplitter

HELLO = bytes.fromhex("160301020001000001fc0303")


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        (b"GET /metrics HTTP/1.1\r\n\r\n", "an HTTP request"),
        (b"POST / HTTP/1.0\r\n\r\n", "an HTTP request"),
        (b"HEAD / HTTP/1.1\r\n\r\n", "an HTTP request"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "an HTTP request"),
        (HELLO, "a TLS handshake"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "an SSH handshake"),
        (b"EHLO example.org\r\n", "a mail"),
        (b"hello world\n", "text that begins with 'hell'"),
        (b'{"json": 1}', "text that begins with '{\"js'"),
        (b"*1\r\n$4\r\nPING\r\n", "a Redis command"),
    ],
)
@pytest.mark.parametrize("cut", [0, 2, 3])
def test_a_foreign_protocol_is_named(sent: bytes, named: str, cut: int) -> None:
    splitter = FrameSplitter(100 * 1024 * 1024)
    splitter.feed(memoryview(sent[:cut]))
    with pytest.raises(BadFrame) as refused:
        splitter.feed(memoryview(sent[cut:]))
    assert refused.value.reason == f"sent {named} to a Kafka port"


def test_a_length_that_nobody_knows_stays_a_number() -> None:
    assert foreign_protocol(0x7F00_0001) is None
    assert foreign_protocol(-5) is None
    with pytest.raises(BadFrame, match="negative frame length -5"):
        FrameSplitter(100).feed(memoryview((-5).to_bytes(4, "big", signed=True)))
    with pytest.raises(BadFrame, match="frame length 101 is over the limit of 100"):
        FrameSplitter(100).feed(memoryview((101).to_bytes(4, "big")))


def test_a_frame_that_is_allowed_may_begin_as_it_likes() -> None:
    size = int.from_bytes(b"GET ", "big")
    assert FrameSplitter(size).feed(memoryview(b"GET /")) == []
