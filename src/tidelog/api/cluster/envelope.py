"""Envelope (key 58), version 0 (KIP-590): a broker forwards a client's request to the controller.

The envelope carries the client's principal and address, so the controller decides on the request
with the client's rights and not with the broker's (F86). Only brokers may send envelopes, and only
requests that Kafka forwards may be in them. A node that is not the active controller answers
NOT_CONTROLLER, and the broker tries again.
"""

from collections.abc import Callable, Generator
from ipaddress import ip_address
from types import GeneratorType
from typing import Any, NamedTuple

from kio.schema.envelope.v0.request import EnvelopeRequest
from kio.schema.envelope.v0.response import EnvelopeResponse

from tidelog.api.handler import Disconnect, Handler, Handling, Request
from tidelog.api.slicing import pausing
from tidelog.controller.decide.refusals import is_refused_by_a_non_controller
from tidelog.model.effects import Effect
from tidelog.model.errors import ErrorCode
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.messages import (
    RequestHeader,
    decode_request_header,
    decode_request_steps,
    encode_request,
    encode_response_steps,
)
from tidelog.protocol.slices import Meter
from tidelog.security.principal import Principal, decode_principal, encode_principal

FORWARDABLE = frozenset(
    {19, 20, 30, 31, 33, 37, 38, 39, 40, 43, 44, 45, 46, 49, 51, 55, 57, 64, 80, 81}
)
"""The keys of the APIs that Kafka's brokers forward."""
_LOOPBACK = b"\x7f\0\0\1"


class EnvelopeContent(NamedTuple):
    """How to handle the request in an envelope."""

    handler: Handler
    max_elements: int


FindHandler = Callable[[Request, RequestHeader], EnvelopeContent | None]
"""Returns the handler of the request in an envelope; None if its version is not served."""


def open_envelope(request: Request, find: FindHandler) -> Handling:
    """Handle the request in an envelope, on behalf of the client that has sent it."""
    message = request.message
    try:
        principal = decode_principal(message.request_principal or b"")
    except MalformedMessage:
        return _refused(ErrorCode.principal_deserialization_failure)
    try:
        host = str(ip_address(message.client_host_address))
        header = decode_request_header(memoryview(message.request_data))
        if header.api_key not in FORWARDABLE:
            return _refused(ErrorCode.invalid_request)
        found = find(request, header)
        if found is None:
            return _refused(ErrorCode.unsupported_version)
        inner = yield from _decoded(header, message.request_data, found.max_elements)
    except (ValueError, MalformedMessage):
        return _refused(ErrorCode.invalid_request)
    # The node refreshes this object while the handler waits, so the handler must use it too.
    request.message, request.principal, request.client_host = inner, principal, host
    request.version, request.client_id = header.api_version, header.client_id
    response = found.handler(request)
    if isinstance(response, GeneratorType):
        response = yield from response
    return (yield from _sealed(request, header, response))


def _decoded(header: RequestHeader, frame: bytes, most: int) -> Generator[Effect, Any, Any]:
    key, version, position = header.api_key, header.api_version, header.position
    return pausing(decode_request_steps(key, version, frame, position, Meter(most)))


def _sealed(request: Request, header: RequestHeader, response: Any) -> Handling:
    if isinstance(response, Disconnect):
        return response
    if is_refused_by_a_non_controller(response):
        return _refused(ErrorCode.not_controller)
    frame = yield from pausing(
        encode_response_steps(
            header.api_key,
            header.api_version,
            header.correlation_id,
            response,
            metadata_offset=request.image.offset,
        )
    )
    return EnvelopeResponse(response_data=bytes(memoryview(frame)[4:]), error_code=ErrorCode.none)


def _refused(error: ErrorCode) -> EnvelopeResponse:
    return EnvelopeResponse(response_data=None, error_code=error)


def seal(
    message: Any, version: int, client_id: str | None, principal: Principal, host: str
) -> EnvelopeRequest:
    """Put a client's request into an envelope."""
    try:
        address = ip_address(host).packed
    except ValueError:
        address = _LOOPBACK  # in the simulator, hosts have names
    return EnvelopeRequest(
        request_data=encode_request(message, version, 0, client_id)[4:],
        request_principal=encode_principal(principal),
        client_host_address=address,
    )
