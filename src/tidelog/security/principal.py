"""A principal: the identity on whose behalf a request is handled.

A principal belongs to a connection and travels with each of its requests. A broker that forwards a
request to the controller sends the principal along, in the bytes of Kafka's DefaultPrincipalData.
"""

from typing import NamedTuple

from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.text import read_text
from tidelog.protocol.varint import read_uvarint, uvarint

USER = "User"
_VERSION = (0).to_bytes(2, "big")


class Principal(NamedTuple):
    type: str
    name: str
    token_authenticated: bool = False
    """Whether the client authenticated with a delegation token."""

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""The principal of a connection that has not authenticated, as in Kafka."""


def parse_principal(text: str) -> Principal:
    """Parse `User:alice`; raise ValueError if the text has no type or no name."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return Principal(kind, name)


def encode_principal(principal: Principal) -> bytes:
    """The principal as a broker sends it to the controller: DefaultPrincipalData, version 0."""
    kind, name = principal.type.encode(), principal.name.encode()
    texts = uvarint(len(kind) + 1) + kind + uvarint(len(name) + 1) + name
    return _VERSION + texts + bytes((principal.token_authenticated,)) + b"\0"


def decode_principal(encoded: bytes) -> Principal:
    """Decode `encode_principal`; raise MalformedMessage if the bytes are anything else."""
    if encoded[:2] != _VERSION:
        raise MalformedMessage("a principal in an unknown version")
    try:
        kind, position = _text(encoded, 2)
        name, position = _text(encoded, position)
        return Principal(kind, name, bool(encoded[position]))
    except IndexError:
        raise MalformedMessage("a principal that is cut short") from None


def _text(encoded: bytes, position: int) -> tuple[str, int]:
    length, position = read_uvarint(encoded, position)
    end = position + length - 1
    if length < 1 or end > len(encoded):
        raise MalformedMessage("a principal that is cut short")
    return read_text(memoryview(encoded)[position:end]), end
