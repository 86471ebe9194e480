"""Authenticates connections: by SASL, or by the certificate of the client on SSL listeners.

Invariants: until a connection has authenticated, it has the three APIs that this takes, and no
others. After a failure, it stays open for `connection.failed.authentication.delay.ms` without any
API, so that a client that guesses passwords is slowed down. A connection never changes its user.
"""

import logging
from collections.abc import Callable, Mapping

from tidelog.api.handler import Request
from tidelog.api.registry import Api
from tidelog.config.jaas import parse_jaas
from tidelog.config.keys.sasl_keys import jaas_text, listener_override
from tidelog.config.principal_mapping import NoMatchingRule, user_of
from tidelog.config.sasl_checks import SASL
from tidelog.config.settings import BrokerSettings
from tidelog.model.authentication import Authenticate, BeginAuthentication, SaslAnswer
from tidelog.model.dice import Dice
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ConnId, Millis
from tidelog.node.clock import Clock
from tidelog.node.metadata.current_image import CurrentImage
from tidelog.node.requests.client_sessions import ClientSession
from tidelog.node.timers import Timer
from tidelog.security.principal import USER, Principal
from tidelog.security.sasl.exchange import SaslServer
from tidelog.security.sasl.plain import PLAIN, PlainServer
from tidelog.security.sasl.scram import MECHANISMS, ScramKeys, ScramServer

log = logging.getLogger(__name__)

BEFORE_AUTHENTICATION = frozenset({17, 18, 36})
"""The keys of SaslHandshake, ApiVersions and SaslAuthenticate."""
_NO_STATE = "SaslAuthenticate is only expected after SaslHandshake, on a SASL listener"


class SaslListener:
    """The mechanisms of one listener, and how to begin an exchange of each."""

    def __init__(self, name: str, settings: BrokerSettings) -> None:
        given = settings.raw
        enabled = listener_override(given, name, "sasl.enabled.mechanisms") or ""
        self.mechanisms = tuple(filter(None, (one.strip() for one in enabled.split(","))))
        reauth = listener_override(given, name, "connections.max.reauth.ms")
        self.lifetime_ms: Millis = int(reauth) if reauth else 0
        text = jaas_text(given, name, PLAIN) if PLAIN in self.mechanisms else None
        self._passwords = {} if text is None else parse_jaas(text).users()

    def server(self, mechanism: str, current: CurrentImage, nonce: Callable[[], str]) -> SaslServer:
        if mechanism == PLAIN:
            return PlainServer(self._passwords)

        def find(user: str) -> ScramKeys | None:
            record = current.image.scram.get((user, MECHANISMS[mechanism][0]))
            if record is None:
                return None
            return ScramKeys(record.salt, record.stored_key, record.server_key, record.iterations)

        return ScramServer(mechanism, find, nonce())


class _Exchange:
    """The state of one connection."""

    __slots__ = ("apis", "expiry", "is_over", "listener", "mechanism", "server", "session")

    def __init__(self, session: ClientSession, listener: SaslListener) -> None:
        self.session = session
        self.listener = listener
        self.apis: Mapping[int, Api] = session.apis
        """The APIs of the connection once it has authenticated."""
        self.mechanism = ""
        self.server: SaslServer | None = None
        self.expiry: Timer | None = None
        self.is_over = False
        """Whether an authentication has failed."""


