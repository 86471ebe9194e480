"""SASL PLAIN (RFC 4616): the client sends its name and its password."""

from collections.abc import Mapping
from hmac import compare_digest

from tidelog.security.sasl.exchange import SaslStep

PLAIN = "PLAIN"
_NO_PASSWORD = "\0"


class PlainServer:
    """Checks a password against those of a JAAS entry, in constant time."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = passwords

    def step(self, message: bytes) -> SaslStep:
        try:
            parts = message.decode().split("\0")
        except UnicodeDecodeError:
            return _failed("Invalid SASL/PLAIN response: expected UTF-8")
        if len(parts) != 3:
            count = len(parts)
            return _failed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {count}")
        authorization_id, user, password = parts
        if not user:
            return _failed("Authentication failed: username not specified")
        if not password:
            return _failed("Authentication failed: password not specified")
        # An unknown user costs the same comparison as a wrong password.
        expected = self._passwords.get(user, _NO_PASSWORD)
        if not compare_digest(password.encode(), expected.encode()):
            return _failed("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            return _failed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username"
            )
        return SaslStep(user=user)


def _failed(reason: str) -> SaslStep:
    return SaslStep(failure=reason)


def plain_message(user: str, password: str) -> bytes:
    """The message with which a client authenticates."""
    return b"\0".join((b"", user.encode(), password.encode()))
