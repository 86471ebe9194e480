"""Arbitrary and almost valid TLS bytes, against a session of a server and its transport.

A server must end the session with `TlsFailure`, or go on; it must not crash, and no byte of a
damaged record may reach the requests.
"""

import ssl

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.runtime.transport import certificates

from tidelog.runtime.transport.tls_contexts import server_context
from tidelog.runtime.transport.tls_session import WANTS_INPUT, TlsFailure, TlsSession

FEW = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
SERVER = server_context(certificates.settings(ssl_client_auth="requested"))
CLIENT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
CLIENT.load_verify_locations(cadata=certificates.authority().certificate_pem)


class Peer:
    """A client whose bytes the fuzzer may change on their way."""

    def __init__(self, version: ssl.TLSVersion) -> None:
        CLIENT.maximum_version = version
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.session = CLIENT.wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")

    def shake_hands(self) -> None:
        try:
            self.session.do_handshake()
        except ssl.SSLError:
            return

    def take(self) -> bytes:
        return self._outgoing.read()

    def give(self, ciphertext: bytes) -> None:
        self._incoming.write(ciphertext)


def changed(sent: bytes, position: int, byte: int) -> bytes:
    if not sent:
        return sent
    position %= len(sent)
    return sent[:position] + bytes([byte]) + sent[position + 1 :]


def received(session: TlsSession, ciphertext: bytes) -> bytes:
    """The plaintext that a server takes from these bytes; raises TlsFailure."""
    session.feed(ciphertext)
    if not session.is_established and not session.shake_hands():
        return b""
    plaintext, buffer = b"", memoryview(bytearray(20_000))
    while (count := session.read_into(buffer)) not in (WANTS_INPUT, 0):
        plaintext += buffer[:count]
    return plaintext


@FEW
@given(st.lists(st.binary(max_size=300), max_size=5), st.booleans())
def test_arbitrary_bytes_never_get_in(pieces: list[bytes], is_like_tls: bool) -> None:
    session = TlsSession(SERVER)
    try:
        for piece in pieces:
            size = len(piece).to_bytes(2, "big")
            assert (
                received(session, b"\x16\x03\x01" + size + piece if is_like_tls else piece) == b""
            )
    except TlsFailure:
        session.take_output()  # the alert
    assert not session.is_established
    session.take_output()


@FEW
@given(
    st.sampled_from([ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]),
    st.integers(0, 3),
    st.integers(0, 10_000),
    st.integers(0, 255),
)
def test_a_damaged_handshake_or_record_gives_no_other_plaintext(
    version: ssl.TLSVersion, flight: int, position: int, byte: int
) -> None:
    peer, session = Peer(version), TlsSession(SERVER)
    plaintext = b""
    try:
        for turn in range(4):
            peer.shake_hands()
            if turn == 3:
                try:
                    peer.session.write(b"a request")
                except ssl.SSLError:
                    return
            sent = peer.take()
            plaintext += received(
                session, changed(sent, position, byte) if turn == flight else sent
            )
            peer.give(session.take_output())
    except TlsFailure:
        session.take_output()  # the alert
    assert plaintext in (b"", b"a request")
    session.farewell()
