"""One TLS session without I/O: ciphertext in, plaintext out, and back.

Invariants: the session holds at most one incomplete record of ciphertext between two calls of
`feed`, if the caller reads until `WANTS_INPUT` after each piece. Renegotiation is off. An error
ends the session; its alert for the peer is in `take_output`.
"""

import ssl
from contextlib import suppress
from typing import NamedTuple, cast

from tidelog.model.disk import Buffer

RECORD_BYTES = 16 * 1024
"""The largest plaintext of one TLS record."""
FEED_BYTES = RECORD_BYTES + 512
"""How much ciphertext to feed at once. OpenSSL never returns the memory of its input buffer, so
larger pieces would make each connection larger for good.
"""

WANTS_INPUT = -1
"""The result of `read_into` if more ciphertext is needed."""


class TlsFailure(OSError):
    """The peer broke the protocol, or its certificate or ours was refused. One short sentence."""


class TlsSession:
    __slots__ = ("_incoming", "_object", "_outgoing", "is_established")

    def __init__(self, context: ssl.SSLContext, host: str | None = None) -> None:
        """A session of a server, or of a client if `host` is the host that it connects to.

        Raises TlsFailure if no certificate can be checked for that host.
        """
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        try:
            self._object = context.wrap_bio(
                self._incoming, self._outgoing, server_side=host is None, server_hostname=host
            )
        except (TypeError, ValueError):  # a zero byte, or what a name cannot have
            raise TlsFailure(f"no certificate can have the host name {host!r}") from None
        self.is_established = False

    def feed(self, ciphertext: Buffer) -> None:
        self._incoming.write(ciphertext)

    def take_output(self) -> bytes:
        """The ciphertext to send to the peer."""
        return self._outgoing.read()

    def shake_hands(self) -> bool:
        """Continue the handshake; returns whether it is complete. Raises TlsFailure."""
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except (ssl.SSLError, ValueError) as error:
            raise TlsFailure(explanation(error)) from None
        self.is_established = True
        return True

    def read_into(self, buffer: memoryview) -> int:
        """Decrypt into the buffer; returns the bytes, 0 at the end, or WANTS_INPUT."""
        try:
            return cast(int, self._object.read(len(buffer), cast(bytearray, buffer)))
        except ssl.SSLWantReadError:
            return WANTS_INPUT
        except ssl.SSLZeroReturnError:
            return 0
        except ssl.SSLError as error:
            raise TlsFailure(explanation(error)) from None

    def encrypt(self, plaintext: Buffer) -> bytes:
        """The ciphertext of all these bytes, after any that the session itself has to send."""
        rest, encrypted = memoryview(plaintext), []
        try:
            while rest:
                rest = rest[self._object.write(rest[:RECORD_BYTES]) :]
                encrypted.append(self._outgoing.read())
        except ssl.SSLError as error:
            raise TlsFailure(explanation(error)) from None
        return encrypted[0] if len(encrypted) == 1 else b"".join(encrypted)

    def farewell(self) -> bytes:
        """The ciphertext that reports to the peer that this side sends no more."""
        # This raises an error if the peer has not sent its farewell yet, or the session has failed.
        with suppress(ssl.SSLError, ValueError):
            self._object.unwrap()
        return self._outgoing.read()

    def certificate(self) -> bytes | None:
        """The certificate of the peer, which is verified, in DER; None if it sent none."""
        return self._object.getpeercert(binary_form=True)


class _Reason(NamedTuple):
    code: str
    sentence: str


_REASONS = (
    _Reason("HTTP_REQUEST", "it sent an HTTP request to a TLS port"),
    _Reason("WRONG_VERSION_NUMBER", "it sent bytes that are not TLS"),
    _Reason("UNSUPPORTED_PROTOCOL", "it offers no version of TLS that ssl.enabled.protocols has"),
    _Reason("NO_SHARED_CIPHER", "it offers no cipher suite that this listener accepts"),
    _Reason("PEER_DID_NOT_RETURN_A_CERTIFICATE", "it sent no certificate"),
    _Reason("UNEXPECTED_EOF_WHILE_READING", "it closed the connection"),
)


def explanation(error: Exception) -> str:
    """An error of OpenSSL in a few words, without the place in OpenSSL's source."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    reason = getattr(error, "reason", None)
    for code, sentence in _REASONS:
        if reason == code:
            return sentence
    if reason is not None and "ALERT" in reason:
        words = reason.replace("SSLV3_", "").replace("TLSV1_", "").replace("TLSV13_", "")
        return f"it reported {words.removeprefix('ALERT_').lower().replace('_', ' ')}"
    return str(reason).lower().replace("_", " ") if reason is not None else str(error)
