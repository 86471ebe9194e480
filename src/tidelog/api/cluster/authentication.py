"""SaslHandshake (key 17), versions 0-1; SaslAuthenticate (36), versions 0-2.

A client of a SASL listener names a mechanism and then exchanges the messages of the mechanism with
the broker (KIP-43, KIP-152). Until it has authenticated, it may send only these two requests and
ApiVersions. If an authentication expires (`connections.max.reauth.ms`, KIP-368), the client repeats
it on the same connection, as the same user. On other listeners, both requests get
ILLEGAL_SASL_STATE, as in Kafka. After version 0 of SaslHandshake, the messages of the mechanism are
bare frames, without SaslAuthenticate. Older clients demand that version, though few use it.
"""

from datetime import timedelta

from kio.schema.sasl_authenticate.v2.response import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1.response import SaslHandshakeResponse

from tidelog.api.handler import Handling, Request
from tidelog.model.authentication import Authenticate, BeginAuthentication, SaslAnswer
from tidelog.model.errors import ErrorCode


def sasl_handshake(request: Request) -> Handling:
    """Chooses the mechanism with which the client authenticates."""
    begun: tuple[ErrorCode, tuple[str, ...]] = yield BeginAuthentication(request.message.mechanism)
    error, mechanisms = begun
    return SaslHandshakeResponse(error_code=error, mechanisms=mechanisms)


def sasl_authenticate(request: Request) -> Handling:
    """Passes on one message of the client's mechanism."""
    answer: SaslAnswer = yield Authenticate(request.message.auth_bytes)
    return SaslAuthenticateResponse(
        error_code=answer.error,
        error_message=answer.message,
        auth_bytes=answer.auth_bytes,
        session_lifetime=timedelta(milliseconds=answer.lifetime_ms),
    )
