"""Recognises clients of other protocols on a Kafka port by their first four bytes.

A client of another protocol sends text or a handshake in place of a frame length. Read as a length,
these bytes exceed every limit. An error message with only this length would not tell operators the
cause.
"""

AN_HTTP_REQUEST = "an HTTP request"

_HTTP = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"TRAC", b"CONN", b"PRI ")
_OTHERS = {
    b"SSH-": "an SSH handshake",
    b"EHLO": "a mail",
    b"HELO": "a mail",
    b"PING": "a Redis command",
    b"*1\r\n": "a Redis command",
    b"USER": "an FTP command",
    b"STAT": "a text command",
    b"\xff\xfb\x1f\xff": "a telnet session",
}
_TEXT = frozenset(b"\t\r\n" + bytes(range(0x20, 0x7F)))


def foreign_protocol(length: int) -> str | None:
    """The protocol whose first four bytes have this value; None if no known protocol does."""
    first = length.to_bytes(4, "big", signed=True)
    if first in _HTTP:
        return AN_HTTP_REQUEST
    if first[0] == 0x16 and first[1] == 0x03:
        return "a TLS handshake"
    if first not in _OTHERS and all(byte in _TEXT for byte in first):
        return f"text that begins with {first.decode()!r}"
    return _OTHERS.get(first)
