"""Which access control entries are valid, and which entries a filter matches, as in Kafka."""

from typing import Any, NamedTuple

from tidelog.security.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclEntry,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
)

_RESOURCES = frozenset(AclResource)
_OPERATIONS = frozenset(AclOperation)
_PERMISSIONS = frozenset(AclPermission)
_PATTERNS = frozenset(AclPattern)


def entry_problem(entry: AclEntry) -> str | None:
    """Why an entry cannot be created, in Kafka's words; None if it can."""
    if entry.resource_type not in _RESOURCES - {AclResource.ANY}:
        return f"Invalid resourceType {_name(AclResource, entry.resource_type)}"
    if entry.resource_type == AclResource.CLUSTER and entry.resource_name != CLUSTER_NAME:
        return f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
    if not entry.resource_name:
        return "Invalid empty resource name"
    if entry.pattern_type not in (AclPattern.LITERAL, AclPattern.PREFIXED):
        return f"Invalid patternType {_name(AclPattern, entry.pattern_type)}"
    if entry.operation not in _OPERATIONS - {AclOperation.ANY}:
        return f"Invalid operation {_name(AclOperation, entry.operation)}"
    if entry.permission not in (AclPermission.ALLOW, AclPermission.DENY):
        return f"Invalid permissionType {_name(AclPermission, entry.permission)}"
    if ":" not in entry.principal:
        return (
            f"Could not parse principal from `{entry.principal}` (no colon is present separating "
            "the principal type from the principal name)"
        )
    return None


def _name(kind: Any, number: int) -> str:
    return kind(number).name if number in frozenset(kind) else "UNKNOWN"


class AclFilter(NamedTuple):
    """A filter of entries; null and ANY match every value."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    @classmethod
    def from_request(cls, asked: Any) -> "AclFilter":
        return cls(
            asked.resource_type_filter,
            asked.resource_name_filter,
            asked.pattern_type_filter,
            asked.principal_filter,
            asked.host_filter,
            asked.operation,
            asked.permission_type,
        )

    def problem(self) -> str | None:
        """Why the filter cannot be used, in Kafka's words; None if it can."""
        if self.resource_type not in _RESOURCES or self.pattern_type not in _PATTERNS:
            return "Unknown patternFilter."
        if self.operation not in _OPERATIONS or self.permission not in _PERMISSIONS:
            return "Unknown entryFilter."
        return None

    def matches(self, entry: AclEntry) -> bool:
        return (
            self.resource_type in (AclResource.ANY, entry.resource_type)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (AclPermission.ANY, entry.permission)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self._matches_name(entry)
        )

    def _matches_name(self, entry: AclEntry) -> bool:
        kind, name = self.pattern_type, self.resource_name
        if kind not in (AclPattern.ANY, AclPattern.MATCH, entry.pattern_type):
            return False
        if name is None or (kind != AclPattern.MATCH and name == entry.resource_name):
            return True
        if kind != AclPattern.MATCH:
            return False
        if entry.pattern_type == AclPattern.PREFIXED:
            return name.startswith(entry.resource_name)
        return entry.resource_name in (name, WILDCARD)
