"""Decodes clients' requests, carries out the effects of their handlers, and encodes responses.

Invariants: a bad request closes at most its own connection. No request blocks the node for longer
than one slice of work (F63). An OSError that reaches this module comes from the metadata log, and
stops the node.
"""

from collections.abc import Callable, Mapping
from functools import partial
from struct import Struct
from types import GeneratorType
from typing import Any

from tidelog.api.cluster import versions
from tidelog.api.handler import Disconnect, Encoded, Handling, Request
from tidelog.api.listeners import ListenerKind
from tidelog.api.registry import Api
from tidelog.model.disk import FileSlice
from tidelog.model.effects import Effect, Pause
from tidelog.model.ids import NO_OFFSET
from tidelog.model.outbound import Chunk
from tidelog.node.events.counters import Counters
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.client_sessions import Answer, ClientSession
from tidelog.node.requests.context import RequestContext
from tidelog.node.requests.parking import PARKED, Resume
from tidelog.node.requests.sliced_work import SlicedWork
from tidelog.node.requests.slices import Slices, label
from tidelog.protocol.fetch.request import FETCH
from tidelog.protocol.framing import SHARED_BYTES
from tidelog.protocol.malformed import AnswerTooLong, MalformedMessage, TooManyEntries
from tidelog.protocol.messages.messages import (
    RequestHeader,
    decode_request,
    decode_request_header,
    decode_request_steps,
    encode_response_steps,
    response_prefix,
)
from tidelog.protocol.slices import Meter, Steps

Execute = Callable[[Any, Resume, Request], Any]
"""Carries out an effect; returns its result, or PARKED if `resume` gets the result later."""

SHORT_BYTES = 4 * 1024
"""A request up to this size is decoded at once, because it cannot have many elements."""

LONG_ENTRIES = 500
"""A Produce or Fetch with more topics and partitions than this is handled in slices."""

QUEUED_BYTES = 32 * 1024 * 1024
"""The maximum total size of long requests that wait to be decoded, over all connections."""

ANSWER_BYTES = 48 * 1024 * 1024
"""The maximum size of a response without records; the configurations of 10,000 topics fit in it."""

_LENGTH = Struct(">i")


