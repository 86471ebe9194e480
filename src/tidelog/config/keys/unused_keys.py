"""The log message about keys that a configuration file sets although they have no effect."""

import re
from collections.abc import Iterable

from tidelog.config.key import ENFORCED, ConfigStatus, Support
from tidelog.config.keys.broker_keys import BROKER_KEYS
from tidelog.config.keys.ignored_keys import IGNORED_KEYS, IGNORED_PREFIXES
from tidelog.config.keys.ssl_keys import SSL_KEYS

_ENFORCED_PER_LISTENER = re.compile(
    r"listener\.name\.[^.]+\."
    r"(max\.connections|sasl\.enabled\.mechanisms|connections\.max\.reauth\.ms"
    r"|(plain|scram-sha-256|scram-sha-512)\.sasl\.jaas\.config"
    rf"|{'|'.join(re.escape(key.name) for key in SSL_KEYS)})"
)


def unused_keys_message(names: Iterable[str]) -> str | None:
    """One line that names the keys without effect, by status; None if there are none.

    Unknown keys are not named here, because `BrokerSettings.warnings` has a message for each.
    """
    statuses = {name: support_of(name).status for name in sorted(names)}
    no_effect, not_yet = (
        ", ".join(name for name, status in statuses.items() if status is wanted)
        for wanted in (ConfigStatus.NO_EFFECT, ConfigStatus.NOT_YET)
    )
    if no_effect and not_yet:
        not_yet = f"; not supported yet: {not_yet}"
    elif not_yet:
        return f"these keys of the configuration are not supported yet: {not_yet}"
    elif not no_effect:
        return None
    return f"these keys of the configuration have no effect here: {no_effect}{not_yet}"


def support_of(name: str) -> Support:
    """How Tidelog supports a key of server.properties; an unknown key counts as enforced."""
    row = BROKER_KEYS.get(name) or IGNORED_KEYS.get(name)
    if row is not None:
        return row.support
    if _ENFORCED_PER_LISTENER.fullmatch(name):
        return ENFORCED
    for prefix, support in IGNORED_PREFIXES.items():
        if name.startswith(prefix):
            return support
    return ENFORCED
