"""The broker keys about SASL, and the overrides of them for single listeners."""

from collections.abc import Mapping

from tidelog.config.checks import at_least
from tidelog.config.key import ConfigKey, ConfigType, int32, int64, string, strings

SASL_KEYS = (
    strings(
        "sasl.enabled.mechanisms",
        "GSSAPI",
        "The mechanisms that SASL listeners accept: PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.",
    ),
    ConfigKey(
        "sasl.jaas.config",
        ConfigType.PASSWORD,
        None,
        "The JAAS entry of all SASL listeners, unless listener.name.*.sasl.jaas.config has one.",
    ),
    string(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "The mechanism with which brokers authenticate to each other: PLAIN or SCRAM.",
    ),
    string(
        "sasl.mechanism.controller.protocol",
        "GSSAPI",
        "The mechanism with which nodes authenticate to controllers: PLAIN.",
    ),
    int64(
        "connections.max.reauth.ms",
        0,
        "How long an authentication is valid before a client must repeat it; 0 means always.",
        at_least(0),
    ),
    int32(
        "connection.failed.authentication.delay.ms",
        100,
        "How long a connection stays open after a failed authentication.",
        at_least(0),
    ),
)


def listener_override(given: Mapping[str, str], listener: str, key: str) -> str | None:
    """The value of a key for one listener: listener.name.NAME.KEY, or KEY if there is none."""
    return given.get(f"listener.name.{listener.lower()}.{key}", given.get(key))


def jaas_text(given: Mapping[str, str], listener: str, mechanism: str) -> str | None:
    """The JAAS entry of a mechanism on a listener; None if there is none."""
    key = f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
    return given.get(key, given.get("sasl.jaas.config"))
