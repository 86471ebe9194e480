"""Encodes and decodes whole messages: headers and bodies, in the shape of their version.

An incoming message is decoded in its own version and then converted to the canonical shape. An
outgoing message is converted from the canonical shape to its version and then encoded. A server
decodes requests and encodes responses, and a client does the reverse. Produce and Fetch have their
own codecs, for speed. This module handles only their headers. A server works in slices (`Steps`),
because a client determines how long its requests and their responses are.
"""

from io import BytesIO
from typing import Any

from kio.serial import entity_writer
from kio.static.protocol import Entity

from tidelog.model.disk import Buffer
from tidelog.model.ids import NO_OFFSET, Offset
from tidelog.protocol.malformed import AnswerTooLong, MalformedMessage
from tidelog.protocol.messages.canonical import canonical_request, canonical_response
from tidelog.protocol.messages.headers import (
    RequestHeader,
    correlation_id_of,
    decode_request_header,
    request_prefix,
    response_position,
    response_prefix,
)
from tidelog.protocol.messages.reader import decode, decode_steps
from tidelog.protocol.messages.schema import request_class, response_class, versions_of
from tidelog.protocol.messages.versions import lift, lift_steps, lower, lower_steps
from tidelog.protocol.messages.writer import write_steps
from tidelog.protocol.pieces import ANY_NUMBER
from tidelog.protocol.slices import Meter, Steps, finish

__all__ = [
    "MalformedMessage",
    "RequestHeader",
    "canonical_request",
    "canonical_response",
    "correlation_id_of",
    "decode_request",
    "decode_request_header",
    "decode_request_steps",
    "decode_response",
    "encode_request",
    "encode_response",
    "encode_response_steps",
    "request_prefix",
    "response_prefix",
    "versions_of",
]


_HAND_TUNED = (0, 1)


def decode_request(
    api_key: int, version: int, frame: Buffer, position: int, max_elements: int = ANY_NUMBER
) -> Any:
    """Decode a request body to canonical shape; the version must be one of `versions_of`."""
    return finish(decode_request_steps(api_key, version, frame, position, Meter(max_elements)))


def decode_request_steps(
    api_key: int, version: int, frame: Buffer, position: int, meter: Meter
) -> Steps[Any]:
    """As `decode_request`, in slices; raises MalformedMessage if there are too many elements."""
    assert api_key not in _HAND_TUNED, "Produce and Fetch have their own codecs"
    entity = yield from decode_steps(request_class(api_key, version), frame, position, meter)
    return (yield from lift_steps(entity, canonical_request(api_key), meter))


def encode_response(api_key: int, version: int, correlation_id: int, response: Any) -> bytes:
    """Encode a whole frame with its length, from a response in canonical shape."""
    return bytes(finish(encode_response_steps(api_key, version, correlation_id, response)))


def encode_response_steps(
    api_key: int,
    version: int,
    correlation_id: int,
    response: Any,
    most_bytes: int = ANY_NUMBER,
    metadata_offset: Offset = NO_OFFSET,
) -> Steps[bytearray]:
    """As `encode_response`, in slices; raises AnswerTooLong beyond `most_bytes`."""
    meter = Meter()
    out = bytearray(response_prefix(api_key, version, correlation_id, metadata_offset))
    lowered = yield from lower_steps(response, response_class(api_key, version), meter)
    for _ in write_steps(out, lowered, meter):
        if len(out) > most_bytes:
            raise AnswerTooLong
        yield
    out[:4] = (len(out) - 4).to_bytes(4, "big")
    return out


def encode_request(request: Any, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """Encode a whole frame with its length, from a request in canonical shape or in `version`."""
    api_key = request.__api_key__
    cls = request_class(api_key, version)
    return _frame(request_prefix(api_key, version, correlation_id, client_id), cls, request)


def decode_response(api_key: int, version: int, frame: Buffer) -> Any:
    """Decode a response body to canonical shape."""
    assert api_key not in _HAND_TUNED, "Produce and Fetch have their own codecs"
    position = response_position(api_key, version, frame)
    entity = decode(response_class(api_key, version), frame, position)
    return lift(entity, canonical_response(api_key))


def _frame(prefix: bytes, cls: type[Entity], message: Entity) -> bytes:
    out = BytesIO()
    out.write(prefix)
    entity_writer(cls)(out, lower(message, cls))
    frame = out.getbuffer()
    frame[:4] = (len(frame) - 4).to_bytes(4, "big")
    return bytes(frame)
