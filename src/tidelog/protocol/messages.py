"""Whole messages: headers, bodies and the choice of their shapes.

What comes in is decoded in its own version and lifted to the canonical shape; what goes out is
lowered and encoded. A server decodes requests and encodes responses, a client the reverse. Produce
and Fetch have codecs of their own, for speed; only their headers pass here.
"""

import struct
from io import BytesIO
from struct import Struct
from typing import Any, NamedTuple

from kio.serial import entity_writer

from tidelog.model.disk import Buffer
from tidelog.protocol.canonical import canonical_request, canonical_response
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.reader import decode
from tidelog.protocol.schema import (
    API_NAMES,
    is_flexible,
    request_class,
    response_class,
    versions_of,
)
from tidelog.protocol.varint import read_uvarint
from tidelog.protocol.versions import lift, lower

__all__ = [
    "MalformedMessage",
    "RequestHeader",
    "canonical_request",
    "canonical_response",
    "correlation_id_of",
    "decode_request",
    "decode_request_header",
    "decode_response",
    "encode_request",
    "encode_response",
    "request_prefix",
    "response_position",
    "response_prefix",
    "versions_of",
]

API_VERSIONS = 18

_REQUEST_PREFIX = Struct(">hhih")
_LENGTH = Struct(">i")
_RESPONSE_PREFIX = Struct(">ii")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    position: int
    """Where the body begins in the frame."""


def decode_request_header(frame: Buffer) -> RequestHeader:
    """Read as far as the body, also for an API key or a version that no one knows."""
    try:
        api_key, version, correlation_id, length = _REQUEST_PREFIX.unpack_from(frame)
        position = _REQUEST_PREFIX.size
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(frame):
                raise MalformedMessage(f"request header: a client id of {length} bytes")
            client_id = str(frame[position:end], "utf-8", "replace")
            position = end
        # What follows in the header of an unknown API is anyone's guess, and it is refused anyway.
        if api_key in API_NAMES and is_flexible(api_key, version):
            position = _skip_tagged_fields(frame, position)
    except (struct.error, IndexError):
        raise MalformedMessage("request header is cut short") from None
    return RequestHeader(api_key, version, correlation_id, client_id, position)


def _skip_tagged_fields(frame: Buffer, position: int) -> int:
    count, position = read_uvarint(frame, position)
    for _ in range(count):
        _, position = read_uvarint(frame, position)
        size, position = read_uvarint(frame, position)
        position += size
    if position > len(frame):
        raise MalformedMessage("header: a tagged field overruns the frame")
    return position


def decode_request(api_key: int, version: int, frame: Buffer, position: int) -> Any:
    """The body of a request, in canonical shape; the version must be one of `versions_of`."""
    return lift(
        decode(request_class(api_key, version), frame, position), canonical_request(api_key)
    )


def encode_response(api_key: int, version: int, correlation_id: int, response: Any) -> bytes:
    """A whole frame, length included, from a response in canonical shape."""
    cls = response_class(api_key, version)
    out = BytesIO()
    out.write(response_prefix(api_key, version, correlation_id))
    entity_writer(cls)(out, lower(response, cls))
    return _framed(out)


def encode_request(request: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """A whole frame, length included, from a request in canonical shape or in that of `version`."""
    cls = request_class(request.__api_key__, version)
    out = BytesIO()
    out.write(request_prefix(request.__api_key__, version, correlation_id, client_id))
    entity_writer(cls)(out, lower(request, cls))
    return _framed(out)


def correlation_id_of(frame: Buffer) -> int:
    """Which request a response frame answers."""
    if len(frame) < _LENGTH.size:
        raise MalformedMessage("response header is cut short")
    correlation_id: int = _LENGTH.unpack_from(frame)[0]
    return correlation_id


def decode_response(api_key: int, version: int, frame: Buffer) -> Any:
    """The body of a response, in canonical shape."""
    position = response_position(api_key, version, frame)
    entity = decode(response_class(api_key, version), frame, position)
    return lift(entity, canonical_response(api_key))


def request_prefix(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Four bytes for the length, then the header."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    tags = b"\0" if is_flexible(api_key, version) else b""
    return b"\0\0\0\0%b%b%b" % (
        _REQUEST_PREFIX.pack(api_key, version, correlation_id, length),
        name,
        tags,
    )


def response_prefix(api_key: int, version: int, correlation_id: int) -> bytes:
    """Four bytes for the length, then the header."""
    prefix = _RESPONSE_PREFIX.pack(0, correlation_id)
    return prefix + b"\0" if _has_tagged_header(api_key, version) else prefix


def response_position(api_key: int, version: int, frame: Buffer) -> int:
    """Where the body of a response begins in its frame."""
    if not _has_tagged_header(api_key, version):
        return _LENGTH.size
    try:
        return _skip_tagged_fields(frame, _LENGTH.size)
    except IndexError:
        raise MalformedMessage("response header is cut short") from None


def _has_tagged_header(api_key: int, version: int) -> bool:
    # A client that asks for ApiVersions does not know yet whether it will be answered in version 0.
    return api_key != API_VERSIONS and is_flexible(api_key, version)


def _framed(out: BytesIO) -> bytes:
    frame = out.getbuffer()
    _LENGTH.pack_into(frame, 0, len(frame) - 4)
    return bytes(frame)
