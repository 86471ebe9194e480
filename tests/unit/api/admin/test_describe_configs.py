"""DescribeConfigs and ListConfigResources."""

import pytest
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from tests.unit.api.support import ask, drive, image, request, settings

from tidelog.api.admin import config_resources, describe_configs
from tidelog.model.errors import ErrorCode

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
DYNAMIC_TOPIC, DYNAMIC_BROKER, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5
LONG, LIST = 5, 7


def describe(*resources: tuple, version: int = 4, fields=None, **changes):
    message = ask(
        32,
        resources=tuple(
            DescribeConfigsResource(
                resource_type=kind, resource_name=name, configuration_keys=tuple(keys) or None
            )
            for kind, name, *keys in resources
        ),
        **(fields or {}),
    )
    return drive(describe_configs.handle(request(message, version, **changes))).results


def only(results):
    [result] = results
    assert (result.error_code, result.error_message) == (ErrorCode.none, "")
    return {config.name: config for config in result.configs}


def synonyms(config) -> list[tuple]:
    return [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms]


def test_a_topics_configuration_is_complete():
    configs = only(describe((TOPIC, "orders")))

    assert len(configs) >= 30
    retention = configs["retention.ms"]
    assert (retention.value, retention.config_source) == ("604800000", DEFAULT)
    assert (retention.read_only, retention.is_sensitive) == (False, False)
    assert retention.config_type == LONG
    assert configs["cleanup.policy"].config_type == LIST
    assert {config.synonyms for config in configs.values()} == {()}
    assert {config.documentation for config in configs.values()} == {None}


def test_keys_that_were_asked_for_and_exist():
    assert list(only(describe((TOPIC, "orders", "retention.ms", "nosuch")))) == ["retention.ms"]


def test_where_a_value_comes_from_and_what_it_overrides():
    configured = image(
        configs={
            (TOPIC, "orders"): {"segment.bytes": "2097152"},
            (BROKER, "1"): {"log.segment.bytes": "3145728"},
            (BROKER, ""): {"log.segment.bytes": "4194304"},
        }
    )

    segment = only(
        describe(
            (TOPIC, "orders", "segment.bytes"),
            fields={"include_synonyms": True},
            image=configured,
            settings=settings(log_segment_bytes="5242880"),
        )
    )["segment.bytes"]

    assert (segment.value, segment.config_source) == ("2097152", DYNAMIC_TOPIC)
    assert synonyms(segment) == [
        ("segment.bytes", "2097152", DYNAMIC_TOPIC),
        ("log.segment.bytes", "3145728", DYNAMIC_BROKER),
        ("log.segment.bytes", "4194304", DYNAMIC_DEFAULT),
        ("log.segment.bytes", "5242880", STATIC),
        ("log.segment.bytes", "1073741824", DEFAULT),
    ]


def test_documentation_on_request():
    described = only(
        describe((TOPIC, "orders", "retention.ms"), fields={"include_documentation": True})
    )

    assert described["retention.ms"].documentation


def test_this_brokers_configuration():
    configs = only(describe((BROKER, "1"), fields={"include_synonyms": True}))

    assert (configs["node.id"].value, configs["node.id"].config_source) == ("1", STATIC)
    assert configs["node.id"].read_only
    assert not configs["log.retention.ms"].read_only
    assert configs["num.partitions"].config_source == DEFAULT
    assert synonyms(configs["broker.id"]) == [
        ("broker.id", "1", STATIC),
        ("broker.id", "-1", DEFAULT),
    ]


def test_what_is_set_for_all_brokers():
    configured = image(configs={(BROKER, ""): {"log.retention.ms": "8"}})

    configs = only(describe((BROKER, ""), image=configured))

    assert {name: (c.value, c.config_source) for name, c in configs.items()} == {
        "log.retention.ms": ("8", DYNAMIC_DEFAULT)
    }


def test_no_log_level_can_be_changed():
    assert only(describe((BROKER_LOGGER, "1"))) == {}


