"""Checks the SASL settings of the listeners when a node starts."""

from collections.abc import Iterable, Mapping

from tidelog.config.addresses import SECURITY_PROTOCOLS, BadSetting, Listener
from tidelog.config.jaas import BadJaas, JaasEntry, parse_jaas
from tidelog.config.sasl_keys import jaas_text, listener_override

SASL = frozenset((SECURITY_PROTOCOLS["SASL_PLAINTEXT"], SECURITY_PROTOCOLS["SASL_SSL"]))
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def check_listeners(listeners: Iterable[Listener], given: Mapping[str, str]) -> None:
    """Check the mechanisms and the JAAS entry of SASL listeners."""
    for listener in listeners:
        if listener.security_protocol in SASL:
            _check_mechanisms(listener.name, given)


def _check_mechanisms(name: str, given: Mapping[str, str]) -> None:
    text = listener_override(given, name, "sasl.enabled.mechanisms") or "GSSAPI"
    mechanisms = [one.strip() for one in text.split(",") if one.strip()]
    for mechanism in mechanisms:
        if mechanism not in _MECHANISMS:
            raise BadSetting(
                "sasl.enabled.mechanisms",
                f"{mechanism} is not available; use one or more of {', '.join(_MECHANISMS)}",
            )
    if "PLAIN" in mechanisms:
        plain_entry(name, given)


def check_login(key: str, mechanism: str, name: str, given: Mapping[str, str]) -> None:
    """Check how this node authenticates to other nodes on a SASL listener."""
    if mechanism != "PLAIN":
        raise BadSetting(key, f"{mechanism} is not available between nodes; use PLAIN")
    options = plain_entry(name, given).options
    if not (options.get("username") and options.get("password")):
        raise BadSetting(
            _key(name), "it needs a username and a password, which this node uses to log in"
        )


def plain_entry(name: str, given: Mapping[str, str]) -> JaasEntry:
    """The JAAS entry for PLAIN on a listener; raise BadSetting if it is missing or invalid."""
    text = jaas_text(given, name, "PLAIN")
    if text is None:
        raise BadSetting(_key(name), f"it is needed, with the users of {name}")
    try:
        entry = parse_jaas(text)
    except BadJaas as bad:
        raise BadSetting(_key(name), str(bad)) from None
    if entry.module != _PLAIN_MODULE:
        raise BadSetting(_key(name), f"the login module for PLAIN is {_PLAIN_MODULE}")
    return entry


def _key(name: str) -> str:
    return f"listener.name.{name.lower()}.plain.sasl.jaas.config"
