"""The authorizer decides as Kafka's StandardAuthorizer does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.security.acls import (
    WILDCARD_PRINCIPAL,
    AclEntry,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
)
from tidelog.security.authorizer import AclAuthorizer, AclSubject, AuthorizerSettings
from tidelog.security.principal import Principal

ALICE = AclSubject(Principal("User", "alice"), "10.0.0.1")
READ, WRITE, ALL = AclOperation.READ, AclOperation.WRITE, AclOperation.ALL
TOPIC = AclResource.TOPIC
LITERAL, PREFIXED = AclPattern.LITERAL, AclPattern.PREFIXED
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY


def allow(name: str, operation: AclOperation = READ, pattern: AclPattern = LITERAL) -> AclEntry:
    return AclEntry(TOPIC, name, pattern, "User:alice", "*", operation, ALLOW)


def deny(name: str, operation: AclOperation = READ, pattern: AclPattern = LITERAL) -> AclEntry:
    return allow(name, operation, pattern)._replace(permission=DENY)


def may(name: str, *entries: AclEntry, operation: AclOperation = READ, **settings: bool) -> bool:
    rules = AclAuthorizer(entries, AuthorizerSettings(**settings))  # type: ignore[arg-type]
    return rules.allows(ALICE, operation, TOPIC, name)


@pytest.mark.parametrize(
    ("entry", "is_allowed"),
    [
        (allow("orders"), True),
        (allow("*"), True),
        (allow("ord", pattern=PREFIXED), True),
        (allow("orders", pattern=PREFIXED), True),
        (allow("orders-2", pattern=PREFIXED), False),
        (allow("order"), False),
        (allow("*", pattern=PREFIXED), False),
        (allow("orders", ALL), True),
        (allow("orders", WRITE), False),
        (allow("orders")._replace(principal=WILDCARD_PRINCIPAL), True),
        (allow("orders")._replace(principal="User:bob"), False),
        (allow("orders")._replace(principal="Group:alice"), False),
        (allow("orders")._replace(host="10.0.0.1"), True),
        (allow("orders")._replace(host="10.0.0.2"), False),
        (allow("orders")._replace(resource_type=AclResource.GROUP), False),
    ],
)
def test_one_entry(entry: AclEntry, is_allowed: bool) -> None:
    assert may("orders", entry) is is_allowed


@pytest.mark.parametrize("denied", [deny("orders"), deny("*"), deny("o", ALL, PREFIXED)])
def test_a_denial_goes_before_what_is_allowed(denied: AclEntry) -> None:
    assert not may("orders", allow("orders"), denied)
    assert not may("orders", denied, allow("orders", ALL))


@pytest.mark.parametrize("operation", [READ, WRITE, AclOperation.DELETE, AclOperation.ALTER])
def test_some_operations_include_describe(operation: AclOperation) -> None:
    assert may("orders", allow("orders", operation), operation=AclOperation.DESCRIBE)
    assert may(
        "orders", allow("orders", ALL), deny("orders", operation), operation=AclOperation.DESCRIBE
    )


def test_alter_configs_includes_describe_configs() -> None:
    configs = AclOperation.DESCRIBE_CONFIGS
    assert may("orders", allow("orders", AclOperation.ALTER_CONFIGS), operation=configs)
    assert not may("orders", allow("orders", AclOperation.DESCRIBE), operation=configs)


def test_without_entries_the_setting_decides() -> None:
    assert not may("orders")
    assert may("orders", allows_if_no_acl=True)
    other = allow("orders")._replace(principal="User:bob")
    assert not may("orders", other, allows_if_no_acl=True)
    assert may("payments", other, allows_if_no_acl=True)


def test_a_super_user_is_allowed_what_is_denied() -> None:
    settings = AuthorizerSettings(super_users=frozenset({"User:alice"}))
    assert AclAuthorizer([deny("*", ALL)], settings).allows(ALICE, READ, TOPIC, "orders")


def test_f87_a_new_authorizer_forgets_the_decisions_of_the_old_one() -> None:
    settings = AuthorizerSettings()
    before = AclAuthorizer([allow("orders")], settings)
    assert before.allows(ALICE, READ, TOPIC, "orders")
    assert before.allows(ALICE, READ, TOPIC, "orders")
    assert not AclAuthorizer([], settings).allows(ALICE, READ, TOPIC, "orders")


def test_the_memory_of_decisions_is_limited() -> None:
    rules = AclAuthorizer([allow("t", pattern=PREFIXED)], AuthorizerSettings())
    assert all(rules.allows(ALICE, READ, TOPIC, f"t{number}") for number in range(25_000))
    assert len(rules._decisions) <= 10_000


@pytest.mark.parametrize(
    ("entries", "is_allowed"),
    [
        ([], False),
        ([allow("a")], True),
        ([allow("a", ALL)], True),
        ([allow("a", WRITE)], False),
        ([allow("a"), deny("a")], False),
        ([allow("a"), deny("b")], True),
        ([allow("a"), deny("*")], False),
        ([allow("ab"), deny("a", pattern=PREFIXED)], False),
        ([allow("ab", pattern=PREFIXED), deny("a", pattern=PREFIXED)], False),
        ([allow("a", pattern=PREFIXED), deny("ab", pattern=PREFIXED)], True),
        ([allow("*"), deny("ab", pattern=PREFIXED)], True),
    ],
)
def test_allowed_on_any_topic(entries: list[AclEntry], is_allowed: bool) -> None:
    assert AclAuthorizer(entries, AuthorizerSettings()).allows_any(ALICE, READ, TOPIC) is is_allowed


def test_allowed_operations_are_bits() -> None:
    rules = AclAuthorizer([allow("orders", WRITE)], AuthorizerSettings())
    among = (READ, WRITE, AclOperation.DESCRIBE)
    assert rules.operations(ALICE, among, TOPIC, "orders") == 1 << 4 | 1 << 8


NAMES = st.sampled_from(["a", "ab", "abc", "b", "*"])
ENTRIES = st.builds(
    AclEntry,
    st.just(TOPIC),
    NAMES,
    st.sampled_from([LITERAL, PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", WILDCARD_PRINCIPAL]),
    st.sampled_from(["*", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from([READ, WRITE, ALL, AclOperation.DESCRIBE]),
    st.sampled_from([ALLOW, DENY]),
)


def plain_decision(entries: list[AclEntry], operation: AclOperation, name: str) -> bool:
    """The rule in its plainest form: look at every entry."""
    found = [
        one
        for one in entries
        if (one.pattern_type == PREFIXED and name.startswith(one.resource_name))
        or (one.pattern_type == LITERAL and one.resource_name in (name, "*"))
        if one.principal in ("User:alice", "User:*") and one.host in ("*", "10.0.0.1")
    ]
    denied = any(one.permission == DENY and one.operation in (operation, ALL) for one in found)
    implied = {READ, WRITE} if operation is AclOperation.DESCRIBE else set()
    allowed = any(
        one.permission == ALLOW and one.operation in {operation, ALL, *implied} for one in found
    )
    return allowed and not denied


@given(
    st.lists(ENTRIES, max_size=6),
    st.sampled_from([READ, WRITE, AclOperation.DESCRIBE]),
    st.sampled_from(["a", "ab", "abc", "b", "c"]),
)
def test_any_entries(entries: list[AclEntry], operation: AclOperation, name: str) -> None:
    assert may(name, *entries, operation=operation) is plain_decision(entries, operation, name)
