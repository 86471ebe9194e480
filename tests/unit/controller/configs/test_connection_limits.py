"""Kafka's connection limits, from server.properties and from dynamic configurations."""

import pytest
from tests.unit.controller.support import settings

from tidelog.config.checks import host_counts, parse_host_counts
from tidelog.config.key import BadValue
from tidelog.config.settings import BadSetting
from tidelog.controller.configs.connection_limits import connection_limits
from tidelog.controller.image.image import BROKER_RESOURCE, CLUSTER_DEFAULT, ClusterImage
from tidelog.model.outbound import LimitConnections

OWN, ALL = (BROKER_RESOURCE, "1"), (BROKER_RESOURCE, CLUSTER_DEFAULT)


def test_without_a_word_there_is_no_limit() -> None:
    assert connection_limits(ClusterImage(), settings({})) == LimitConnections()


def test_the_file_sets_limits() -> None:
    given = {
        "max.connections": "100",
        "max.connections.per.ip": "10",
        "max.connections.per.ip.overrides": "127.0.0.1:50, db.example:5,[::1]:7",
        "listener.name.plaintext.max.connections": "80",
        "listener.name.other.max.connections": "1",
    }
    assert connection_limits(ClusterImage(), settings(given)) == LimitConnections(
        100, 10, {"127.0.0.1": 50, "db.example": 5, "::1": 7}, {"PLAINTEXT": 80}
    )


def test_what_is_set_on_the_broker_precedes_what_is_set_on_all() -> None:
    configs = {
        ALL: {"max.connections": "20", "max.connections.per.ip": "4"},
        OWN: {"max.connections": "30", "listener.name.plaintext.max.connections": "9"},
    }
    limits = connection_limits(ClusterImage(configs=configs), settings({"max.connections": "1"}))
    assert limits == LimitConnections(30, 4, {}, {"PLAINTEXT": 9})


def test_a_value_that_another_version_let_through_is_passed_over() -> None:
    configs = {OWN: {"max.connections": "many", "listener.name.plaintext.max.connections": "-1"}}
    limits = connection_limits(ClusterImage(configs=configs), settings({"max.connections": "7"}))
    assert limits == LimitConnections(total=7)


@pytest.mark.parametrize("text", ["127.0.0.1", "a:b", ":5", "a b:5", "a:5,,b:6", "a:-1"])
def test_overrides_that_cannot_be_read_are_refused(text: str) -> None:
    with pytest.raises(BadValue):
        host_counts("max.connections.per.ip.overrides", text)
    with pytest.raises(BadSetting, match=r"max\.connections\.per\.ip\.overrides"):
        settings({"max.connections.per.ip.overrides": text})


def test_overrides_may_be_empty() -> None:
    assert parse_host_counts("") == {}


def test_no_connections_at_all_needs_exceptions() -> None:
    with pytest.raises(BadSetting, match=r"max\.connections\.per\.ip: it can be 0 only where"):
        settings({"max.connections.per.ip": "0"})
    settings({"max.connections.per.ip": "0", "max.connections.per.ip.overrides": "127.0.0.1:9"})
