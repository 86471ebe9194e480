"""Every API has an access rule (F85)."""

import pytest

from tidelog.api.access.rules import BROKERS_ONLY, NOTHING, RULES, MissingRule, rule_of
from tidelog.api.registry import REGISTRY
from tidelog.protocol.messages.schema import API_NAMES

WITHOUT_NEEDS = {
    "ApiVersions",
    "ExpireDelegationToken",
    "GetTelemetrySubscriptions",
    "PushTelemetry",
    "RenewDelegationToken",
    "SaslAuthenticate",
    "SaslHandshake",
}


def test_f85_every_api_of_kafka_has_a_rule() -> None:
    known = {name.replace("_", "").lower() for name in API_NAMES.values()}
    assert {name.lower() for name in RULES} == known


def test_f85_an_api_without_a_rule_cannot_be_registered() -> None:
    with pytest.raises(
        MissingRule, match=r"the API Imaginary has no access rule; add one to RULES"
    ):
        rule_of("Imaginary")


def test_f85_only_these_apis_need_nothing() -> None:
    assert {name for name, rule in RULES.items() if rule == NOTHING} == WITHOUT_NEEDS


def test_an_api_of_controller_listeners_only_is_for_brokers() -> None:
    internal = [
        api for api in REGISTRY.values() if {kind.value for kind in api.listeners} == {"controller"}
    ]
    assert internal
    assert {api.name for api in internal if api.rule != BROKERS_ONLY} == set()


def test_a_rule_is_written_with_kafkas_words() -> None:
    assert str(RULES["OffsetDelete"]) == "Delete Group, Read Topic"
    assert str(RULES["FindCoordinator"]).endswith("Describe TransactionalId, ClusterAction Cluster")
    assert str(NOTHING) == "nothing"
