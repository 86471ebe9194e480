"""The headers of requests and responses.

When a request header is read, it is not known yet whether its API and version are supported. The
header is therefore read as far as possible, even for an unknown API or version. A prefix consists
of four bytes for the length and a header.
"""

import struct
from struct import Struct
from typing import NamedTuple

from tidelog.model.disk import Buffer
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.schema import API_NAMES, is_flexible
from tidelog.protocol.pieces import I32, skip_tagged_fields
from tidelog.protocol.text import read_text

API_VERSIONS = 18

_REQUEST = Struct(">hhih")
_RESPONSE = Struct(">ii")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    position: int
    """The start of the body in the frame."""


def decode_request_header(frame: Buffer) -> RequestHeader:
    try:
        api_key, version, correlation_id, length = _REQUEST.unpack_from(frame)
        position = _REQUEST.size
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(frame):
                raise MalformedMessage(f"request header: a client id of {length} bytes")
            client_id = read_text(frame[position:end])
            position = end
        # The header of an unknown API may continue in an unknown format. The request is refused
        # anyway.
        if api_key in API_NAMES and is_flexible(api_key, version):
            position = skip_tagged_fields(frame, position)
    except (struct.error, IndexError):
        raise MalformedMessage("request header is cut short") from None
    return RequestHeader(api_key, version, correlation_id, client_id, position)


def request_prefix(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Four bytes for the length, then the request header."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    tags = b"\0" if is_flexible(api_key, version) else b""
    return bytes(4) + _REQUEST.pack(api_key, version, correlation_id, length) + name + tags


def response_prefix(api_key: int, version: int, correlation_id: int) -> bytes:
    """Four bytes for the length, then the response header."""
    prefix = _RESPONSE.pack(0, correlation_id)
    return prefix + b"\0" if _has_tagged_header(api_key, version) else prefix


def response_position(api_key: int, version: int, frame: Buffer) -> int:
    """The start of the body in a response frame."""
    if not _has_tagged_header(api_key, version):
        return I32.size
    try:
        return skip_tagged_fields(frame, I32.size)
    except IndexError:
        raise MalformedMessage("response header is cut short") from None


def correlation_id_of(frame: Buffer) -> int:
    """The correlation id of a response."""
    if len(frame) < I32.size:
        raise MalformedMessage("response header is cut short")
    correlation_id: int = I32.unpack_from(frame)[0]
    return correlation_id


def _has_tagged_header(api_key: int, version: int) -> bool:
    # A broker may answer any ApiVersions request in version 0, so the header of an ApiVersions
    # response never has tags.
    return api_key != API_VERSIONS and is_flexible(api_key, version)