class Authentication:
    def __init__(
        self, settings: BrokerSettings, clock: Clock, dice: Dice, current: CurrentImage
    ) -> None:
        self._listeners = {
            listener.name: SaslListener(listener.name, settings)
            for listener in settings.listeners
            if listener.security_protocol in SASL
        }
        self._tls_listeners = settings.tls_listeners
        self._delay_ms = settings.connection_failed_authentication_delay_ms
        self._clock = clock
        self._dice = dice
        self._current = current
        self._exchanges: dict[ConnId, _Exchange] = {}

    def opened(self, session: ClientSession, subject: str = "") -> None:
        """Restrict a new connection of a SASL listener, until it has authenticated.

        On other listeners, a client with a certificate is the user that the rules make of its name.
        """
        listener = self._listeners.get(session.listener)
        if listener is None:
            if subject:
                self._take_certificate(session, subject)
        else:
            self._exchanges[session.conn] = exchange = _Exchange(session, listener)
            self._restrict(exchange)

    def _take_certificate(self, session: ClientSession, subject: str) -> None:
        try:
            user = user_of(self._tls_listeners[session.listener].mapping_rules, subject)
        except NoMatchingRule as refused:
            session.apis = {}
            session.close(str(refused))
            return
        session.principal = Principal(USER, user)

    def closed(self, conn: ConnId) -> None:
        exchange = self._exchanges.pop(conn, None)
        if exchange is not None and exchange.expiry is not None:
            exchange.expiry.cancel()

    def _restrict(self, exchange: _Exchange) -> None:
        apis = exchange.apis
        exchange.session.apis = {key: apis[key] for key in BEFORE_AUTHENTICATION if key in apis}

    # -- the effects of the handlers ---------------------------------------------------------------

    def begin(
        self, effect: BeginAuthentication, request: Request
    ) -> tuple[ErrorCode, tuple[str, ...]]:
        exchange = self._exchanges.get(request.conn)
        if exchange is None or exchange.is_over:
            return ErrorCode.illegal_sasl_state, ()
        mechanisms = exchange.listener.mechanisms
        if effect.mechanism not in mechanisms:
            return ErrorCode.unsupported_sasl_mechanism, mechanisms
        exchange.mechanism = effect.mechanism
        exchange.server = exchange.listener.server(
            effect.mechanism, self._current, lambda: self._dice.uuid().hex + self._dice.uuid().hex
        )
        if request.version == 0:
            # The next frames are bare messages. A session without APIs passes them on (KIP-43).
            exchange.session.apis = {}
            exchange.session.take_token = lambda frame: self._take_token(exchange, frame)
        return ErrorCode.none, mechanisms

    def authenticate(self, effect: Authenticate, request: Request) -> SaslAnswer:
        exchange = self._exchanges.get(request.conn)
        if exchange is None or exchange.server is None or exchange.is_over:
            return SaslAnswer(ErrorCode.illegal_sasl_state, _NO_STATE)
        return self._step(exchange, effect.auth_bytes)

    def _take_token(self, exchange: _Exchange, frame: memoryview) -> None:
        """Answer one bare message. As in Kafka, a failure gets no answer."""
        session = exchange.session
        if exchange.server is None:
            return  # the exchange has failed, and the connection will be closed
        answer = self._step(exchange, bytes(frame))
        if answer.error is ErrorCode.none:
            if exchange.server is None:
                session.take_token = None
            size = len(answer.auth_bytes).to_bytes(4, "big")
            session.fill(session.expect(), [size + answer.auth_bytes])

    def _step(self, exchange: _Exchange, message: bytes) -> SaslAnswer:
        assert exchange.server is not None
        step = exchange.server.step(message)
        if step.failure is not None:
            return self._fail(exchange, step.failure)
        if step.user is None:
            return SaslAnswer(ErrorCode.none, auth_bytes=step.answer)
        principal, session = Principal(USER, step.user), exchange.session
        if exchange.expiry is not None and principal != session.principal:
            return self._fail(
                exchange, "Cannot change principals during re-authentication from one to another"
            )
        exchange.server = None
        session.principal, session.apis = principal, exchange.apis
        lifetime_ms = exchange.listener.lifetime_ms
        if lifetime_ms:
            self._expire_later(exchange, lifetime_ms)
        return SaslAnswer(ErrorCode.none, auth_bytes=step.answer, lifetime_ms=lifetime_ms)

    def _expire_later(self, exchange: _Exchange, lifetime_ms: Millis) -> None:
        """Let the connection authenticate again after its lifetime, and do nothing else."""
        if exchange.expiry is not None:
            exchange.expiry.cancel()
        when = self._clock.now + lifetime_ms
        exchange.expiry = self._clock.timers.at(when, lambda: self._restrict(exchange))

    def _fail(self, exchange: _Exchange, reason: str) -> SaslAnswer:
        exchange.server, exchange.is_over = None, True
        session = exchange.session
        session.apis = {}
        log.info("%s failed to authenticate with %s", session.host, exchange.mechanism)
        when = self._clock.now + self._delay_ms
        self._clock.timers.at(when, lambda: session.close("failed to authenticate"))
        return SaslAnswer(ErrorCode.sasl_authentication_failed, reason)
