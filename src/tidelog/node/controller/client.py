"""Sends requests to the active controller, on this node or on another node.

If no controller can decide on a request, the request is retried until its timeout. A client
therefore sees a change of controller as a delay, not as an error. The response to a metadata change
is sent once this node has applied the change, so that the client can read it from this node.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest
from kio.schema.envelope.v0.response import EnvelopeResponse

from tidelog.api.cluster.envelope import seal
from tidelog.api.handler import Request
from tidelog.api.listeners import ListenerKind, kind_of
from tidelog.controller.decide.refusals import is_refused_by_a_non_controller, refusal
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_OFFSET, Millis, Offset
from tidelog.node.channels import Address, Channels
from tidelog.node.clock import Clock
from tidelog.node.controller.active_controller import ActiveController
from tidelog.node.peers import LONG_ANSWER_BYTES, Channel, Decode, Peers, Unanswered, coded
from tidelog.node.quorum.quorum import Quorum
from tidelog.node.ready import ReadyQueue
from tidelog.node.requests.parking import PARKED, Parked, Resume
from tidelog.node.timers import Timer
from tidelog.protocol.messages.headers import metadata_offset_of
from tidelog.protocol.messages.messages import decode_response, versions_of
from tidelog.security.principal import Principal

RETRY_MS: Millis = 20
LONGEST_RETRY_MS: Millis = 1_000
ANSWER_MS: Millis = 5_000
"""If a controller takes longer than this to answer a request, the request is sent again."""
CATCH_UP_MS: Millis = 1_000
"""The maximum time that a response waits until this node's image contains the change."""
LEAST_PATIENCE_MS: Millis = 1_000
"""The shortest timeout, so that a request with timeout 0 still reaches the controller once."""


class ControllerClient:
    active_controller: ActiveController
    """The controller on this node, set once by `assembly.build_node`."""

    def __init__(
        self,
        quorum: Quorum,
        peers: Peers,
        clock: Clock,
        ready: ReadyQueue,
        patience_ms: Millis,
    ) -> None:
        self._quorum = quorum
        self._clock = clock
        self._timers = clock.timers
        self._ready = ready
        self._patience_ms = patience_ms
        self._channels: Channels[tuple[Address, bool]] = Channels(
            peers, LONG_ANSWER_BYTES, are_controllers=True
        )

    def submit(self, message: Any, resume: Resume, patience_ms: Millis | None = None) -> None:
        """Send a request to the active controller; `resume` gets its response or an error."""
        patience = self._patience_with(message) if patience_ms is None else patience_ms
        self._try(_Submission(message, resume, self._clock.now + patience))

    def change_metadata(self, effect: ChangeMetadata, resume: Resume, request: Request) -> Parked:
        """Pass a request to the active controller.

        If the request arrived on the controller listener, only the controller on this node may
        answer it.
        """
        if kind_of(request) is ListenerKind.CONTROLLER:
            self.active_controller.submit(effect.request, resume, request.conn)
            return PARKED
        message = effect.request
        deadline = self._clock.now + self._patience_with(message)
        origin = None
        if not effect.is_brokers_own:
            origin = _Origin(request.client_id, request.principal, request.client_host)
        self._try(_Submission(message, resume, deadline, is_clients=True, origin=origin))
        return PARKED

    def _catch_up(self, offset: Offset, response: Any, resume: Resume) -> None:
        """Wait until this node's image reaches the controller's offset, but at most CATCH_UP_MS."""
        if self._quorum.image.offset >= offset:
            resume(response)
            return
        wait = _CatchUp(lambda: resume(response))
        wait.timer = self._timers.at(self._clock.now + CATCH_UP_MS, wait.end)
        self._quorum.when_applied(offset + 1, wait.end)

    def _patience_with(self, message: Any) -> Millis:
        """The timeout in the client's request, within limits."""
        timeout: timedelta | None = getattr(message, "timeout", None)
        if timeout is None:
            return self._patience_ms
        return min(self._patience_ms, max(LEAST_PATIENCE_MS, timeout // timedelta(milliseconds=1)))

    def _try(self, submission: "_Submission") -> None:
        def answered(response: Any) -> None:
            if isinstance(response, Unanswered):
                submission.losses += response.was_lost
                self._again(submission)
                return
            offset = NO_OFFSET
            if isinstance(response, _Answer):
                response, offset = response
            if isinstance(response, EnvelopeResponse):
                response = refusal(submission.message, response.error_code)
            if is_refused_by_a_non_controller(response):
                self._again(submission)
            else:
                self._catch_up(offset, response, submission.resume)

        message = submission.message
        if self._quorum.is_active:
            self.active_controller.submit(message, self._ready.later(answered))
            return
        channel = self._channel(submission.is_clients)
        if channel is None:
            self._again(submission)
            return
        key = message.__api_key__
        version = versions_of(key)[-1]
        origin = submission.origin
        if origin is not None:
            encode, opened = coded(seal(message, version, *origin), 0)
            decode: Decode = partial(_decode_envelope, opened, key, version)
        else:
            encode, decode = coded(message, version)
            if submission.is_clients:
                decode = partial(_decode_with_offset, decode, key, version)
        left = max(1, min(ANSWER_MS, submission.deadline - self._clock.now))
        channel.request(encode, decode, answered, left)

    def _again(self, submission: "_Submission") -> None:
        now = self._clock.now
        if now >= submission.deadline:
            submission.resume(refusal(submission.message, ErrorCode.request_timed_out))
            return
        self._timers.at(now + submission.retry_ms, lambda: self._try(submission))

    def _channel(self, is_clients: bool) -> Channel | None:
        """The channel to the known leader.

        Requests from clients use a separate connection. If the controller closes that connection
        because of a client's request, this node's heartbeats are not affected.
        """
        address = self._quorum.leader_address
        if address is None:
            return None
        return self._channels.get((address, is_clients), address)


def _decode_with_offset(decode: Decode, key: int, version: int, frame: memoryview) -> "_Answer":
    return _Answer(decode(frame), metadata_offset_of(key, version, frame))


def _decode_envelope(opened: Decode, key: int, version: int, frame: memoryview) -> "_Answer":
    """The response in an envelope; the envelope itself if the controller refused to open it."""
    envelope: EnvelopeResponse = opened(frame)
    content = envelope.response_data
    if content is None:
        return _Answer(envelope, NO_OFFSET)
    if key == DescribeQuorumRequest.__api_key__:  # a read, for which no image has to catch up
        return _Answer(decode_response(key, version, content), NO_OFFSET)
    offset = metadata_offset_of(key, version, content)
    return _Answer(decode_response(key, version, content), offset)


class _Origin(NamedTuple):
    """The client on whose behalf a request is forwarded."""

    client_id: str | None
    principal: Principal
    host: str


class _Answer(NamedTuple):
    """The response of a controller on another node to a client's request."""

    response: Any
    metadata_offset: Offset
    """The controller's metadata offset; -1 if the response lacks it, as with Apache Kafka."""


@dataclass(slots=True)
class _CatchUp:
    """A response that waits for this node's image, or for its time limit."""

    done: Callable[[], None]
    timer: Timer | None = None

    def end(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.done()


@dataclass(slots=True)
class _Submission:
    message: Any
    resume: Resume
    deadline: Millis
    is_clients: bool = False
    origin: _Origin | None = None
    """The client, unless this node needs the change itself."""
    losses: int = 0
    """How many times the connection was lost during this request, which may be the cause."""

    @property
    def retry_ms(self) -> Millis:
        return min(LONGEST_RETRY_MS, RETRY_MS << max(0, self.losses - 1))