def test_a_groups_configuration():
    configured = image(configs={(GROUP, "g"): {"consumer.session.timeout.ms": "46000"}})

    configs = only(describe((GROUP, "g"), fields={"include_synonyms": True}, image=configured))

    session = configs["consumer.session.timeout.ms"]
    assert (session.value, synonyms(session)) == ("46000", [(session.name, "46000", 8)])
    interval = configs["consumer.heartbeat.interval.ms"]
    assert synonyms(interval) == [(interval.name, "5000", DEFAULT)]


def test_what_client_metrics_would_be_asked_for():
    configured = image(configs={(CLIENT_METRICS, "s"): {"metrics": "a,b"}})

    configs = only(
        describe((CLIENT_METRICS, "s"), fields={"include_synonyms": True}, image=configured)
    )

    assert {name: (c.value, c.config_source, synonyms(c)) for name, c in configs.items()} == {
        "interval.ms": ("300000", DEFAULT, []),
        "match": ("", DEFAULT, []),
        "metrics": ("a,b", 7, [("metrics", "a,b", 7)]),
    }


@pytest.mark.parametrize(
    ("resource", "error", "message"),
    [
        ((TOPIC, "nope"), ErrorCode.unknown_topic_or_partition, ""),
        (
            (TOPIC, "a b"),
            ErrorCode.invalid_topic_exception,
            "Topic name is invalid: 'a b' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'",
        ),
        (
            (TOPIC, ""),
            ErrorCode.invalid_topic_exception,
            "Topic name is invalid: the empty string is not allowed",
        ),
        (
            (BROKER, "7"),
            ErrorCode.invalid_request,
            "Unexpected broker id, expected 1 or empty string, but received 7",
        ),
        (
            (BROKER, "x"),
            ErrorCode.invalid_request,
            "Broker id must be an integer, but it is: x",
        ),
        (
            (BROKER_LOGGER, "7"),
            ErrorCode.invalid_request,
            "Unexpected broker id, expected 1 but received 7",
        ),
        ((BROKER_LOGGER, ""), ErrorCode.invalid_request, "Broker id must not be empty"),
        ((GROUP, ""), ErrorCode.invalid_request, "Group name must not be empty"),
        (
            (CLIENT_METRICS, ""),
            ErrorCode.invalid_request,
            "Client metrics subscription name must not be empty",
        ),
    ],
)
def test_what_cannot_be_described(resource: tuple, error: ErrorCode, message: str):
    refused, described = describe(resource, (TOPIC, "orders"))

    assert (refused.error_code, refused.error_message, refused.configs) == (error, message, ())
    assert described.error_code is ErrorCode.none


@pytest.mark.parametrize("kind", [0, 1, 3, 99, -1])
def test_an_unknown_kind_of_resource_fails_the_whole_request(kind: int):
    results = describe((TOPIC, "orders"), (kind, "x"))

    assert {result.error_code for result in results} == {ErrorCode.invalid_request}


# -- ListConfigResources ---------------------------------------------------------------------------


def listed(version: int, *types: int):
    message = ask(74, resource_types=types)
    response = config_resources.handle(request(message, version))
    return response.error_code, [
        (resource.resource_type, resource.resource_name) for resource in response.config_resources
    ]


def test_version_0_lists_client_metrics_of_which_there_are_none():
    assert listed(0) == (ErrorCode.none, [])


def test_version_1_lists_all_or_some_kinds():
    brokers = [(BROKER, "1"), (BROKER, "2")]
    loggers = [(BROKER_LOGGER, "1"), (BROKER_LOGGER, "2")]

    assert listed(1) == (ErrorCode.none, [*brokers, *loggers, (TOPIC, "orders")])
    assert listed(1, TOPIC, BROKER) == (ErrorCode.none, [(TOPIC, "orders"), *brokers])
    assert listed(1, GROUP) == (ErrorCode.none, [])


def test_a_kind_that_does_not_exist():
    assert listed(1, 99) == (ErrorCode.unsupported_version, [])