class Requests:
    def __init__(
        self,
        context: RequestContext,
        executors: Mapping[type[Effect], Execute],
        counters: Counters,
        slices: Slices,
        ready: ReadyQueue,
    ) -> None:
        self.ready = ready
        self.context = context
        self._executors = executors
        self.times = counters.requests
        """The durations of the requests, by API key."""
        self._slices = slices
        self._queued_bytes = 0

    def received(self, session: ClientSession, frame: memoryview) -> None:
        """Start one request. The response is sent when the request is done, perhaps at once."""
        try:
            header = decode_request_header(frame)
        except MalformedMessage as malformed:
            if session.take_token is not None:
                session.take_token(frame)
            else:
                session.close(f"sent a malformed request header: {malformed}")
            return
        api = session.apis.get(header.api_key)
        if api is None:
            if session.take_token is not None:
                session.take_token(frame)
            else:
                session.close(f"sent a request with unknown API key {header.api_key}")
        elif not api.min_version <= header.api_version <= api.max_version:
            self._refuse_version(session, header, api)
        else:
            self._begin(session, header, api, frame)

    def _refuse_version(self, session: ClientSession, header: RequestHeader, api: Api) -> None:
        if header.api_key == versions.KEY:
            body = versions.FUTURE_VERSION
            session.fill(session.expect(), _framed(body, versions.KEY, 0, header.correlation_id))
        else:
            session.close(f"sent {api.name} in unsupported version {header.api_version}")

    def _begin(
        self, session: ClientSession, header: RequestHeader, api: Api, frame: memoryview
    ) -> None:
        version, position, codec = header.api_version, header.position, api.codec
        try:
            if codec is not None:
                message = codec.decode(version, frame, position, LONG_ENTRIES)
            elif len(frame) <= SHORT_BYTES:
                most = api.limit.elements
                message = decode_request(header.api_key, version, frame, position, most)
            else:
                self._begin_long(session, header, api, frame)
                return
        except TooManyEntries:
            self._begin_many(session, header, api, frame)
            return
        except MalformedMessage as malformed:
            session.close(_refusal(header, api, malformed.reason))
            return
        request = self.context.request(header.api_version, header.client_id, session, message)
        call = _Call(self, session, session.expect(), api, header, request)
        call.begin()
        if (
            header.api_key == FETCH
            and (len(session.in_work) > 1 or len(frame) > SHORT_BYTES)
            and not call.is_filled
        ):
            # Another parked fetch of this connection would cost too much memory and time, so make
            # the next request wait. Kafka clients send no second fetch before this response.
            call.hold()

    # -- long requests and long responses ----------------------------------------------------------

    def _begin_long(
        self, session: ClientSession, header: RequestHeader, api: Api, frame: memoryview
    ) -> None:
        """Decode the request in slices; the connection's next request starts when it is done."""
        if len(frame) > api.limit.size:
            raise MalformedMessage(f"{len(frame)} bytes, over the limit of {api.limit.size}")
        if not self._has_room(session, api, len(frame)):
            return
        answer, began = session.expect(), self.context.now
        session.hold()
        meter = Meter(api.limit.elements)
        key, version, position = header.api_key, header.api_version, header.position
        # The host's frame is valid only during this call, so decode a copy.
        steps = decode_request_steps(key, version, bytes(frame), position, meter)
        size = len(frame)

        def decoded(message: Any) -> None:
            request = self.context.request(version, header.client_id, session, message)
            call = _Call(self, session, answer, api, header, request)
            call.began, call.is_held = began, True
            call.begin()

        def failed(error: Exception) -> None:
            if not isinstance(error, MalformedMessage):
                raise error
            session.close(_refusal(header, api, error.reason))

        work = SlicedWork(
            self._slices, session, partial(_label, session, header), steps, decoded, failed
        )

        def first() -> None:
            self._queued_bytes -= size
            work.go_on()

        # Requests from other nodes to a controller go before requests from clients.
        self._slices.later(first, _label(session, header), is_urgent=session.is_controllers)

    def _begin_many(
        self, session: ClientSession, header: RequestHeader, api: Api, frame: memoryview
    ) -> None:
        """Handle a Produce or Fetch of many partitions in slices, on its own copy of the frame.

        The connection's next request waits until this request is done.
        """
        if not self._has_room(session, api, len(frame)):
            return
        if len(frame) <= SHARED_BYTES:
            frame = memoryview(bytearray(frame))
        answer, began = session.expect(), self.context.now
        session.hold()

        def begin() -> None:
            self._queued_bytes -= len(frame)
            if session.is_closed:
                return
            codec, version = api.codec, header.api_version
            assert codec is not None
            try:
                message = codec.decode(version, frame, header.position, api.limit.elements)
            except TooManyEntries:
                most = api.limit.elements
                session.close(_refusal(header, api, f"more than {most} topics and partitions"))
                return
            except MalformedMessage as malformed:
                session.close(_refusal(header, api, malformed.reason))
                return
            request = self.context.request(version, header.client_id, session, message)
            call = _Call(self, session, answer, api, header, request)
            call.began, call.is_held = began, True
            self._slices.later(call.begin, _label(session, header))

        self._slices.later(begin, _label(session, header))

    def _has_room(self, session: ClientSession, api: Api, size: int) -> bool:
        """Whether a long request may be queued; if the queue is empty, any size is allowed."""
        if self._queued_bytes and self._queued_bytes + size > QUEUED_BYTES:
            session.close(f"sent {api.name} while too many long requests wait")
            return False
        self._queued_bytes += size
        return True

    def answer(self, call: "_Call", steps: Steps[bytearray]) -> None:
        """Encode the response: a short one at once, a long one in slices.

        The connection's next request waits until the response is encoded. The node therefore never
        encodes several long responses for one connection at the same time.
        """

        session = call.session

        def encoded(frame: bytearray) -> None:
            call.fill([frame])

        def failed(error: Exception) -> None:
            if isinstance(error, AnswerTooLong):
                session.close(
                    f"sent {call.api.name} for an answer of more than {ANSWER_BYTES} bytes"
                )
            else:
                session.fail(error)

        about = partial(_label, session, call.header)
        SlicedWork(self._slices, session, about, steps, encoded, failed).go_on()
        if not call.is_filled:
            call.hold()

    # -- running the handlers ----------------------------------------------------------------------

    def drive(self, call: "_Call", result: Any) -> None:
        """Resume the handler with the result, and continue until the handler waits or is done."""
        handling = call.handling
        assert handling is not None
        executors = self._executors
        try:
            while True:
                effect = handling.send(result)
                result = executors[type(effect)](effect, call.go_on, call.request)
                if result is PARKED:
                    if type(effect) is Pause:
                        call.hold()
                    return
        except StopIteration as done:
            call.finish(done.value)


