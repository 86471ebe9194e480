"""Every API, in every version: denied without its operations, allowed with them (F85)."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.unit.api.access.checked_requests import (
    EVERY_RESOURCE,
    Checked,
    authorizer,
    check,
    entry,
)

from tidelog.api.access.rules import NOTHING
from tidelog.api.registry import REGISTRY, Api
from tidelog.model.effects import AwaitElections, CoordinateAll, Effect, FetchBatches
from tidelog.security.acls import AclEntry, AclOperation, AclPermission


def is_harmless(effect: Effect) -> bool:
    """Whether the effect changes nothing, and its result is filtered or empty."""
    if isinstance(effect, FetchBatches):
        return not effect.reads
    return isinstance(effect, AwaitElections | CoordinateAll)


FILTERED = {"ListGroups", "ListTransactions", "DescribeCluster", "DescribeDelegationToken"}
"""APIs that omit what the client may not see, without an error."""


def every_version() -> Iterator[Any]:
    for api in REGISTRY.values():
        for version in range(api.min_version, api.max_version + 1):
            yield pytest.param(api, version, id=f"{api.name} {version}")


def needs_of(api: Api, permission: AclPermission) -> list[AclEntry]:
    return [entry(need.operation, need.resource, permission=permission) for need in api.rule.needs]


def assert_same_effects(api: Api, checked: Checked, open_to_all: Checked) -> None:
    if api.name in ("CreateAcls", "DeleteAcls"):  # which are disabled without an authorizer
        assert checked.effects
    else:
        assert list(map(type, checked.effects)) == list(map(type, open_to_all.effects))


EVERYTHING = [entry(AclOperation.ALL, resource) for resource in EVERY_RESOURCE]


@pytest.mark.parametrize(("api", "version"), list(every_version()))
def test_f85_without_entries_it_is_denied(api: Api, version: int) -> None:
    if api.rule == NOTHING:
        return
    checked = check(api, version, authorizer())
    assert [one for one in checked.effects if not is_harmless(one)] == []
    assert checked.denials or api.name in FILTERED


@pytest.mark.parametrize(("api", "version"), list(every_version()))
def test_f85_with_every_operation_but_its_own_it_is_denied(api: Api, version: int) -> None:
    if api.rule == NOTHING:
        return
    checked = check(api, version, authorizer(*EVERYTHING, *needs_of(api, AclPermission.DENY)))
    assert checked.denials or api.name in FILTERED


@pytest.mark.parametrize(("api", "version"), list(every_version()))
def test_with_its_operations_it_is_allowed(api: Api, version: int) -> None:
    open_to_all = check(api, version, None)
    checked = check(api, version, authorizer(*needs_of(api, AclPermission.ALLOW)))
    assert checked.denials == open_to_all.denials
    assert_same_effects(api, checked, open_to_all)


@pytest.mark.parametrize(("api", "version"), list(every_version()))
def test_a_super_user_is_allowed(api: Api, version: int) -> None:
    open_to_all = check(api, version, None)
    denied_to_all = [
        entry(AclOperation.ALL, resource, permission=AclPermission.DENY)
        for resource in EVERY_RESOURCE
    ]
    rules = authorizer(*denied_to_all, super_users=frozenset({"User:alice"}))
    checked = check(api, version, rules)
    assert checked.denials == open_to_all.denials
    assert_same_effects(api, checked, open_to_all)
