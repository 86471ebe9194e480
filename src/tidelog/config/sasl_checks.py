"""Checks the SASL settings of the listeners when a node starts."""

from collections.abc import Iterable, Mapping

from tidelog.config.addresses import SECURITY_PROTOCOLS, BadSetting, Listener
from tidelog.config.jaas import BadJaas, JaasEntry, parse_jaas
from tidelog.config.keys.sasl_keys import jaas_text, listener_override

SASL = frozenset((SECURITY_PROTOCOLS["SASL_PLAINTEXT"], SECURITY_PROTOCOLS["SASL_SSL"]))
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
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
        login_entry("PLAIN", name, given)


def check_login(key: str, mechanism: str, name: str, given: Mapping[str, str]) -> None:
    """Check how this node authenticates to other nodes on a SASL listener."""
    if mechanism not in _MECHANISMS:
        choices = ", ".join(_MECHANISMS)
        raise BadSetting(key, f"{mechanism} is not available between nodes; use one of {choices}")
    if mechanism != "PLAIN" and "controller" in key:
        raise BadSetting(
            key,
            f"{mechanism} is not available to controllers, because its users are known only once "
            "the controllers have a quorum; use PLAIN, or SSL with certificates",
        )
    options = login_entry(mechanism, name, given).options
    if not (options.get("username") and options.get("password")):
        raise BadSetting(
            _key(name, mechanism),
            "it needs a username and a password, which this node uses to log in",
        )


def login_entry(mechanism: str, name: str, given: Mapping[str, str]) -> JaasEntry:
    """The JAAS entry of a mechanism on a listener; raise BadSetting if it is not valid."""
    module = _PLAIN_MODULE if mechanism == "PLAIN" else _SCRAM_MODULE
    text = jaas_text(given, name, mechanism)
    if text is None:
        raise BadSetting(_key(name, mechanism), f"it is needed, with the users of {name}")
    try:
        entry = parse_jaas(text)
    except BadJaas as bad:
        raise BadSetting(_key(name, mechanism), str(bad)) from None
    if entry.module != module:
        kind = mechanism.partition("-")[0]
        raise BadSetting(_key(name, mechanism), f"the login module for {kind} is {module}")
    return entry


def _key(name: str, mechanism: str) -> str:
    return f"listener.name.{name.lower()}.{mechanism.lower()}.sasl.jaas.config"
