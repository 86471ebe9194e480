"""Filters match entries, and invalid entries and filters are refused, as in Kafka."""

import pytest

from tidelog.security.acl_filters import AclFilter, entry_problem
from tidelog.security.acls import AclEntry

ENTRY = AclEntry(2, "orders", 3, "User:alice", "*", 3, 3)
ANY = AclFilter(1, None, 1, None, None, 1, 1)


@pytest.mark.parametrize(
    ("changes", "matches"),
    [
        ({}, True),
        ({"resource_type": 2}, True),
        ({"resource_type": 3}, False),
        ({"resource_name": "orders"}, True),
        ({"resource_name": "order"}, False),
        ({"pattern_type": 3, "resource_name": "orders"}, True),
        ({"pattern_type": 4, "resource_name": "orders"}, False),
        ({"pattern_type": 2, "resource_name": "orders"}, True),
        ({"pattern_type": 2, "resource_name": "orders-2"}, False),
        ({"principal": "User:alice"}, True),
        ({"principal": "User:bob"}, False),
        ({"host": "*"}, True),
        ({"host": "10.0.0.1"}, False),
        ({"operation": 3}, True),
        ({"operation": 2}, False),
        ({"permission": 3}, True),
        ({"permission": 2}, False),
    ],
)
def test_a_filter(changes: dict[str, object], matches: bool) -> None:
    assert ANY._replace(**changes).matches(ENTRY) is matches


@pytest.mark.parametrize(
    "entry",
    [ENTRY._replace(resource_name="*"), ENTRY._replace(resource_name="ord", pattern_type=4)],
)
def test_match_finds_every_entry_that_concerns_a_name(entry: AclEntry) -> None:
    assert ANY._replace(pattern_type=2, resource_name="orders").matches(entry)
    assert not ANY._replace(pattern_type=1, resource_name="orders").matches(entry)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"resource_type": 1}, "Invalid resourceType ANY"),
        ({"resource_type": 99}, "Invalid resourceType UNKNOWN"),
        ({"resource_type": 4}, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, "Invalid empty resource name"),
        ({"pattern_type": 2}, "Invalid patternType MATCH"),
        ({"operation": 1}, "Invalid operation ANY"),
        ({"permission": 1}, "Invalid permissionType ANY"),
        ({"permission": 0}, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "alice"},
            "Could not parse principal from `alice` (no colon is present separating the principal "
            "type from the principal name)",
        ),
    ],
)
def test_an_entry_that_cannot_be_created(changes: dict[str, object], problem: str) -> None:
    assert entry_problem(ENTRY._replace(**changes)) == problem
    assert entry_problem(ENTRY) is None


def test_a_filter_with_unknown_numbers_is_refused() -> None:
    assert ANY.problem() is None
    assert ANY._replace(resource_type=0).problem() == "Unknown patternFilter."
    assert ANY._replace(operation=77).problem() == "Unknown entryFilter."
