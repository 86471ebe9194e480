"""Decides whether a principal may use an operation on a resource, as Kafka's StandardAuthorizer.

A denying entry goes before an allowing one. Super users may do everything. Where no entry matches
a resource, `allow.everyone.if.no.acl.found` decides. An authorizer is built from the entries of
one metadata image, so a decision that it remembers is never older than the entries (F87).
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from tidelog.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclEntry,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
)
from tidelog.security.principal import Principal

_IMPLY_DESCRIBE = frozenset(
    {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
)
_REMEMBERED = 10_000
"""The number of decisions that are remembered before all of them are forgotten."""
_NO_RESOURCE = "hardcode"
"""The name with which Kafka finds out whether a principal is allowed without any entry."""


class AuthorizerSettings(NamedTuple):
    super_users: frozenset[str] = frozenset()
    """Principals that may do everything, as `User:name`."""
    allows_if_no_acl: bool = False


class AclSubject(NamedTuple):
    """A principal at a host, as entries name it."""

    principal: Principal
    host: str


class AclAuthorizer:
    def __init__(self, entries: Iterable[AclEntry], settings: AuthorizerSettings) -> None:
        self._settings = settings
        self._by_type: dict[int, _Entries] = {}
        for entry in entries:
            self._by_type.setdefault(entry.resource_type, _Entries()).add(entry)
        self._decisions: dict[tuple[AclSubject, int, int, str], bool] = {}

    def allows(
        self, subject: AclSubject, operation: AclOperation, resource: AclResource, name: str
    ) -> bool:
        key = (subject, operation, resource, name)
        decision = self._decisions.get(key)
        if decision is None:
            if len(self._decisions) >= _REMEMBERED:
                self._decisions.clear()
            decision = self._decisions[key] = self._decide(subject, operation, resource, name)
        return decision

    def allows_any(
        self, subject: AclSubject, operation: AclOperation, resource: AclResource
    ) -> bool:
        """Whether the operation is allowed on at least one resource of the type (KIP-679)."""
        if self.allows(subject, operation, resource, _NO_RESOURCE):
            return True
        found = self._by_type.get(resource)
        if found is None:
            return False
        mine = [
            entry
            for entry in found.all()
            if _concerns(entry, subject) and entry.operation in (operation, AclOperation.ALL)
        ]
        denied = [entry for entry in mine if entry.permission == AclPermission.DENY]
        return any(
            entry.permission == AclPermission.ALLOW
            and not any(_covers(other, entry) for other in denied)
            for entry in mine
        )

    def operations(
        self,
        subject: AclSubject,
        among: Collection[AclOperation],
        resource: AclResource,
        name: str = CLUSTER_NAME,
    ) -> int:
        """The allowed operations as a bit field, for `authorizedOperations` (KIP-430)."""
        return sum(
            1 << operation for operation in among if self.allows(subject, operation, resource, name)
        )

    def _decide(
        self, subject: AclSubject, operation: AclOperation, resource: AclResource, name: str
    ) -> bool:
        if str(subject.principal) in self._settings.super_users:
            return True
        of_type = self._by_type.get(resource)
        matching = () if of_type is None else tuple(of_type.matching(name))
        if not matching:
            return self._settings.allows_if_no_acl
        is_allowed = False
        for entry in matching:
            if not _concerns(entry, subject):
                continue
            if entry.permission == AclPermission.DENY:
                if entry.operation in (operation, AclOperation.ALL):
                    return False
            elif entry.permission == AclPermission.ALLOW and _grants(entry.operation, operation):
                is_allowed = True
        return is_allowed


class _Entries:
    """The entries of one resource type, by the names that they match."""

    def __init__(self) -> None:
        self._literal: dict[str, list[AclEntry]] = {}
        self._prefixed: dict[str, list[AclEntry]] = {}
        self._lengths: set[int] = set()
        """The lengths of the prefixes."""

    def add(self, entry: AclEntry) -> None:
        if entry.pattern_type == AclPattern.PREFIXED:
            self._prefixed.setdefault(entry.resource_name, []).append(entry)
            self._lengths.add(len(entry.resource_name))
        else:
            self._literal.setdefault(entry.resource_name, []).append(entry)

    def matching(self, name: str) -> Iterator[AclEntry]:
        yield from self._literal.get(name, ())
        if name != WILDCARD:
            yield from self._literal.get(WILDCARD, ())
        for length in sorted(self._lengths):
            if length <= len(name):
                yield from self._prefixed.get(name[:length], ())

    def all(self) -> Iterator[AclEntry]:
        for entries in (*self._literal.values(), *self._prefixed.values()):
            yield from entries


def _concerns(entry: AclEntry, subject: AclSubject) -> bool:
    return entry.principal in (str(subject.principal), WILDCARD_PRINCIPAL) and entry.host in (
        subject.host,
        WILDCARD,
    )


def _grants(allowed: int, operation: AclOperation) -> bool:
    if allowed in (operation, AclOperation.ALL):
        return True
    if operation is AclOperation.DESCRIBE:
        return allowed in _IMPLY_DESCRIBE
    if operation is AclOperation.DESCRIBE_CONFIGS:
        return allowed == AclOperation.ALTER_CONFIGS
    return False


def _covers(denied: AclEntry, allowed: AclEntry) -> bool:
    """Whether every resource of `allowed` is also a resource of `denied`."""
    if denied.pattern_type == AclPattern.PREFIXED:
        return allowed.resource_name.startswith(denied.resource_name)
    if denied.resource_name == WILDCARD:
        return True
    return (
        allowed.pattern_type == denied.pattern_type
        and allowed.resource_name == denied.resource_name
    )
