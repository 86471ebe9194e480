"""The OpenSSL contexts of a node's encrypted listeners, renewed when their files change.

A handshake takes the newest context. Before it does, the files are looked at, at most once per
`LOOK_MS`. If new files cannot be used, the node keeps the old ones and logs why.
"""

import logging
import os
import ssl
from collections.abc import Mapping
from typing import TypeAlias

from tidelog.config.tls_settings import TlsSettings
from tidelog.model.ids import Millis
from tidelog.runtime.transport.tls_stores import BadStore, load_keys, load_trusted

LOOK_MS: Millis = 1_000
CACHED_SESSIONS = 1_000
"""OpenSSL keeps the sessions of TLS 1.2 in a cache that cannot be switched off from Python. Above
this number, a new context takes the place of the old one and its cache.
"""

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_Look: TypeAlias = tuple[tuple[int, int, int] | None, ...]

log = logging.getLogger(__name__)


def server_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of a listener; raises BadStore."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _restrict(context, settings)
    # Without tickets a client is authenticated by its certificate each time that it connects.
    context.options |= ssl.OP_NO_TICKET | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.num_tickets = 0
    assert settings.keystore is not None, "the settings are checked"
    load_keys(context, settings.keystore)
    if settings.client_auth != "none":
        assert settings.truststore is not None, "the settings are checked"
        load_trusted(context, settings.truststore)
    context.verify_mode = _CLIENT_AUTH[settings.client_auth]
    return context


def client_context(settings: TlsSettings) -> ssl.SSLContext:
    """The context of connections to this listener of other nodes; raises BadStore."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = settings.checks_host_name
    _restrict(context, settings)
    if settings.keystore is not None:
        load_keys(context, settings.keystore)
    if settings.truststore is not None:
        load_trusted(context, settings.truststore)
    else:
        context.load_default_certs()
    return context


def _restrict(context: ssl.SSLContext, settings: TlsSettings) -> None:
    versions = [_VERSIONS[name] for name in settings.versions]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    # As in Java, each certificate of the trust store is trusted, also one that is not a root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if settings.ciphers:
        context.set_ciphers(settings.ciphers)


class _Renewable:
    """One context and the files that it was made from."""

    def __init__(self, settings: TlsSettings, *, is_server: bool) -> None:
        self._make = server_context if is_server else client_context
        self._settings = settings
        self._looked_at: Millis = 0
        self._seen = self._look()
        self._context = self._make(settings)

    def get(self, now: Millis) -> ssl.SSLContext:
        if now - self._looked_at >= LOOK_MS:
            self._looked_at = now
            seen = self._look()
            if seen != self._seen:
                self._seen = seen
                self._renew("its files have changed")
            elif self._context.session_stats()["number"] > CACHED_SESSIONS:
                self._renew("")
        return self._context

    def _renew(self, why: str) -> None:
        name = self._settings.listener
        try:
            self._context = self._make(self._settings)
        except BadStore as bad:
            log.error("%s keeps its old certificates: %s", name, bad)
            return
        if why:
            log.info("%s uses new certificates, because %s", name, why)

    def _look(self) -> _Look:
        stores = (self._settings.keystore, self._settings.truststore)
        return tuple(_stamp(one.location) for one in stores if one is not None and one.location)


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class TlsContexts:
    """The contexts of the listeners of this node, and of those of other nodes it connects to."""

    def __init__(
        self,
        own: Mapping[str, TlsSettings] | None = None,
        others: Mapping[str, TlsSettings] | None = None,
    ) -> None:
        """Raises BadStore if a key store or a trust store cannot be used."""
        self._servers = {
            name: _Renewable(settings, is_server=True) for name, settings in (own or {}).items()
        }
        self._clients = {
            name: _Renewable(settings, is_server=False) for name, settings in (others or {}).items()
        }

    def encrypts(self, listener: str) -> bool:
        return listener in self._servers

    def server(self, listener: str, now: Millis) -> ssl.SSLContext:
        return self._servers[listener].get(now)

    def client(self, listener: str, now: Millis) -> ssl.SSLContext:
        return self._clients[listener].get(now)


NO_TLS = TlsContexts()
