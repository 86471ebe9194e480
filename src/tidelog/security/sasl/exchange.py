"""The steps of a SASL exchange, on the side of the server."""

from typing import NamedTuple, Protocol


class SaslStep(NamedTuple):
    """The answer to one message of the client."""

    answer: bytes = b""
    user: str | None = None
    """The name of the user, once the exchange has succeeded."""
    failure: str | None = None
    """Why the exchange has failed, in words that the client may read."""


class SaslServer(Protocol):
    """One exchange of one mechanism. After a user or a failure, no further step is taken."""

    def step(self, message: bytes) -> SaslStep: ...
