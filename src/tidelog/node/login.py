"""How this node authenticates to other nodes: SASL, before the first request."""

from collections.abc import Callable, Generator
from typing import NamedTuple

from kio.schema.sasl_authenticate.v2.request import SaslAuthenticateRequest
from kio.schema.sasl_handshake.v1.request import SaslHandshakeRequest

from tidelog.config.sasl_checks import SASL, login_entry
from tidelog.config.settings import BrokerSettings
from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.protocol.malformed import MalformedMessage
from tidelog.protocol.messages.messages import decode_response, encode_request
from tidelog.security.sasl.plain import PLAIN, plain_message
from tidelog.security.sasl.scram import BadScramAnswer, ScramClient

_HANDSHAKE, _AUTHENTICATE = (17, 1), (36, 2)

LoginSteps = Generator[bytes, memoryview, None]
"""Yields the frames to send, and gets the frames of the answers."""


class PeerLogin(NamedTuple):
    mechanism: str
    user: str
    password: str
    nonce: Callable[[], str]
    """Makes a text that no other exchange uses, for SCRAM."""

    def __repr__(self) -> str:
        return f"PeerLogin({self.mechanism!r}, {self.user!r})"

    def steps(self) -> LoginSteps:
        """The exchange on a new connection; raise MalformedMessage if the peer refuses it."""
        frame = yield encode_request(SaslHandshakeRequest(mechanism=self.mechanism), 1, 0, None)
        _check(decode_response(*_HANDSHAKE, frame).error_code)
        if self.mechanism == PLAIN:
            yield from _exchange(plain_message(self.user, self.password))
            return
        client = ScramClient(self.mechanism, self.user, self.password, self.nonce())
        try:
            answer = yield from _exchange(client.first())
            # This takes a few milliseconds, once per connection to another node.
            answer = yield from _exchange(client.final(answer))
            client.check(answer)
        except BadScramAnswer as bad:
            raise MalformedMessage(f"the login fails: {bad}") from None


def _exchange(message: bytes) -> Generator[bytes, memoryview, bytes]:
    frame = yield encode_request(SaslAuthenticateRequest(auth_bytes=message), 2, 0, None)
    answer = decode_response(*_AUTHENTICATE, frame)
    _check(answer.error_code)
    return bytes(answer.auth_bytes)


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


def peers_security(settings: BrokerSettings, dice: Dice) -> PeersSecurity:
    """How this node connects to the listeners between nodes."""

    def security(listener: str, mechanism: str) -> PeerSecurity:
        login = None
        if settings.security_protocols.get(listener) in SASL:
            options = login_entry(mechanism, listener, settings.raw).options
            login = PeerLogin(mechanism, options["username"], options["password"], nonce)
        return PeerSecurity(login, listener if listener in settings.tls_peers else "")

    def nonce() -> str:
        return dice.uuid().hex + dice.uuid().hex

    controllers, brokers = (
        settings.controller_listener_names[0],
        settings.inter_broker_listener_name,
    )
    return PeersSecurity(
        security(brokers, settings.sasl_mechanism_inter_broker_protocol)
        if settings.is_broker
        else PLAINTEXT,
        security(controllers, settings.sasl_mechanism_controller_protocol),
    )
