"""ApiVersions: the APIs of the listener that the client uses, and the cluster's features."""

from dataclasses import replace

import pytest
from tests.unit.api.support import QuorumAt, ask, broker, image, request

from tidelog.api import registry
from tidelog.api.cluster import versions
from tidelog.api.registry import REGISTRY
from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.reader import decode
from tidelog.protocol.messages.schema import response_class

KEY = 18


def named(name: str = "tester", version: str = "1.0"):
    return ask(KEY, client_software_name=name, client_software_version=version)


def test_lists_every_api_of_a_brokers_listener():
    answer = registry.api_versions(request(named(), version=4))

    assert answer.error_code is ErrorCode.none
    listed = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert listed[3] == (0, 13)
    assert list(listed) == sorted(listed)
    assert not answer.zk_migration_ready


def test_a_controllers_listener_has_its_own_list():
    answer = registry.api_versions(request(named(), version=4, listener="CONTROLLER"))

    listed = {api.api_key for api in answer.api_keys}
    assert 18 in listed
    assert 3 not in listed


def test_produce_is_advertised_from_zero_for_the_sake_of_librdkafka():
    assert REGISTRY[0].advertisement().min_version == 0
    assert not REGISTRY[0].supports(2)


def test_features_are_those_of_the_image():
    answer = registry.api_versions(request(named(), version=4))

    supported = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    assert supported == {"group.version": (0, 1), "metadata.version": (7, 27)}
    finalized = [
        (f.name, f.min_version_level, f.max_version_level) for f in answer.finalized_features
    ]
    assert finalized == [("group.version", 1, 1), ("metadata.version", 27, 27)]
    assert answer.finalized_features_epoch == 42


def test_the_level_of_kraft_version_is_shown_once_voters_can_change():
    answer = registry.api_versions(request(named(), version=4, quorum=QuorumAt(1, kraft_version=1)))

    levels = {f.name: f.max_version_level for f in answer.finalized_features}
    assert levels["kraft.version"] == 1


def test_older_clients_are_not_shown_features_that_begin_at_zero():
    answer = registry.api_versions(request(named(), version=3))

    assert [feature.name for feature in answer.supported_features] == ["metadata.version"]


def test_a_node_that_is_not_registered_yet_names_what_its_software_supports():
    answer = registry.api_versions(request(named(), version=4, image=ClusterImage()))

    supported = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    assert supported["kraft.version"] == (0, 1), "a controller must say so before it is added"
    assert answer.finalized_features_epoch == -1


@pytest.mark.parametrize(
    ("name", "version"),
    [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a-", "1"), ("a", "1 "), ("é", "1")],
)
def test_malformed_software_is_refused_from_version_3_on(name: str, version: str):
    refused = registry.api_versions(request(named(name, version), version=3))

    assert refused.error_code is ErrorCode.invalid_request
    assert refused.api_keys == ()
    assert registry.api_versions(request(named(name, version), version=2)).error_code == 0


def test_a_future_version_is_told_in_version_0_what_to_ask_instead():
    [body] = versions.FUTURE_VERSION.chunks

    answer = decode(response_class(KEY, 0), body, 0)

    assert answer.error_code is ErrorCode.unsupported_version
    [only] = answer.api_keys
    assert (only.api_key, only.min_version, only.max_version) == (18, 0, 4)


def test_features_of_a_broker_that_runs_apart_from_the_controller():
    apart = image(brokers={1: replace(broker(1), features={})}, controllers={})

    assert registry.api_versions(request(named(), version=4, image=apart)).supported_features == ()
