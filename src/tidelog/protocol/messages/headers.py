"""The headers of requests and responses.

When a request header is read, it is not known yet whether its API and version are supported. The
header is therefore read as far as possible, even for an unknown API or version. A prefix consists
of four bytes for the length, followed by a header.
"""

import struct
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

from tidelog.model.disk import Buffer
from tidelog.model.ids import NO_OFFSET, Offset
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.schema import FLEXIBLE_SINCE, NEVER, is_flexible
from tidelog.protocol.pieces import I32, read_tagged_fields, skip_tagged_fields
from tidelog.protocol.text import read_text
from tidelog.protocol.varint import uvarint

API_VERSIONS = 18

_REQUEST = Struct(">hhih")
_RESPONSE = Struct(">ii")
_OFFSET = Struct(">q")
_SHORT_TEXT = 64
"""A client id up to this size is decoded once, because most requests come from a few clients."""

METADATA_OFFSET_TAG = 10_000
"""The tag of a field in a controller's response header: the metadata offset it has applied.

Kafka uses no tags in response headers, and its readers ignore unknown tags.
"""
_ONE_TAG = uvarint(1) + uvarint(METADATA_OFFSET_TAG) + uvarint(_OFFSET.size)


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
            octets = frame[position:end]
            client_id = _known_text(bytes(octets)) if length <= _SHORT_TEXT else read_text(octets)
            position = end
        # The header of an unknown API may continue in an unknown format. The request is refused
        # anyway.
        if version >= FLEXIBLE_SINCE.get(api_key, NEVER):
            position = position + 1 if frame[position] == 0 else skip_tagged_fields(frame, position)
    except (struct.error, IndexError):
        raise MalformedMessage("request header is cut short") from None
    return RequestHeader(api_key, version, correlation_id, client_id, position)


@lru_cache(maxsize=1024)
def _known_text(octets: bytes) -> str:
    return read_text(octets)


def request_prefix(api_key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Four bytes for the length, then the request header."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    tags = b"\0" if is_flexible(api_key, version) else b""
    return bytes(4) + _REQUEST.pack(api_key, version, correlation_id, length) + name + tags


def response_prefix(
    api_key: int, version: int, correlation_id: int, metadata_offset: Offset = NO_OFFSET
) -> bytes:
    """Four bytes for the length, then the response header, with the offset if one is given."""
    prefix = _RESPONSE.pack(0, correlation_id)
    if not _has_tagged_header(api_key, version):
        return prefix
    if metadata_offset == NO_OFFSET:
        return prefix + b"\0"
    return prefix + _ONE_TAG + _OFFSET.pack(metadata_offset)


def metadata_offset_of(api_key: int, version: int, frame: Buffer) -> Offset:
    """The offset of the metadata that the sender of a response has applied; -1 if it is unknown."""
    if not _has_tagged_header(api_key, version):
        return NO_OFFSET
    try:
        found = read_tagged_fields(frame, I32.size)[0].get(METADATA_OFFSET_TAG)
    except IndexError:
        raise MalformedMessage("response header is cut short") from None
    if found is None or found[1] - found[0] != _OFFSET.size:
        return NO_OFFSET
    offset: Offset = _OFFSET.unpack_from(frame, found[0])[0]
    return offset


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
