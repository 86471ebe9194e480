"""The TLS settings of one listener, checked as far as that needs no file."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tidelog.config.addresses import SECURITY_PROTOCOLS, BadSetting
from tidelog.config.key import BadValue, ConfigKey
from tidelog.config.keys.sasl_keys import listener_override
from tidelog.config.keys.ssl_keys import SSL_KEYS
from tidelog.config.principal_mapping import BadMappingRule, MappingRule, parse_mapping_rules
from tidelog.config.sasl_checks import SASL

ENCRYPTED = frozenset((SECURITY_PROTOCOLS["SSL"], SECURITY_PROTOCOLS["SASL_SSL"]))

_KEYS = {key.name: key for key in SSL_KEYS}
TLS_1_3_SUITES = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
_SUITE = re.compile(
    r"TLS_(?:(?P<exchange>ECDHE|DHE)_)?(?P<signature>RSA|ECDSA)_WITH_"
    r"(?:AES_(?P<bits>128|256)_(?P<mode>GCM|CBC)_(?P<hash>SHA\d*)|CHACHA20_POLY1305_SHA256)"
)


@dataclass(frozen=True, slots=True)
class Store:
    """A key store or a trust store: a file, or PEM text in the configuration."""

    key: str
    """The configuration key that errors name."""
    type: str
    location: str | None
    password: str | None = field(repr=False)
    key_password: str | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TlsSettings:
    listener: str
    keystore: Store | None
    """The key and the certificates of this node; None if it has none."""
    truststore: Store | None
    """The certificates that this node trusts; None for those that the system trusts."""
    client_auth: str
    checks_host_name: bool
    versions: tuple[str, ...]
    ciphers: str
    """The cipher suites before TLS 1.3, by their names in OpenSSL; empty for the default."""
    mapping_rules: tuple[MappingRule, ...]


def tls_settings(given: Mapping[str, str], listener: str, *, is_sasl: bool) -> TlsSettings:
    """The settings of a listener; raise BadSetting if one is not valid."""
    values = {name: _value(given, listener, key) for name, key in _KEYS.items()}
    keystore, truststore = _keystore(values), _truststore(values)
    client_auth = values["ssl.client.auth"] or "none"
    if is_sasl:
        # As in Kafka, SASL_SSL listeners ask for a certificate only if their own key demands it.
        client_auth = given.get(f"listener.name.{listener.lower()}.ssl.client.auth", "none")
    if client_auth != "none" and truststore is None:
        raise BadSetting(
            "ssl.truststore.location",
            f"it is needed, because clients of {listener} send certificates (ssl.client.auth)",
        )
    versions = tuple(one.strip() for one in (values["ssl.enabled.protocols"] or "").split(","))
    ciphers, versions = _ciphers(values["ssl.cipher.suites"] or "", versions)
    return TlsSettings(
        listener,
        keystore,
        truststore,
        client_auth,
        bool(values["ssl.endpoint.identification.algorithm"]),
        versions,
        ciphers,
        _mapping_rules(values["ssl.principal.mapping.rules"] or "DEFAULT"),
    )


def _mapping_rules(text: str) -> tuple[MappingRule, ...]:
    try:
        return parse_mapping_rules(text)
    except BadMappingRule as bad:
        raise BadSetting("ssl.principal.mapping.rules", str(bad)) from None


def all_tls_settings(
    names: Iterable[str], security: Mapping[str, int], given: Mapping[str, str]
) -> dict[str, TlsSettings]:
    """The settings of the encrypted listeners among `names`; raise BadSetting."""
    return {
        name: tls_settings(given, name, is_sasl=security[name] in SASL)
        for name in names
        if security.get(name) in ENCRYPTED
    }


def check_own_listeners(settings: Mapping[str, TlsSettings]) -> None:
    """Check what a node needs in addition where it accepts encrypted connections."""
    for name, one in settings.items():
        if one.keystore is None:
            raise BadSetting("ssl.keystore.location", f"it is needed, because {name} is encrypted")


def _value(given: Mapping[str, str], listener: str, key: ConfigKey) -> str | None:
    text = listener_override(given, listener, key.name)
    if text is None:
        text = key.default
    elif key.is_sensitive:
        return text
    try:
        key.parse(text)
    except BadValue as bad:
        raise BadSetting(key.name, bad.reason) from None
    return None if text is None else text.strip()


def _keystore(values: Mapping[str, str | None]) -> Store | None:
    chain, key = values["ssl.keystore.certificate.chain"], values["ssl.keystore.key"]
    key_password = values["ssl.key.password"]
    store_type = values["ssl.keystore.type"] or "JKS"
    if chain or key:
        if not (chain and key):
            raise BadSetting("ssl.keystore.key", "set it and ssl.keystore.certificate.chain")
        _check_inline("ssl.keystore", values)
        return Store("ssl.keystore.key", "PEM", None, None, key_password, f"{key}\n{chain}\n")
    location = values["ssl.keystore.location"]
    if not location:
        return None
    password = values["ssl.keystore.password"]
    if store_type == "PEM" and password:
        raise BadSetting(
            "ssl.keystore.password", "a PEM key store has none; set ssl.key.password for its key"
        )
    return Store("ssl.keystore.location", store_type, location, password, key_password)


def _truststore(values: Mapping[str, str | None]) -> Store | None:
    text = values["ssl.truststore.certificates"]
    if text:
        _check_inline("ssl.truststore", values)
        return Store("ssl.truststore.certificates", "PEM", None, None, None, text)
    location = values["ssl.truststore.location"]
    if not location:
        return None
    store_type = values["ssl.truststore.type"] or "JKS"
    return Store("ssl.truststore.location", store_type, location, values["ssl.truststore.password"])


def _check_inline(prefix: str, values: Mapping[str, str | None]) -> None:
    if values[f"{prefix}.type"] != "PEM":
        raise BadSetting(f"{prefix}.type", "set it to PEM, because the certificates are given here")
    if values[f"{prefix}.location"]:
        raise BadSetting(f"{prefix}.location", "remove it, because the certificates are given here")


def _ciphers(text: str, versions: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The suites before TLS 1.3 in OpenSSL's syntax, and the versions that have suites left."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        return "", versions
    newest = [name for name in names if name in TLS_1_3_SUITES]
    older = [_openssl_name(name) for name in names if name not in TLS_1_3_SUITES]
    if newest and len(set(newest)) < len(TLS_1_3_SUITES) and "TLSv1.3" in versions:
        raise BadSetting(
            "ssl.cipher.suites",
            f"list all suites of TLS 1.3 ({', '.join(TLS_1_3_SUITES)}) or none of them",
        )
    has_suites = {"TLSv1.3": bool(newest), "TLSv1.2": bool(older)}
    left = tuple(version for version in versions if has_suites[version])
    if not left:
        raise BadSetting("ssl.cipher.suites", "no suite fits a version of ssl.enabled.protocols")
    return ":".join(older), left


def _openssl_name(name: str) -> str:
    found = _SUITE.fullmatch(name)
    if found is None:
        raise BadSetting("ssl.cipher.suites", f"{name} is not available")
    before = [part for part in (found["exchange"], found["signature"]) if part]
    if not found["exchange"]:
        before = []  # OpenSSL leaves RSA out where it exchanges the keys as well
    if found["bits"] is None:
        return "-".join([*before, "CHACHA20", "POLY1305"])
    mode = ["GCM"] if found["mode"] == "GCM" else []
    return "-".join([*before, f"AES{found['bits']}", *mode, found["hash"]])
