"""A connection to a broker that sends one request at a time and waits for its response.

This client uses one fixed version of each request, which recent brokers support and which includes
topic ids. Before the client sends a request, it checks that the broker supports this version.
"""

import socket
import struct
from itertools import count
from typing import TypeVar

from kio.schema.api_versions.v3.request import ApiVersionsRequest
from kio.schema.api_versions.v3.response import ApiVersionsResponse
from kio.serial.errors import OutOfBoundValue
from kio.static.protocol import RequestPayload, ResponsePayload

from tidelog import __version__
from tidelog.client.wait_notice import NOTICE_SECONDS, WaitNotice
from tidelog.model.errors import ErrorCode
from tidelog.model.user_error import UserError
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.headers import correlation_id_of, response_position
from tidelog.protocol.messages.messages import encode_request
from tidelog.protocol.messages.reader import decode

CLIENT_ID = "tidelog-cli"
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
MAX_RESPONSE_BYTES = 1 << 30

_LENGTH = struct.Struct(">i")

R = TypeVar("R", bound=ResponsePayload)


class ConnectionLost(Exception):
    """The broker is unreachable or closed the connection; a retry may succeed."""


class BrokerConnection:
    """A connection to a broker whose supported versions are known."""

    def __init__(
        self,
        host: str,
        port: int,
        answer_seconds: float = ANSWER_SECONDS,
        notice: WaitNotice | None = None,
    ) -> None:
        self.address = f"{host}:{port}"
        self._answer_seconds = answer_seconds
        self._notice = notice if notice is not None and notice.is_wanted else None
        self._correlation_ids = count()
        try:
            self._socket = socket.create_connection((host, port), CONNECT_SECONDS)
        except UnicodeError:
            raise ConnectionLost(f"{self.address}: not a valid host name") from None
        except OSError as error:
            raise ConnectionLost(f"{self.address}: {error.strerror or error}") from None
        self._socket.settimeout(answer_seconds)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._versions = self._ask_versions()

    def speaks(self, request: type[RequestPayload]) -> bool:
        oldest, newest = self._versions.get(request.__api_key__, (0, -1))
        return oldest <= request.__version__ <= newest

    def ask(self, request: RequestPayload, response: type[R]) -> R:
        """Send a request and wait for its response."""
        if not self.speaks(type(request)):
            raise UserError(
                f"the broker at {self.address} does not support {type(request).__name__} "
                f"version {request.__version__}."
            )
        return self._exchange(request, response)

    def tell(self, request: RequestPayload) -> None:
        """Send a request that has no response, such as a Produce with acks=0."""
        frame = _frame(request, next(self._correlation_ids))
        try:
            self._socket.sendall(frame)
        except OSError as error:
            raise ConnectionLost(f"{self.address}: {error.strerror or error}") from None

    def close(self) -> None:
        self._socket.close()

    def _exchange(self, request: RequestPayload, response: type[R]) -> R:
        assert request.__api_key__ == response.__api_key__
        assert request.__version__ == response.__version__
        correlation_id = next(self._correlation_ids)
        frame = _frame(request, correlation_id)
        try:
            self._socket.sendall(frame)
            answer = self._receive_frame()
            if correlation_id_of(answer) != correlation_id:
                raise MalformedMessage("unexpected correlation id")
            position = response_position(response.__api_key__, response.__version__, answer)
            message: R = decode(response, answer, position)
        except MalformedMessage:
            raise ConnectionLost(f"{self.address} does not speak Kafka's protocol") from None
        except TimeoutError:
            raise ConnectionLost(f"{self.address} did not answer in time") from None
        except OSError as error:
            raise ConnectionLost(f"{self.address}: {error.strerror or error}") from None
        return message

    def _receive_frame(self) -> bytes:
        (length,) = _LENGTH.unpack(self._receive(_LENGTH.size))
        if not 0 <= length <= MAX_RESPONSE_BYTES:
            raise MalformedMessage(f"a frame of {length} bytes")
        return self._receive(length)

    def _receive(self, length: int) -> bytes:
        received = bytearray(length)
        view = memoryview(received)
        filled = 0
        while filled < length:
            got = self._receive_into(view[filled:])
            if got == 0:
                raise ConnectionLost(f"{self.address} closed the connection")
            filled += got
        return bytes(received)

    def _receive_into(self, view: memoryview) -> int:
        if self._notice is None or self._answer_seconds <= NOTICE_SECONDS:
            return self._socket.recv_into(view)
        self._socket.settimeout(NOTICE_SECONDS)
        try:
            return self._socket.recv_into(view)
        except TimeoutError:
            self._notice.say(f"the broker at {self.address} has not answered yet")
            self._socket.settimeout(self._answer_seconds - NOTICE_SECONDS)
            return self._socket.recv_into(view)
        finally:
            self._socket.settimeout(self._answer_seconds)

    def _ask_versions(self) -> dict[int, tuple[int, int]]:
        try:
            answer = self._exchange(
                ApiVersionsRequest(
                    client_software_name="tidelog", client_software_version=__version__
                ),
                ApiVersionsResponse,
            )
        except ConnectionLost:
            self.close()
            raise
        if answer.error_code is not ErrorCode.none:
            raise UserError(f"the broker at {self.address} is too old for this client.")
        return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}


def _frame(request: RequestPayload, correlation_id: int) -> bytes:
    try:
        return encode_request(request, request.__version__, correlation_id, CLIENT_ID)
    except (OutOfBoundValue, struct.error, UnicodeError) as error:
        raise UserError(f"a value does not fit into Kafka's protocol: {error}.") from None