class _Call:
    """One request that is being handled."""

    __slots__ = (
        "_answer",
        "_requests",
        "api",
        "began",
        "handling",
        "header",
        "is_held",
        "request",
        "session",
    )

    def __init__(
        self,
        requests: Requests,
        session: ClientSession,
        answer: Answer,
        api: Api,
        header: RequestHeader,
        request: Request,
    ) -> None:
        self._requests = requests
        self.session = session
        self._answer = answer
        self.api = api
        self.header = header
        self.request = request
        self.began = request.now
        self.is_held = False
        """Whether the connection's next request waits until this one is done."""
        self.handling: Handling | None = None

    def begin(self) -> None:
        try:
            begun = self.api.handler(self.request)
            if isinstance(begun, GeneratorType):
                self.handling = begun
                self._requests.drive(self, None)
            else:
                self.finish(begun)
        except OSError:
            raise
        except Exception as error:
            self.session.fail(error)

    def go_on(self, result: Any) -> None:
        """Let the handler continue with a result, after the current action has ended."""
        self._requests.ready.add((self._resume, (result,)))

    def _resume(self, result: Any) -> None:
        if self.is_held and self.session.is_closed:
            return  # a request that is handled in slices is dropped when its connection closes
        try:
            requests = self._requests
            requests.context.refresh(self.request)
            requests.drive(self, result)
        except OSError:
            raise
        except Exception as error:
            self.session.fail(error)

    def hold(self) -> None:
        if not self.is_held:
            self.is_held = True
            self.session.hold()

    def finish(self, response: Any) -> None:
        key, version, correlation_id, _, _ = self.header
        self._requests.times[key].took(self.request.now - self.began)
        codec = self.api.codec
        if response is None:
            self.fill(None)
        elif isinstance(response, Disconnect):
            self.session.close(response.reason)
            self.fill(None)
        elif isinstance(response, Encoded):
            self.fill(_framed(response, key, version, correlation_id))
        elif codec is not None:
            self.fill(codec.encode(version, correlation_id, response))
        else:
            offset = NO_OFFSET
            if self.session.is_controllers and ListenerKind.BROKER in self.api.listeners:
                offset = self._requests.context.current.image.offset
            steps = encode_response_steps(
                key, version, correlation_id, response, ANSWER_BYTES, offset
            )
            self._requests.answer(self, steps)

    @property
    def is_filled(self) -> bool:
        return self._answer.is_ready

    def fill(self, chunks: list[Chunk] | None) -> None:
        self.session.fill(self._answer, chunks)
        if self.is_held:
            self.is_held = False
            self.session.release()


def _label(session: ClientSession, header: RequestHeader) -> str:
    name = session.apis[header.api_key].name
    return label(name, header.api_version, header.client_id, session.host)


def _refusal(header: RequestHeader, api: Api, reason: str) -> str:
    client = "" if header.client_id is None else f" (client id {header.client_id[:64]!r})"
    return f"sent a malformed {api.name}{client}: {reason}"


def _framed(body: Encoded, api_key: int, version: int, correlation_id: int) -> list[Chunk]:
    """Add the length and the header to a body that its handler has encoded."""
    prefix = bytearray(response_prefix(api_key, version, correlation_id))
    size = len(prefix) - _LENGTH.size
    for chunk in body.chunks:
        size += chunk.length if isinstance(chunk, FileSlice) else len(chunk)
    _LENGTH.pack_into(prefix, 0, size)
    return [prefix, *body.chunks]
