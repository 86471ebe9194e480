"""Every advertised version can be decoded, handled and answered."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.api.round_trip import handle, minimal, one_of_each

from tidelog.api.listeners import ListenerKind
from tidelog.api.reference import protocol_page
from tidelog.api.registry import REGISTRY, Api, served
from tidelog.protocol.messages.schema import request_class, versions_of

ROOT_OF_DOCS = "docs/protocol.md"


def every_version() -> Iterator[Any]:
    for api in REGISTRY.values():
        for version in range(api.min_version, api.max_version + 1):
            yield pytest.param(api, version, id=f"{api.name} {version}")


@pytest.mark.parametrize(("api", "version"), list(every_version()))
def test_an_empty_request_is_answered(api: Api, version: int):
    handle(api, version, minimal(request_class(api.key, version)))


@pytest.mark.parametrize(("api", "version"), list(every_version()))
def test_a_request_with_one_of_each_thing_is_answered(api: Api, version: int):
    handle(api, version, one_of_each(request_class(api.key, version)))


def test_only_versions_that_the_protocol_knows_are_registered():
    for api in REGISTRY.values():
        known = versions_of(api.key)
        assert known[0] <= api.min_version <= api.max_version <= known[-1], api.name


def test_keys_and_names_are_there_once():
    assert [api.key for api in REGISTRY.values()] == sorted({api.key for api in REGISTRY.values()})
    assert len({api.name for api in REGISTRY.values()}) == len(REGISTRY)


def test_an_api_belongs_to_its_listeners():
    assert served(ListenerKind.BROKER)[3] is REGISTRY[3]
    assert 3 not in served(ListenerKind.CONTROLLER)
    assert 999 not in served(ListenerKind.BROKER)


def test_the_documentation_is_the_registrys(pytestconfig: pytest.Config):
    page = pytestconfig.rootpath / ROOT_OF_DOCS

    assert page.read_text() == protocol_page(), "run python -m tidelog.api.reference"


def test_every_handler_says_what_it_does():
    for api in REGISTRY.values():
        said = api.handler.__doc__ or ""
        assert said.endswith("."), api.name
        assert "\n" not in said, api.name
