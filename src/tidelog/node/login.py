"""How this node authenticates to other nodes: SASL PLAIN, before the first request."""

from collections.abc import Generator
from typing import NamedTuple

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from tidelog.config.jaas import parse_jaas
from tidelog.config.sasl_checks import SASL
from tidelog.config.sasl_keys import jaas_text
from tidelog.config.settings import BrokerSettings
from tidelog.model.errors import ErrorCode
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.messages import decode_response, encode_request
from tidelog.security.sasl.plain import PLAIN, plain_message

_HANDSHAKE, _AUTHENTICATE = (17, 1), (36, 2)

LoginSteps = Generator[bytes, memoryview, None]
"""Yields the frames to send, and gets the frames of the answers."""


class PeerLogin(NamedTuple):
    user: str
    password: str

    def __repr__(self) -> str:
        return f"PeerLogin({self.user!r})"

    def steps(self) -> LoginSteps:
        """The exchange on a new connection; raise MalformedMessage if the peer refuses it."""
        frame = yield encode_request(SaslHandshakeRequest(mechanism=PLAIN), 1, 0, None)
        _check(decode_response(*_HANDSHAKE, frame).error_code)
        message = SaslAuthenticateRequest(auth_bytes=plain_message(self.user, self.password))
        frame = yield encode_request(message, 2, 0, None)
        _check(decode_response(*_AUTHENTICATE, frame).error_code)


def _check(error: ErrorCode) -> None:
    if error is not ErrorCode.none:
        raise MalformedMessage(f"the login is refused: {error.name}")


class PeerSecurity(NamedTuple):
    """How this node connects to the brokers or to the controllers."""

    login: PeerLogin | None = None
    tls_listener: str = ""
    """The listener whose TLS settings apply; empty without encryption."""


PLAINTEXT = PeerSecurity()


class PeersSecurity(NamedTuple):
    to_brokers: PeerSecurity = PLAINTEXT
    to_controllers: PeerSecurity = PLAINTEXT


def peers_security(settings: BrokerSettings) -> PeersSecurity:
    """How this node connects to the listeners between nodes."""
    controllers = settings.controller_listener_names[0]
    return PeersSecurity(
        _security(settings, settings.inter_broker_listener_name)
        if settings.is_broker
        else PLAINTEXT,
        _security(settings, controllers),
    )


def _security(settings: BrokerSettings, listener: str) -> PeerSecurity:
    tls_listener = listener if listener in settings.tls_peers else ""
    return PeerSecurity(_login(settings, listener), tls_listener)


def _login(settings: BrokerSettings, listener: str) -> PeerLogin | None:
    if settings.security_protocols.get(listener) not in SASL:
        return None
    text = jaas_text(settings.raw, listener, PLAIN)
    assert text is not None, "the settings are checked"
    options = parse_jaas(text).options
    return PeerLogin(options["username"], options["password"])
