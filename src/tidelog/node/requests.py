"""Requests of clients: decode, drive the handler through its effects, encode the answer.

Invariant: whatever a client sends, the worst that happens is that its own connection is closed. An
OSError that comes as far as here is the metadata log's, and the node's end.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from types import GeneratorType
from typing import Any

from tidelog.api import versions
from tidelog.api.handler import Disconnect, Encoded, Handling, Request
from tidelog.api.registry import Api
from tidelog.model.disk import FileSlice
from tidelog.model.effects import Effect
from tidelog.model.ids import Millis
from tidelog.model.outbound import Chunk
from tidelog.node.context import RequestContext
from tidelog.node.counters import Counters
from tidelog.node.parking import PARKED, Resume
from tidelog.node.sessions import Answer, Session
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages import (
    RequestHeader,
    decode_request,
    decode_request_header,
    encode_response,
    response_prefix,
)

Execute = Callable[[Any, Resume, Request], Any]
"""Carries out an effect: its result, or PARKED and `resume` is called with it later."""

_LENGTH = Struct(">i")


class Requests:
    def __init__(
        self,
        context: RequestContext,
        executors: Mapping[type[Effect], Execute],
        counters: Counters,
    ) -> None:
        self._context = context
        self._executors = executors
        self._counters = counters

    def received(self, session: Session, frame: memoryview) -> None:
        """Begin one request; its answer leaves now or whenever it is done."""
        try:
            header = decode_request_header(frame)
        except MalformedMessage as malformed:
            session.close(f"sent a malformed request header: {malformed}")
            return
        api = session.apis.get(header.api_key)
        if api is None:
            session.close(f"sent a request with unknown API key {header.api_key}")
        elif not api.supports(header.api_version):
            self._refuse_version(session, header, api)
        else:
            self._begin(session, header, api, frame)

    def _refuse_version(self, session: Session, header: RequestHeader, api: Api) -> None:
        if header.api_key == versions.KEY:
            body = versions.FUTURE_VERSION
            session.fill(session.expect(), _framed(body, versions.KEY, 0, header.correlation_id))
        else:
            session.close(f"sent {api.name} in unsupported version {header.api_version}")

    def _begin(self, session: Session, header: RequestHeader, api: Api, frame: memoryview) -> None:
        version, position, codec = header.api_version, header.position, api.codec
        try:
            if codec is not None:
                message = codec.decode(version, frame, position)
            else:
                message = decode_request(header.api_key, version, frame, position)
        except MalformedMessage as malformed:
            session.close(f"sent a malformed {api.name}: {malformed}")
            return
        request = self._context.request(header.api_version, header.client_id, session, message)
        call = _Call(self, session, session.expect(), api, header, request)
        call.begin()

    def drive(self, call: "_Call", result: Any) -> None:
        """Send the handler its result, and go on until it waits or is done."""
        handling = call.handling
        assert handling is not None
        executors = self._executors
        try:
            while True:
                effect = handling.send(result)
                result = executors[type(effect)](effect, call.go_on, call.request)
                if result is PARKED:
                    return
        except StopIteration as done:
            call.finish(done.value)

    def ended(self, api_key: int, took_ms: Millis) -> None:
        self._counters.requests[api_key].took(took_ms)

    def newest(self, request: Request) -> None:
        """What a handler sees after it was parked is the world of now."""
        self._context.refresh(request)


class _Call:
    """One request in work."""

    __slots__ = (
        "_answer",
        "_api",
        "_began",
        "_header",
        "_requests",
        "_session",
        "handling",
        "request",
    )

    def __init__(
        self,
        requests: Requests,
        session: Session,
        answer: Answer,
        api: Api,
        header: RequestHeader,
        request: Request,
    ) -> None:
        self._requests = requests
        self._session = session
        self._answer = answer
        self._api = api
        self._header = header
        self.request = request
        self._began = request.now
        self.handling: Handling | None = None

    def begin(self) -> None:
        try:
            begun = self._api.handler(self.request)
            if isinstance(begun, GeneratorType):
                self.handling = begun
                self._requests.drive(self, None)
            else:
                self.finish(begun)
        except OSError:
            raise
        except Exception as error:
            self._session.fail(error)

    def go_on(self, result: Any) -> None:
        """What it waited for is there, in the middle of what may be anybody else's event."""
        try:
            self._requests.newest(self.request)
            self._requests.drive(self, result)
        except OSError:
            raise
        except Exception as error:
            self._session.fail(error)

    def finish(self, response: Any) -> None:
        self._requests.ended(self._header.api_key, self.request.now - self._began)
        self._session.fill(self._answer, self._encode(response))

    def _encode(self, response: Any) -> list[Chunk] | None:
        header, codec = self._header, self._api.codec
        key, version, correlation_id = header.api_key, header.api_version, header.correlation_id
        if response is None:
            return None
        if isinstance(response, Disconnect):
            self._session.close(response.reason)
            return None
        if isinstance(response, Encoded):
            return _framed(response, key, version, correlation_id)
        if codec is not None:
            return codec.encode(version, correlation_id, response)
        return [encode_response(key, version, correlation_id, response)]


def _framed(body: Encoded, api_key: int, version: int, correlation_id: int) -> list[Chunk]:
    """Length and header before a body that its handler has encoded."""
    prefix = bytearray(response_prefix(api_key, version, correlation_id))
    size = len(prefix) - _LENGTH.size
    for chunk in body.chunks:
        size += chunk.length if isinstance(chunk, FileSlice) else len(chunk)
    _LENGTH.pack_into(prefix, 0, size)
    return [prefix, *body.chunks]
