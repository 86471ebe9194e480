"""Generate docs/configuration.md: `python -m tidelog.config.reference > docs/configuration.md`."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from tidelog.config.key import ConfigKey, ConfigScope, ConfigStatus, Support
from tidelog.config.keys.broker_keys import BROKER_KEYS
from tidelog.config.keys.client_metrics_keys import CLIENT_METRICS_KEYS
from tidelog.config.keys.group_keys import GROUP_KEYS
from tidelog.config.keys.ignored_keys import IGNORED_KEYS, IGNORED_PREFIXES
from tidelog.config.keys.topic_keys import TOPIC_KEYS

_HEAD = """\
# Configuration

Every configuration key that Tidelog accepts, with Apache Kafka's names, defaults and limits.
This page is generated from `src/tidelog/config`, and a test keeps it equal to the code.

| status | meaning | keys |
|---|---|---:|
"""

_AFTER_STATUSES = """
A node logs one line at its start that names the keys of its file that are not enforced. It logs a
warning for each unknown key, and does not start with an invalid value. `broker.id` is accepted as
the old name of `node.id`. A key without a default on this page has none, or its value is not read.
"""

_MEANINGS = {
    ConfigStatus.ENFORCED: "The key has the effect that it has in Kafka.",
    ConfigStatus.NO_EFFECT: "The key is accepted. Kafka needs it, Tidelog does not.",
    ConfigStatus.NOT_YET: "The key is accepted. Tidelog lacks the feature that it configures.",
}

_SECTIONS = {
    ConfigScope.STATIC: (
        "Static keys",
        "Set in `server.properties`, and read when a node starts.",
    ),
    ConfigScope.CLUSTER_WIDE: (
        "Cluster-wide keys",
        "Set in `server.properties`, or while brokers run: for all of them with "
        "`tidelog configs --alter --broker-defaults`, for one with `--broker ID`.",
    ),
    ConfigScope.PER_BROKER: (
        "Keys per broker",
        "Set while brokers run, usually for one with `tidelog configs --alter --broker ID`.",
    ),
    ConfigScope.PER_TOPIC: (
        "Keys per topic",
        "Set when a topic is created, or later with `tidelog configs --alter --topic NAME`. "
        "A broker key can change the default of most of them.",
    ),
    ConfigScope.PER_GROUP: (
        "Keys per group",
        "Set for a group, for example with `kafka-configs.sh --alter --group NAME`.",
    ),
    ConfigScope.PER_SUBSCRIPTION: (
        "Keys per client metrics subscription",
        "Set for a subscription, for example with `kafka-client-metrics.sh --alter --name NAME`.",
    ),
}


class _Row(NamedTuple):
    name: str
    scope: ConfigScope
    default: str
    support: Support
    documentation: str = ""


def configuration_page() -> str:
    """The whole text of docs/configuration.md."""
    rows = sorted(_rows(), key=lambda row: row.name)
    counts = Counter(row.support.status for row in rows)
    statuses = "".join(
        f"| {status.value} | {meaning} | {counts[status]} |\n"
        for status, meaning in _MEANINGS.items()
    )
    sections = "".join(_section(scope, rows) for scope in _SECTIONS)
    return _HEAD + statuses + _AFTER_STATUSES + sections


def _rows() -> Iterator[_Row]:
    for table in (BROKER_KEYS, TOPIC_KEYS, GROUP_KEYS, CLIENT_METRICS_KEYS):
        for key in table.values():
            yield _Row(key.name, key.scope, _default(key), key.support, key.documentation)
    for ignored in IGNORED_KEYS.values():
        yield _Row(ignored.name, ignored.scope, "", ignored.support)
    for prefix, support in IGNORED_PREFIXES.items():
        yield _Row(f"{prefix}*", ConfigScope.STATIC, "", support)


def _default(key: ConfigKey) -> str:
    return f"`{key.default}`" if key.default else ""


def _section(scope: ConfigScope, rows: list[_Row]) -> str:
    title, introduction = _SECTIONS[scope]
    lines = "".join(_line(row) for row in rows if row.scope is scope)
    return (
        f"\n## {title}\n\n{introduction}\n\n"
        f"| key | default | status | what it does |\n|---|---|---|---|\n{lines}"
    )


def _line(row: _Row) -> str:
    text = " ".join(filter(None, (row.documentation, row.support.reason)))
    return f"| `{row.name}` | {row.default} | {row.support.status.value} | {text} |\n"


if __name__ == "__main__":
    print(configuration_page(), end="")
