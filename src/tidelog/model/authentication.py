"""The effects of the handlers that authenticate a connection."""

from dataclasses import dataclass
from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis


@dataclass(slots=True)
class BeginAuthentication:
    """Begin an exchange of a SASL mechanism. -> the error, and the names of the mechanisms."""

    mechanism: str


class SaslAnswer(NamedTuple):
    error: ErrorCode
    message: str | None = None
    auth_bytes: bytes = b""
    lifetime_ms: Millis = 0
    """How long the authentication is valid; 0 means without limit."""


@dataclass(slots=True)
class Authenticate:
    """Pass on one message of the exchange. -> SaslAnswer."""

    auth_bytes: bytes

    def __repr__(self) -> str:
        return "Authenticate(...)"  # the message may have a password
