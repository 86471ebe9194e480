"""Every enforced key and every field of BrokerSettings is read somewhere in the source."""

import dataclasses
import re
from functools import cache
from pathlib import Path

import pytest

from tidelog.config.key import ConfigKey, ConfigScope, ConfigStatus
from tidelog.config.keys.broker_keys import BROKER_KEYS
from tidelog.config.keys.client_metrics_keys import CLIENT_METRICS_KEYS
from tidelog.config.keys.group_keys import GROUP_KEYS
from tidelog.config.keys.ignored_keys import IGNORED_KEYS, IGNORED_PREFIXES
from tidelog.config.keys.topic_keys import SYNONYMS, TOPIC_KEYS
from tidelog.config.settings import BrokerSettings

SOURCE = Path(__file__).parents[3] / "src" / "tidelog"
TABLES_JOB = SOURCE.parent / "tidelog_pipelines" / "jobs" / "topic_tables"
"""The job that uses the keys of table topics. A broker only checks and stores these keys."""
PACKAGES = ("api", "clusters", "controller", "coordination", "node", "runtime")
"""The packages that run a node. The simulator and the commands only set keys."""

TABLES = (BROKER_KEYS, TOPIC_KEYS, GROUP_KEYS, CLIENT_METRICS_KEYS)
ALL_KEYS = [key for table in TABLES for key in table.values()]
DEFAULTS_OF_TOPIC_KEYS = {
    synonym.name: TOPIC_KEYS[name] for name, synonyms in SYNONYMS.items() for synonym in synonyms
}


@cache
def serving_code() -> str:
    packages = (TABLES_JOB, *(SOURCE / package for package in PACKAGES))
    return "\n".join(path.read_text() for one in packages for path in one.rglob("*.py"))


@cache
def parsing_code() -> str:
    names = ("settings.py", "setting_checks.py", "keys/sasl_keys.py", "tls_settings.py")
    return "\n".join((SOURCE / "config" / name).read_text() for name in names)


def is_read_as_field(name: str) -> bool:
    return re.search(rf"\b_?settings\.{name}\b", serving_code()) is not None


def is_read_as_key(name: str) -> bool:
    quoted = f'"{name}"'
    reads = (f"values[{quoted}]", f"given.get({quoted})")
    return quoted in serving_code() or any(read in parsing_code() for read in reads)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(BrokerSettings)])
def test_every_setting_is_read_outside_the_package(field: str) -> None:
    assert is_read_as_field(field), f"nothing reads BrokerSettings.{field}: remove it"


@pytest.mark.parametrize(
    "key",
    [key for key in ALL_KEYS if key.status is ConfigStatus.ENFORCED],
    ids=lambda key: f"{key.scope.value} {key.name}",
)
def test_every_enforced_key_is_read(key: ConfigKey) -> None:
    is_broker_key = BROKER_KEYS.get(key.name) is key
    if is_broker_key and key.name in DEFAULTS_OF_TOPIC_KEYS:
        return  # the source reads the topic key; the next test compares the statuses
    field = key.name.replace(".", "_")
    is_field = field in {field.name for field in dataclasses.fields(BrokerSettings)}
    assert (is_broker_key and is_field and is_read_as_field(field)) or is_read_as_key(key.name), (
        f"nothing reads {key.name}, so it is not enforced"
    )


@pytest.mark.parametrize("name", DEFAULTS_OF_TOPIC_KEYS)
def test_a_default_has_the_status_of_its_topic_key(name: str) -> None:
    assert BROKER_KEYS[name].support == DEFAULTS_OF_TOPIC_KEYS[name].support


def test_only_keys_that_are_not_enforced_have_a_reason() -> None:
    for key in (*ALL_KEYS, *IGNORED_KEYS.values()):
        assert (key.status is ConfigStatus.ENFORCED) == (not key.support.reason), key.name
    for support in (*(key.support for key in IGNORED_KEYS.values()), *IGNORED_PREFIXES.values()):
        assert support.status is not ConfigStatus.ENFORCED
        assert support.reason.endswith(".")


def test_every_table_has_its_scope() -> None:
    assert {key.scope for key in TOPIC_KEYS.values()} == {ConfigScope.PER_TOPIC}
    assert {key.scope for key in GROUP_KEYS.values()} == {ConfigScope.PER_GROUP}
    assert {key.scope for key in CLIENT_METRICS_KEYS.values()} == {ConfigScope.PER_SUBSCRIPTION}
    broker_scopes = {ConfigScope.STATIC, ConfigScope.PER_BROKER, ConfigScope.CLUSTER_WIDE}
    assert {key.scope for key in (*BROKER_KEYS.values(), *IGNORED_KEYS.values())} == broker_scopes


def test_every_key_is_in_one_table_only() -> None:
    assert not BROKER_KEYS.keys() & IGNORED_KEYS.keys()
    assert not any(key.startswith(tuple(IGNORED_PREFIXES)) for key in IGNORED_KEYS)


@pytest.mark.parametrize(
    "name", ["max.connections", "max.connections.per.ip", "max.connections.per.ip.overrides"]
)
def test_connection_limits_are_enforced(name: str) -> None:
    assert BROKER_KEYS[name].status is ConfigStatus.ENFORCED
    assert f'"{name}"' in (SOURCE / "controller/configs/connection_limits.py").read_text()
