"""One connection to one broker, with direct access to its frames."""

import socket
import struct
from types import TracebackType
from typing import Any

from tests.clients.schema import Schemas

API_VERSIONS = "ApiVersions"
CLOSED = "closed"
"""`ask` returns this when the broker closed the connection instead of answering."""


class Wire:
    def __init__(self, address: tuple[str, int], schemas: Schemas, timeout: float = 30) -> None:
        self.schemas = schemas
        self.socket = socket.create_connection(address, timeout=timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation = 0

    def __enter__(self) -> "Wire":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    @property
    def name(self) -> str:
        """The client's address, as a broker logs it."""
        host, port = self.socket.getsockname()[:2]
        return f"{host}:{port}"

    # -- sending and receiving frames --------------------------------------------------------------

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive_frame(self) -> bytes | None:
        """One frame without its length, or None if the broker closed the connection."""
        head = self._receive(4)
        return None if head is None else self._receive(struct.unpack(">i", head)[0])

    def _receive(self, size: int) -> bytes | None:
        parts = bytearray()
        while len(parts) < size:
            try:
                part = self.socket.recv(size - len(parts))
            except ConnectionError:
                return None
            if not part:
                return None
            parts += part
        return bytes(parts)

    def is_closed(self) -> bool:
        """Wait until the broker closes the connection or sends a byte; True if it was closed."""
        return self._receive(1) is None

    # -- requests and responses --------------------------------------------------------------------

    def header(self, api: str, version: int) -> bytes:
        self.correlation += 1
        request = self.schemas.request(api)
        return self.schemas.message("RequestHeader").encode(
            {
                "requestApiKey": request.api_key,
                "requestApiVersion": version,
                "correlationId": self.correlation,
                "clientId": "parity",
            },
            2 if version in request.flexible else 1,
        )

    def frame(self, api: str, version: int, body: dict[str, Any]) -> bytes:
        return self.header(api, version) + self.schemas.request(api).encode(body, version)

    def answer(self, api: str, version: int) -> dict[str, Any] | str:
        """The response to the latest request, or CLOSED."""
        frame = self.receive_frame()
        if frame is None:
            return CLOSED
        response = self.schemas.response(api)
        # ApiVersions responses have the oldest header, so that any client can read them.
        flexible = version in response.flexible and api != API_VERSIONS
        (correlation,) = struct.unpack_from(">i", frame)
        assert correlation == self.correlation, f"answer to {correlation}, not {self.correlation}"
        if flexible:
            assert frame[4] == 0, "tagged fields in a response header"
        return response.decode(frame[5 if flexible else 4 :], version)

    def ask(self, api: str, version: int, body: dict[str, Any]) -> dict[str, Any] | str:
        self.send_frame(self.frame(api, version, body))
        return self.answer(api, version)
